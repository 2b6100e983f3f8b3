package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// breaker is the circuit breaker of one server.
type breaker = gobreaker.CircuitBreaker[string]

// breakers holds one circuit breaker per cluster master, so that a failing master does not
// trip the others. Without a cluster there is a single breaker.
type breakers struct {
	// common is the breaker of a Redis without cluster, and otherwise that of finding the
	// master of a key.
	common  *breaker
	cluster *redis.ClusterClient // nil without a cluster

	mu sync.Mutex
	of map[string]*breaker // by address
}

func newBreakers(client redis.UniversalClient) *breakers {
	b := &breakers{of: map[string]*breaker{}}
	b.cluster, _ = client.(*redis.ClusterClient)
	b.common = b.newBreaker("redis")
	return b
}

// newBreaker returns a closed breaker.
//
//nolint:contextcheck,nolintlint // finding who took over outlives the read that noticed; the first reads this, the second does not see that
func (b *breakers) newBreaker(name string) *breaker {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: name, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen && b.cluster != nil {
				// Another server may have taken over its slots. The client would look once a
				// minute; this returns at once.
				b.cluster.ReloadState(context.Background())
			}
		},
	})
}

// find returns the breaker of the master that has a key.
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
			clear(b.of) // they start over with no failures
		}
		found = b.newBreaker(address)
		b.of[address] = found
	}
	return found, nil
}
