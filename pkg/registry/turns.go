package registry

import (
	"context"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// turns hands out places to namespaces. Who has to wait is served round robin,
// one place for each namespace that waits, so that a namespace with a thousand
// requests in line keeps another's first one waiting for one place and no longer.
// No namespace holds more than half of the places, so that there are some for
// whoever comes next.
type turns struct {
	mu          sync.Mutex
	free, each  int
	held        map[verify.Namespace]int
	waiting     map[verify.Namespace][]chan struct{}
	inLine      []verify.Namespace // those that wait, in the order of their turns
	largestLine int                // of one namespace
}

// newTurns returns turns with so many places, at least one.
func newTurns(places int) *turns {
	places = max(places, 1)
	return &turns{free: places, each: max(places/2, 1), largestLine: maxInLine,
		held: map[verify.Namespace]int{}, waiting: map[verify.Namespace][]chan struct{}{}}
}

// acquire waits for a place until ctx ends. It returns errCrowded at once if the
// namespace has too many in line already.
func (t *turns) acquire(ctx context.Context, namespace verify.Namespace) error {
	t.mu.Lock()
	if t.free > 0 && t.held[namespace] < t.each && len(t.waiting[namespace]) == 0 {
		t.take(namespace)
		t.mu.Unlock()
		return nil
	}
	line := t.waiting[namespace]
	if len(line) >= t.largestLine {
		t.mu.Unlock()
		return errCrowded
	}
	turn := make(chan struct{})
	if len(line) == 0 {
		t.inLine = append(t.inLine, namespace)
	}
	t.waiting[namespace] = append(line, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave(namespace, turn) {
		return ctx.Err()
	}
	// The turn came in the same moment: pass it on.
	t.give(namespace)
	return ctx.Err()
}

// release gives a place back.
func (t *turns) release(namespace verify.Namespace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(namespace)
}

func (t *turns) take(namespace verify.Namespace) {
	t.free--
	t.held[namespace]++
}

func (t *turns) give(namespace verify.Namespace) {
	t.free++
	if t.held[namespace]--; t.held[namespace] == 0 {
		delete(t.held, namespace)
	}
	t.serve()
}

// serve lets the next ones in line go, as long as there are places.
func (t *turns) serve() {
	for i := 0; t.free > 0 && i < len(t.inLine); {
		namespace := t.inLine[i]
		if t.held[namespace] >= t.each {
			i++
			continue
		}
		line := t.waiting[namespace]
		t.take(namespace)
		close(line[0])
		t.inLine = slices.Delete(t.inLine, i, i+1)
		if t.waiting[namespace] = line[1:]; len(line) == 1 {
			delete(t.waiting, namespace)
			continue
		}
		t.inLine = append(t.inLine, namespace) // behind all others
	}
}

// leave takes a turn out of the line; false if it has come.
func (t *turns) leave(namespace verify.Namespace, turn chan struct{}) bool {
	line := t.waiting[namespace]
	at := slices.Index(line, turn)
	if at < 0 {
		return false
	}
	if t.waiting[namespace] = slices.Delete(line, at, at+1); len(line) == 1 {
		delete(t.waiting, namespace)
		t.inLine = slices.DeleteFunc(t.inLine, func(n verify.Namespace) bool { return n == namespace })
	}
	return true
}
