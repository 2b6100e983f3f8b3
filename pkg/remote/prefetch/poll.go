package prefetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
)

// Fetched is the result of polling a key.
type Fetched[V any] struct {
	// Value is from the last successful fetch and At is its time; both are zero if there was
	// none. Value stays after a failure, regardless of its age.
	Value V
	At    time.Time
	// Err is why the last fetch failed, or nil.
	Err error
}

// PollOptions configure [Poll]. The zero value is usable.
type PollOptions[O, K comparable] struct {
	// Refresh is the pause after a successful fetch of a key (5 minutes). Jitter subtracts up to
	// a tenth, so that keys wanted together are not fetched together.
	Refresh func(key K) time.Duration
	// FirstRetry is the pause after a failed fetch. It doubles with each further failure up to
	// LastRetry (1 second, 1 minute).
	FirstRetry, LastRetry time.Duration
	// MaxFetches is the number of concurrent fetches (64) and MaxFetchesPerOwner the number for
	// one owner (2), so that one owner's slow servers do not delay the others.
	MaxFetches, MaxFetchesPerOwner int
	// Owner returns the owner of a key for MaxFetchesPerOwner; nil means one owner for all keys.
	Owner func(key K) O
	// Apart reports whether MaxFetches does not count an owner, so that its fetches never wait
	// for others. It is for keys that everyone shares; nil counts every owner.
	Apart func(owner O) bool
}

// Poll returns a [Follow] that fetches repeatedly, within the limits of options. A panic in
// fetch counts as a failure. fetch sets its own timeout, and must only return when everything
// that it started has ended: until then it counts, even if nobody wants the key any more.
func Poll[O, K comparable, V any](fetch func(ctx context.Context, key K) (V, error), now func() time.Time,
	options PollOptions[O, K]) Follow[K, Fetched[V]] {
	if options.Refresh == nil {
		options.Refresh = func(K) time.Duration { return defaultRefresh }
	}
	options.FirstRetry = cmp.Or(options.FirstRetry, defaultFirstRetry)
	options.LastRetry = cmp.Or(options.LastRetry, defaultLastRetry)
	options.MaxFetches = cmp.Or(options.MaxFetches, defaultMaxFetches)
	options.MaxFetchesPerOwner = cmp.Or(options.MaxFetchesPerOwner, defaultMaxFetchesPerOwner)
	if options.Owner == nil {
		options.Owner = func(K) (one O) { return one }
	}
	if options.Apart == nil {
		options.Apart = func(O) bool { return false }
	}
	turns := func(total int) *fair.Turns[O] {
		return fair.RoundRobin[O](fair.Limits{Total: total, Each: options.MaxFetchesPerOwner, Queue: fair.Unbounded})
	}
	p := &poller[O, K, V]{fetch: fetch, now: now, options: options, turns: turns(options.MaxFetches), apart: turns(fair.Unbounded)}
	return p.follow
}

// poller fetches the keys of one Set.
type poller[O, K comparable, V any] struct {
	fetch   func(context.Context, K) (V, error)
	now     func() time.Time
	options PollOptions[O, K]
	turns   *fair.Turns[O]
	apart   *fair.Turns[O] // of owners that MaxFetches does not count
}

func (p *poller[O, K, V]) follow(ctx context.Context, key K, report func(Fetched[V])) {
	var known Fetched[V]
	failures := 0
	for {
		value, err := p.fetchInTurn(ctx, key)
		if ctx.Err() != nil {
			return
		}
		var pause time.Duration
		if err != nil {
			known.Err = err
			pause = doubled(p.options.FirstRetry, p.options.LastRetry, failures)
			failures++
		} else {
			known = Fetched[V]{Value: value, At: p.now()}
			refresh := p.options.Refresh(key)
			pause = refresh - rand.N(refresh/10+1) //nolint:gosec // jitter, no secret
			failures = 0
		}
		report(known)
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (p *poller[O, K, V]) fetchInTurn(ctx context.Context, key K) (value V, err error) {
	owner, turns := p.options.Owner(key), p.turns
	if p.options.Apart(owner) {
		turns = p.apart
	}
	turn, err := turns.Take(ctx, owner)
	if err != nil {
		return value, fmt.Errorf("wait for a turn: %w", err)
	}
	defer turn.Leave()
	defer func() {
		if r := recover(); r != nil {
			err = internal(r)
		}
	}()
	return p.fetch(ctx, key)
}

// internal returns the error for a panic. It only quotes the runtime: a library's panic may
// contain a server's answer.
func internal(r any) error {
	if known, ok := r.(runtime.Error); ok {
		return fmt.Errorf("internal error: %w", known)
	}
	return errors.New("internal error")
}

// doubled returns the pause after a number of failures.
func doubled(first, last time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 10), last)
}

// sleep reports whether the pause passed before ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
