package warm

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// target is an image in a namespace.
type target struct {
	namespace verify.Namespace
	image     string
}

// job is a target that waits for its turn.
type job struct {
	target
	renew bool // what is cached is to be found out anew
	tries int  // that came to nothing
	due   time.Time
}

// queue holds each target once and serves namespaces in turns, one target of a
// namespace at a time: neither how many images a namespace has nor how slow its
// registry is holds up another's.
type queue struct {
	all, each int
	wake      chan struct{}

	mu    sync.Mutex
	jobs  map[target]*job
	lines map[verify.Namespace]*line
	turns []verify.Namespace // that have something ready and are not being served
	held  holding            // those with a pause, the earliest first
}

// line is what waits of one namespace.
type line struct {
	ready   []*job
	waiting int // ready and held
	busy    bool
}

func newQueue(all, each int) *queue {
	return &queue{all: all, each: each, wake: make(chan struct{}, 1), jobs: map[target]*job{}, lines: map[verify.Namespace]*line{}}
}

// add asks for a target to be served. It reports false if there is no room.
func (q *queue) add(t target, renew bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.insert(&job{target: t, renew: renew})
}

// insert needs the lock.
func (q *queue) insert(j *job) bool {
	if same, ok := q.jobs[j.target]; ok {
		same.renew = same.renew || j.renew
		return true
	}
	l := q.lines[j.namespace]
	if len(q.jobs) >= q.all || l != nil && l.waiting >= q.each {
		return false
	}
	if l == nil {
		l = &line{}
		q.lines[j.namespace] = l
	}
	q.jobs[j.target] = j
	l.waiting++
	if j.due.IsZero() {
		q.ready(l, j)
	} else {
		heap.Push(&q.held, j)
	}
	q.signal()
	return true
}

func (q *queue) ready(l *line, j *job) {
	l.ready = append(l.ready, j)
	if len(l.ready) == 1 && !l.busy {
		q.turns = append(q.turns, j.namespace)
	}
}

// signal wakes one worker, which wakes the next if there is more.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for a job until ctx ends. Whoever took one must call done.
func (q *queue) take(ctx context.Context) (*job, bool) {
	for ctx.Err() == nil {
		j, pause := q.next()
		if j != nil {
			return j, true
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil, false
}

// next returns a job, or how long there will be none unless one is added.
func (q *queue) next() (*job, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for len(q.held) > 0 && !q.held[0].due.After(now) {
		j, _ := heap.Pop(&q.held).(*job)
		q.ready(q.lines[j.namespace], j)
	}
	switch {
	case len(q.turns) == 0 && len(q.held) == 0:
		return nil, time.Hour
	case len(q.turns) == 0:
		return nil, q.held[0].due.Sub(now)
	}
	l := q.lines[q.turns[0]]
	q.turns = q.turns[1:]
	j := l.ready[0]
	l.ready[0], l.ready = nil, l.ready[1:]
	l.waiting--
	l.busy = true
	delete(q.jobs, j.target)
	if len(q.turns) > 0 || len(q.held) > 0 {
		q.signal()
	}
	return j, 0
}

// done gives the turn on. With a pause the target is to be tried again after it;
// done reports false if there is no room for that.
func (q *queue) done(j *job, pause time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[j.namespace]
	l.busy = false
	if len(l.ready) > 0 {
		q.turns = append(q.turns, j.namespace)
		q.signal()
	}
	kept := true
	if pause > 0 {
		kept = q.insert(&job{target: j.target, renew: j.renew, tries: j.tries + 1, due: time.Now().Add(pause)})
	}
	if l.waiting == 0 {
		delete(q.lines, j.namespace)
	}
	return kept
}

// holding is a heap of jobs by when they are due.
type holding []*job

// Len implements [heap.Interface].
func (h holding) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h holding) Less(i, k int) bool { return h[i].due.Before(h[k].due) }

// Swap implements [heap.Interface].
func (h holding) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push implements [heap.Interface].
func (h *holding) Push(value any) {
	if j, ok := value.(*job); ok {
		*h = append(*h, j)
	}
}

// Pop implements [heap.Interface].
func (h *holding) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return j
}
