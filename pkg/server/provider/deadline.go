package provider

import (
	"context"
	"sync"
	"time"
)

// deadline is a lazy [context.WithDeadline], created only once somebody waits for it: a cached
// verdict takes less time than a timer.
type deadline struct {
	parent context.Context //nolint:containedctx // a context itself
	at     time.Time

	mu     sync.Mutex
	made   context.Context //nolint:containedctx // nil until somebody waits
	cancel context.CancelFunc
	over   bool
}

// withDeadline is [context.WithDeadline] for work that rarely waits. A deadline of parent is kept.
func withDeadline(parent context.Context, at time.Time) (context.Context, context.CancelFunc) {
	d := &deadline{parent: parent, at: at}
	return d, d.end
}

func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.cancel != nil {
		d.cancel()
	}
}

// Deadline implements [context.Context].
func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.parent.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made, d.cancel = context.WithDeadline(d.parent, d.at)
		if d.over {
			d.cancel()
		}
	}
	return d.made.Done()
}

// Err implements [context.Context].
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.made != nil:
		return d.made.Err()
	case d.over:
		return context.Canceled
	case d.parent.Err() != nil:
		return d.parent.Err()
	case !time.Now().Before(d.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements [context.Context]. Contexts derived from d find the created one, so that they
// need no goroutine to follow it.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made != nil {
		return d.made.Value(key)
	}
	return d.parent.Value(key)
}
