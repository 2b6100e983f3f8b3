package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// breaker is the circuit breaker of one server, for reads or for writes.
type breaker = gobreaker.CircuitBreaker[string]

// The operations that a breaker counts. A server that is full, or read-only, still answers
// reads.
const (
	reading = "reads"
	writing = "writes"
)

// breakers holds two circuit breakers per cluster master, so that a failing master does not
// trip the others. Without a cluster there is one server.
type breakers struct {
	// common are the breakers of a Redis without cluster. In a cluster, they count lookups of a
	// key's master.
	common  map[string]*breaker
	cluster *redis.ClusterClient // nil without a cluster
	changed func(doing string, err error)

	mu sync.Mutex
	of map[string]*breaker // by operation and address

	failingMu sync.Mutex
	failing   map[string]bool // the reported failure
}

// failed returns the reported failures that have not ended since.
func (b *breakers) failed() []string {
	b.failingMu.Lock()
	defer b.failingMu.Unlock()
	return slices.Collect(maps.Keys(b.failing))
}

// say reports a change once.
func (b *breakers) say(doing string, err error) {
	b.failingMu.Lock()
	told := b.failing[doing] == (err != nil)
	if b.failing[doing] = true; err == nil {
		delete(b.failing, doing)
	}
	b.failingMu.Unlock()
	if !told {
		b.changed(doing, err)
	}
}

// newBreakers returns closed breakers. failing is the operation that fails until its first
// success.
func newBreakers(client redis.UniversalClient, failing []string, changed func(doing string, err error)) *breakers {
	b := &breakers{of: map[string]*breaker{}, changed: changed, failing: map[string]bool{}}
	for _, doing := range failing {
		b.failing[doing] = true
	}
	b.cluster, _ = client.(*redis.ClusterClient)
	b.common = map[string]*breaker{reading: b.newBreaker(reading), writing: b.newBreaker(writing)}
	return b
}

// newBreaker returns a closed breaker.
//
//nolint:contextcheck,nolintlint // finding who took over outlives the read that noticed; the first reads this, the second does not see that
func (b *breakers) newBreaker(doing string) *breaker {
	var last atomic.Pointer[error]
	return gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: doing, Timeout: breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, errBusy) },
		IsSuccessful: func(err error) bool {
			if err == nil || errors.Is(err, redis.Nil) {
				b.say(doing, nil)
				return true
			}
			last.Store(&err)
			return false
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.say(doing, *last.Load())
			}
			if to == gobreaker.StateOpen && b.cluster != nil {
				// Another server may have taken over its slots. The client would check once a minute;
				// this returns immediately.
				b.cluster.ReloadState(context.Background())
			}
		},
	})
}

// find returns the breaker of the master that has a key.
func (b *breakers) find(ctx context.Context, key, doing string) (*breaker, error) {
	common := b.common[doing]
	if b.cluster == nil {
		return common, nil
	}
	address, err := common.Execute(func() (string, error) {
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
	name := doing + " at " + address
	found, ok := b.of[name]
	if !ok {
		if len(b.of) >= maxBreakers {
			clear(b.of) // they restart without failures
		}
		found = b.newBreaker(name)
		b.of[name] = found
	}
	return found, nil
}
