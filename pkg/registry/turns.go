package registry

import (
	"context"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// turns hands out places to accounts. Who has to wait is served round robin,
// one place for each account that waits, so that an account with a thousand
// requests in line keeps another's first one waiting for one place and no longer.
// No account holds more than half of the places, so that there are some for
// whoever comes next.
type turns struct {
	mu          sync.Mutex
	free, each  int
	held        map[verify.Account]int
	waiting     map[verify.Account][]chan struct{}
	inLine      []verify.Account // those that wait, in the order of their turns
	largestLine int              // of one account
}

// newTurns returns turns with so many places, at least one.
func newTurns(places int) *turns {
	places = max(places, 1)
	return &turns{free: places, each: max(places/2, 1), largestLine: maxInLine,
		held: map[verify.Account]int{}, waiting: map[verify.Account][]chan struct{}{}}
}

// acquire waits for a place until ctx ends. It returns errCrowded at once if the
// account has too many in line already.
func (t *turns) acquire(ctx context.Context, account verify.Account) error {
	t.mu.Lock()
	if t.free > 0 && t.held[account] < t.each && len(t.waiting[account]) == 0 {
		t.take(account)
		t.mu.Unlock()
		return nil
	}
	line := t.waiting[account]
	if len(line) >= t.largestLine {
		t.mu.Unlock()
		return errCrowded
	}
	turn := make(chan struct{})
	if len(line) == 0 {
		t.inLine = append(t.inLine, account)
	}
	t.waiting[account] = append(line, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave(account, turn) {
		return ctx.Err()
	}
	// The turn came in the same moment: pass it on.
	t.give(account)
	return ctx.Err()
}

// release gives a place back.
func (t *turns) release(account verify.Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(account)
}

func (t *turns) take(account verify.Account) {
	t.free--
	t.held[account]++
}

func (t *turns) give(account verify.Account) {
	t.free++
	if t.held[account]--; t.held[account] == 0 {
		delete(t.held, account)
	}
	t.serve()
}

// serve lets the next ones in line go, as long as there are places.
func (t *turns) serve() {
	for i := 0; t.free > 0 && i < len(t.inLine); {
		account := t.inLine[i]
		if t.held[account] >= t.each {
			i++
			continue
		}
		line := t.waiting[account]
		t.take(account)
		close(line[0])
		t.inLine = slices.Delete(t.inLine, i, i+1)
		if t.waiting[account] = line[1:]; len(line) == 1 {
			delete(t.waiting, account)
			continue
		}
		t.inLine = append(t.inLine, account) // behind all others
	}
}

// leave takes a turn out of the line; false if it has come.
func (t *turns) leave(account verify.Account, turn chan struct{}) bool {
	line := t.waiting[account]
	at := slices.Index(line, turn)
	if at < 0 {
		return false
	}
	if t.waiting[account] = slices.Delete(line, at, at+1); len(line) == 1 {
		delete(t.waiting, account)
		t.inLine = slices.DeleteFunc(t.inLine, func(a verify.Account) bool { return a == account })
	}
	return true
}
