package provider

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// work decides about one target. It should return before ctx ends, and returns
// false if it cannot decide.
type work func(ctx context.Context, t target) (decision, bool)

// job holds the targets of a request that workers decide about.
type job struct {
	traceID string
	targets []target
	left    []int // indexes into targets
	places  *places
	do      work
	next    atomic.Int64 // index into left
}

type finished struct {
	number int
	*decision
}

// gather runs a job with several workers and stores their decisions. It stops
// waiting when the grace after the end of ctx is over: work may ignore ctx, and a
// decision that is missing by then stays undecided.
func (h *handler) gather(ctx context.Context, j *job, decisions []decision, grace time.Duration) {
	done := make(chan finished, len(j.left)) // has room for all, so that late workers never block
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

// worker decides about targets until none is left or ctx ends.
func (h *handler) worker(ctx context.Context, j *job, done chan<- finished) {
	for ctx.Err() == nil {
		next := int(j.next.Add(1)) - 1
		if next >= len(j.left) || !j.places.join() {
			return
		}
		i := j.left[next]
		began := time.Now()
		d, _ := h.recovering(ctx, j.traceID, j.targets[i], j.do)
		d.began, d.took = began, time.Since(began)
		j.places.leave() // first, so that an answered request holds nothing
		done <- finished{i, &d}
	}
}

// recovering turns a panic into an undecided target: a panic must not end the
// process, allow an image, or be cached as a denial.
func (h *handler) recovering(ctx context.Context, traceID string, t target, do work) (d decision, known bool) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			h.log.WithFields(logrus.Fields{"traceID": traceID, "namespace": t.namespace.Label(), "image": t.ref.String(), "stack": policy.Cut(string(debug.Stack()), maxStackBytes)}).
				Errorf("panic: %s", policy.Cut(fmt.Sprint(cause), maxReasonBytes))
			d, known = undecided("internal error"), true
		}
	}()
	return do(ctx, t)
}
