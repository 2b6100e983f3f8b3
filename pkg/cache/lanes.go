package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// maxLanes bounds how many masters are told apart: in a cluster whose servers are
// replaced all the time, addresses only ever become more.
const maxLanes = 256

// lane is the circuit breaker of one server.
type lane = gobreaker.CircuitBreaker[string]

// lanes keep what one server does from being held against others: each master of a
// Redis Cluster has a lane of its own. Any other Redis has one.
type lanes struct {
	// common is the lane of a Redis that is no cluster, and of finding out which
	// master has what in one that is.
	common  *lane
	cluster *redis.ClusterClient // nil if it is none

	mu sync.Mutex
	of map[string]*lane // by address
}

func newLanes(client redis.UniversalClient) *lanes {
	l := &lanes{of: map[string]*lane{}}
	l.cluster, _ = client.(*redis.ClusterClient)
	l.common = l.open("redis")
	return l
}

// open makes a lane.
//
//nolint:contextcheck,nolintlint // finding who took over outlives the read that noticed; the first reads this, the second does not see that
func (l *lanes) open(name string) *lane {
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: name, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen && l.cluster != nil {
				// Another server may have the slots of one that is gone. The client would ask
				// once a minute; this returns at once.
				l.cluster.ReloadState(context.Background())
			}
		},
	})
}

// find returns the lane of a key, which is that of the master that has it.
func (l *lanes) find(ctx context.Context, key string) (*lane, error) {
	if l.cluster == nil {
		return l.common, nil
	}
	address, err := l.common.Execute(func() (string, error) {
		master, err := l.cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", fmt.Errorf("find the master of a key: %w", err)
		}
		return master.Options().Addr, nil
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.of[address]
	if !ok {
		if len(l.of) >= maxLanes {
			clear(l.of) // what was held against them is learned anew
		}
		found = l.open(address)
		l.of[address] = found
	}
	return found, nil
}
