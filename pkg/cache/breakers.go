package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// maxBreakers bounds how many masters are told apart: in a cluster whose servers are
// replaced all the time, addresses only ever become more.
const maxBreakers = 256

// breaker is that of one server.
type breaker = gobreaker.CircuitBreaker[string]

// breakers keep what one server does from being held against others: each master of a
// Redis Cluster has one of its own. Any other Redis has one.
type breakers struct {
	// common is the breaker of a Redis that is no cluster, and of finding out which
	// master has what in one that is.
	common  *breaker
	cluster *redis.ClusterClient // nil if it is none

	mu sync.Mutex
	of map[string]*breaker // by address
}

func newBreakers(client redis.UniversalClient) *breakers {
	b := &breakers{of: map[string]*breaker{}}
	b.cluster, _ = client.(*redis.ClusterClient)
	b.common = b.fresh("redis")
	return b
}

// fresh makes a breaker.
//
//nolint:contextcheck,nolintlint // finding who took over outlives the read that noticed; the first reads this, the second does not see that
func (b *breakers) fresh(name string) *breaker {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: name, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen && b.cluster != nil {
				// Another server may have the slots of one that is gone. The client would ask
				// once a minute; this returns at once.
				b.cluster.ReloadState(context.Background())
			}
		},
	})
}

// find returns the breaker of a key, which is that of the master that has it.
func (b *breakers) find(ctx context.Context, key string) (*breaker, error) {
	if b.cluster == nil {
		return b.common, nil
	}
	address, err := b.common.Execute(func() (string, error) {
		master, err := b.cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", fmt.Errorf("find the master of a key: %w", err)
		}
		return master.Options().Addr, nil
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.of[address]
	if !ok {
		if len(b.of) >= maxBreakers {
			clear(b.of) // what was held against them is learned anew
		}
		found = b.fresh(address)
		b.of[address] = found
	}
	return found, nil
}
