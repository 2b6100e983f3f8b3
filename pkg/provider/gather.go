package provider

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// work decides about one target before ctx ends, if it heeds ctx.
type work func(ctx context.Context, t target) *decision

type numbered struct {
	number int
	*decision
}

// gather does the work for every target, each once and some at a time, until
// ctx has ended and the grace after it is over. It does not wait for work that
// ignores ctx: what is missing then is left undecided.
func (h *handler) gather(ctx context.Context, log *logrus.Entry, targets []target, do work, grace time.Duration) []decision {
	decisions := make([]decision, len(targets))
	done := make(chan numbered, len(targets)) // with room for all, so that late work can end
	var next atomic.Int64
	for range min(len(targets), maxParallelKeys) {
		go h.labour(ctx, log, targets, &next, do, done)
	}
	ended := ctx.Done()
	var over <-chan time.Time
	for missing := len(targets); missing > 0; {
		select {
		case n := <-done:
			decisions[n.number] = *n.decision
			missing--
		case <-ended:
			ended, over = nil, time.After(grace)
		case <-over:
			return decisions
		}
	}
	return decisions
}

// labour takes targets until there are none left or ctx ends.
func (h *handler) labour(ctx context.Context, log *logrus.Entry, targets []target, next *atomic.Int64, do work, done chan<- numbered) {
	select {
	case h.workers <- struct{}{}:
		defer func() { <-h.workers }()
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if i >= len(targets) {
			return
		}
		done <- numbered{i, h.guarded(ctx, log, targets[i], do)}
	}
}

// guarded turns a panic into an undecided target: it must neither end the
// process, nor admit anything, nor be kept as a denial.
func (h *handler) guarded(ctx context.Context, log *logrus.Entry, t target, do work) (d *decision) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			log.WithFields(logrus.Fields{"namespace": t.namespace.Label(), "image": t.ref.String(), "stack": cut(string(debug.Stack()), maxStackBytes)}).
				Errorf("panic: %s", cut(fmt.Sprint(cause), maxReasonBytes))
			d = undecided("internal error")
		}
	}()
	return do(ctx, t)
}
