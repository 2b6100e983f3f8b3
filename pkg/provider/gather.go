package provider

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
)

// work decides about one target before ctx ends, if it heeds ctx. It returns false
// if it knows nothing of the target.
type work func(ctx context.Context, t target) (decision, bool)

// job is the work that is left of a request.
type job struct {
	traceID string
	targets []target
	left    []int // the numbers of those to work on
	do      work
	next    atomic.Int64 // place in left
}

type finished struct {
	number int
	*decision
}

// gather does a job, each target once and some at a time, until ctx has ended and
// the grace after it is over, and notes decisions. It does not wait for work that
// ignores ctx: what is missing then is left undecided.
func (h *handler) gather(ctx context.Context, j *job, decisions []decision, grace time.Duration) {
	done := make(chan finished, len(j.left)) // with room for all, so that late work can end
	for range min(len(j.left), maxParallelKeys) {
		go h.worker(ctx, j, done)
	}
	ended := ctx.Done()
	var over <-chan time.Time
	for missing := len(j.left); missing > 0; {
		select {
		case n := <-done:
			decisions[n.number] = *n.decision
			missing--
		case <-ended:
			ended, over = nil, time.After(grace)
		case <-over:
			return
		}
	}
}

// worker takes targets until there are none left or ctx ends.
func (h *handler) worker(ctx context.Context, j *job, done chan<- finished) {
	select {
	case h.workers <- struct{}{}:
		defer func() { <-h.workers }()
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		next := int(j.next.Add(1)) - 1
		if next >= len(j.left) {
			return
		}
		i := j.left[next]
		d, _ := h.recovering(ctx, j.traceID, j.targets[i], j.do)
		done <- finished{i, &d}
	}
}

// recovering turns a panic into an undecided target: it must neither end the
// process, nor admit anything, nor be kept as a denial.
func (h *handler) recovering(ctx context.Context, traceID string, t target, do work) (d decision, known bool) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			h.log.WithFields(logrus.Fields{"traceID": traceID, "namespace": t.namespace.Label(), "image": t.ref.String(), "stack": cut(string(debug.Stack()), maxStackBytes)}).
				Errorf("panic: %s", cut(fmt.Sprint(cause), maxReasonBytes))
			d, known = undecided("internal error"), true
		}
	}()
	return do(ctx, t)
}
