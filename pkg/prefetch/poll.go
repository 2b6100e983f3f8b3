package prefetch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Fetched is what polling knows of a key.
type Fetched[V any] struct {
	// Value is the last one that was fetched, and At when; both are zero if there
	// is none. Value stays after a failure, however old.
	Value V
	At    time.Time
	// Err is why the last fetch failed; nil if it did not.
	Err error
}

// PollOptions configure [Poll]. The zero value is usable.
type PollOptions[O, K comparable] struct {
	// Refresh is the time from one good fetch of a key to the next (5 minutes). Up
	// to a tenth less is used, so that keys wanted together are not fetched together.
	Refresh func(key K) time.Duration
	// FirstRetry is the pause after a failed fetch. It doubles with each further
	// failure up to LastRetry (1 second, 1 minute).
	FirstRetry, LastRetry time.Duration
	// MaxFetches is how many fetches run at a time (64), and MaxFetchesPerOwner how
	// many for one owner (2), so that slow servers of one do not hold up another.
	MaxFetches, MaxFetchesPerOwner int
	// Owner names whose fetch a key is; nil is one owner for all keys.
	Owner func(key K) O
}

// Poll returns a [Follow] that fetches again and again, waiting its turn each
// time. A panic of fetch is a failure like any other. fetch sets its own timeout.
func Poll[O, K comparable, V any](fetch func(ctx context.Context, key K) (V, error), now func() time.Time, options PollOptions[O, K]) Follow[K, Fetched[V]] {
	if options.Refresh == nil {
		options.Refresh = func(K) time.Duration { return defaultRefresh }
	}
	if options.FirstRetry <= 0 {
		options.FirstRetry = defaultFirstRetry
	}
	if options.LastRetry <= 0 {
		options.LastRetry = defaultLastRetry
	}
	if options.MaxFetches <= 0 {
		options.MaxFetches = defaultMaxFetches
	}
	if options.MaxFetchesPerOwner <= 0 {
		options.MaxFetchesPerOwner = defaultMaxFetchesPerOwner
	}
	if options.Owner == nil {
		options.Owner = func(K) (one O) { return one }
	}
	p := &poller[O, K, V]{fetch: fetch, now: now, options: options, all: make(chan struct{}, options.MaxFetches), turns: map[O]*turn{}}
	return p.follow
}

// poller fetches the keys of one Set.
type poller[O, K comparable, V any] struct {
	fetch   func(context.Context, K) (V, error)
	now     func() time.Time
	options PollOptions[O, K]
	all     chan struct{} // fetches that run

	mu    sync.Mutex
	turns map[O]*turn
}

// turn bounds the fetches of one owner. It exists while one waits or runs.
type turn struct {
	running chan struct{}
	users   int // guarded by poller.mu
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
	leave, err := p.enter(ctx, p.options.Owner(key))
	if err != nil {
		return value, err
	}
	defer leave()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return p.fetch(ctx, key)
}

// enter waits for the owner's turn first: whoever waits for its own slow servers
// must not hold a place that others could use.
func (p *poller[O, K, V]) enter(ctx context.Context, owner O) (leave func(), err error) {
	p.mu.Lock()
	own := p.turns[owner]
	if own == nil {
		own = &turn{running: make(chan struct{}, p.options.MaxFetchesPerOwner)}
		p.turns[owner] = own
	}
	own.users++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(p.turns, owner)
		}
	}
	select {
	case own.running <- struct{}{}:
	case <-ctx.Done():
		forget()
		return nil, fmt.Errorf("wait to fetch: %w", ctx.Err())
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-own.running
		forget()
		return nil, fmt.Errorf("wait to fetch: %w", ctx.Err())
	}
	return func() { <-p.all; <-own.running; forget() }, nil
}

// doubled is the pause after so many failures before the last one.
func doubled(first, last time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 10), last)
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
