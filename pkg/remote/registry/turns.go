package registry

import (
	"context"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// turns bounds the requests in flight to one host. Accounts that wait are served round
// robin, so that the first request of one waits for one request of another account and not
// for its whole queue. No account has more than half of the capacity, so that there is
// some left for the next one.
type turns struct {
	mu         sync.Mutex
	free, each int
	held       map[verify.Account]int
	waiting    map[verify.Account][]chan struct{}
	order      []verify.Account // accounts that wait, in the order of their turns
	longest    int              // queue of one account
}

// newTurns returns turns for at most so many requests in flight, at least one.
func newTurns(capacity int) *turns {
	capacity = max(capacity, 1)
	return &turns{free: capacity, each: max(capacity/2, 1), longest: maxQueue,
		held: map[verify.Account]int{}, waiting: map[verify.Account][]chan struct{}{}}
}

// acquire waits for capacity until ctx ends. It returns errOverloaded at once if too many
// requests of the account are waiting.
func (t *turns) acquire(ctx context.Context, account verify.Account) error {
	t.mu.Lock()
	if t.free > 0 && t.held[account] < t.each && len(t.waiting[account]) == 0 {
		t.take(account)
		t.mu.Unlock()
		return nil
	}
	queue := t.waiting[account]
	if len(queue) >= t.longest {
		t.mu.Unlock()
		return errOverloaded
	}
	turn := make(chan struct{})
	if len(queue) == 0 {
		t.order = append(t.order, account)
	}
	t.waiting[account] = append(queue, turn)
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
	// The turn came at the same moment: pass it on.
	t.give(account)
	return ctx.Err()
}

// release ends a request of the account.
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

// serve admits the next requests while there is capacity.
func (t *turns) serve() {
	for i := 0; t.free > 0 && i < len(t.order); {
		account := t.order[i]
		if t.held[account] >= t.each {
			i++
			continue
		}
		queue := t.waiting[account]
		t.take(account)
		close(queue[0])
		t.order = slices.Delete(t.order, i, i+1)
		if t.waiting[account] = queue[1:]; len(queue) == 1 {
			delete(t.waiting, account)
			continue
		}
		t.order = append(t.order, account) // behind all others
	}
}

// leave removes a request from the queue. It returns false if its turn has come.
func (t *turns) leave(account verify.Account, turn chan struct{}) bool {
	queue := t.waiting[account]
	at := slices.Index(queue, turn)
	if at < 0 {
		return false
	}
	if t.waiting[account] = slices.Delete(queue, at, at+1); len(queue) == 1 {
		delete(t.waiting, account)
		t.order = slices.DeleteFunc(t.order, func(a verify.Account) bool { return a == account })
	}
	return true
}
