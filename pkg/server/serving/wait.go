package serving

import (
	"context"
	"time"
)

// notify puts a token into changed, unless there is one already.
func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// sleep waits for a token in changed or for a time, zero for no time. It returns
// false once ctx has ended.
func sleep(ctx context.Context, changed <-chan struct{}, until time.Time) bool {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
