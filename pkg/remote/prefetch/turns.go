package prefetch

import (
	"context"
	"fmt"
	"sync"
)

// Turns bounds what runs at a time, in all and for each owner. It is safe for concurrent use.
type Turns[O comparable] struct {
	all  chan struct{} // what runs
	each int

	mu sync.Mutex
	of map[O]*turn
}

// turn is what one owner may run. It exists while something of the owner waits or runs.
type turn struct {
	running chan struct{}
	users   int // guarded by Turns.mu
}

// NewTurns returns Turns for so many in all, and for each owner.
func NewTurns[O comparable](all, each int) *Turns[O] {
	return &Turns[O]{all: make(chan struct{}, all), each: each, of: map[O]*turn{}}
}

// Take waits for a turn. Whoever got one calls done, once or more often.
func (t *Turns[O]) Take(ctx context.Context, owner O) (done func(), err error) {
	return t.take(ctx, owner, t.all)
}

// take is [Turns.Take] with what bounds all of them. It waits for the owner's limit first: an
// owner that waits for its own slow servers must not use up the common limit.
func (t *Turns[O]) take(ctx context.Context, owner O, all chan struct{}) (done func(), err error) {
	t.mu.Lock()
	own := t.of[owner]
	if own == nil {
		own = &turn{running: make(chan struct{}, t.each)}
		t.of[owner] = own
	}
	own.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.of, owner)
		}
	}
	select {
	case own.running <- struct{}{}:
	case <-ctx.Done():
		forget()
		return nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		<-own.running
		forget()
		return nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
	return sync.OnceFunc(func() { <-all; <-own.running; forget() }), nil
}
