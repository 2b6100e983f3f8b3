package fair

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// Turns share processor time. A fixed number of turns run at a time, and the next one
// goes to the account that has used the least (start-time fair queueing, Goyal, Vin and
// Cheng 1996). An account that was idle waits for one turn of an account that floods, and
// not for its queue. Time is measured per turn, so work must take turns that are short.
type Turns[Account comparable] struct {
	now func() time.Time

	mu      sync.Mutex
	free    int
	floor   time.Duration // what the account of the latest turn had used before it
	users   map[Account]*user
	waiting waiting
	paused  time.Time // when what else is ready last went first
	line    line
}

// user is what one account has used, and its queue.
type user struct {
	used    time.Duration
	running int
	queue   []chan struct{}
	index   int // in waiting, while queue is not empty
}

// NewTurns returns Turns that let atOnce run at a time, at least one, and measure with
// now.
func NewTurns[Account comparable](atOnce int, now func() time.Time) *Turns[Account] {
	return &Turns[Account]{now: now, free: max(atOnce, 1), users: map[Account]*user{}}
}

// Turn is the permission to use a processor. It belongs to one goroutine. Its zero value and
// nil hold nothing.
type Turn[Account comparable] struct {
	turns   *Turns[Account]
	account Account
	held    bool
	began   time.Time
	used    time.Duration
}

// Take waits for a turn of account until ctx ends, and then returns its error. Whoever
// takes a turn must [Turn.Leave] it.
func (t *Turns[Account]) Take(ctx context.Context, account Account) (*Turn[Account], error) {
	turn := &Turn[Account]{turns: t, account: account}
	return turn, turn.Enter(ctx)
}

// Try returns a turn of account if one is free at once, else nil.
func (t *Turns[Account]) Try(account Account) *Turn[Account] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return nil
	}
	t.start(t.user(account))
	t.free--
	return &Turn[Account]{turns: t, account: account, held: true, began: t.now()}
}

// Enter waits until the turn is held again after [Turn.Leave], or until ctx ends. Work
// leaves its turn while it waits for something else than a processor.
func (u *Turn[Account]) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	waited, err := u.turns.admit(ctx, u.account)
	if err != nil {
		return err
	}
	if waited {
		u.turns.pause()
	}
	u.held, u.began = true, u.turns.now()
	return nil
}

// admit takes a place, and reports whether it had to wait for one.
func (t *Turns[Account]) admit(ctx context.Context, name Account) (waited bool, err error) {
	t.mu.Lock()
	account := t.user(name)
	if t.free > 0 {
		t.free--
		t.start(account)
		t.mu.Unlock()
		return false, nil
	}
	granted := make(chan struct{})
	account.queue = append(account.queue, granted)
	if len(account.queue) == 1 {
		heap.Push(&t.waiting, account)
	}
	t.mu.Unlock()
	select {
	case <-granted:
		return true, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(account.queue, granted); i >= 0 {
		account.queue = slices.Delete(account.queue, i, i+1)
		if len(account.queue) == 0 {
			heap.Remove(&t.waiting, account.index)
		}
	} else {
		t.end(account, 0) // it was granted while ctx ended
	}
	return true, ctx.Err()
}

// pause lets whatever else is ready run first, once in a quantum. The runtime would not: a
// goroutine that another one wakes runs next and in the other's time, so that short turns would
// follow on each other for ten milliseconds, while requests and answers that are ready wait.
func (t *Turns[Account]) pause() {
	t.mu.Lock()
	now := t.now()
	due := now.Sub(t.paused) >= quantum
	if due {
		t.paused = now
	}
	t.mu.Unlock()
	if due {
		t.line.wait()
	}
}

// Leave ends the turn, for good or until [Turn.Enter]. It does nothing if the turn is not
// held.
func (u *Turn[Account]) Leave() {
	if u == nil || !u.held {
		return
	}
	u.held = false
	t := u.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.now().Sub(u.began)
	u.used += max(took, 0)
	t.end(t.users[u.account], took)
}

// Used returns for how long the turn was held, in all.
func (u *Turn[Account]) Used() time.Duration {
	if u.held {
		return u.used + max(u.turns.now().Sub(u.began), 0)
	}
	return u.used
}

// quantum is how long a turn lasts at least before it is yielded: some ten checks of a
// signature.
const quantum = time.Millisecond

// Yield lets the account that has used the least go first, if the turn has lasted for a
// millisecond. Work that can take longer yields between its steps. It fails if ctx ends
// before the turn is held again.
func (u *Turn[Account]) Yield(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if u == nil || !u.held || u.turns.now().Sub(u.began) < quantum {
		return nil
	}
	u.Leave()
	u.turns.pause()
	return u.Enter(ctx)
}

// user returns the state of an account. One that was idle owes nothing for having been
// so, and gets no credit.
func (t *Turns[Account]) user(account Account) *user {
	u, ok := t.users[account]
	if !ok {
		if len(t.users) >= maxIdle {
			t.forget()
		}
		u = &user{}
		t.users[account] = u
	}
	if u.running == 0 && len(u.queue) == 0 {
		u.used = max(u.used, t.floor)
	}
	return u
}

// start counts a turn that begins.
func (t *Turns[Account]) start(u *user) {
	u.running++
	t.floor = max(t.floor, u.used)
}

// end counts a turn that took so long, and gives its place to the next one.
func (t *Turns[Account]) end(u *user, took time.Duration) {
	u.running--
	u.used += max(took, 0)
	if len(u.queue) > 0 {
		heap.Fix(&t.waiting, u.index)
	}
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	next := t.waiting[0]
	granted := next.queue[0]
	next.queue = next.queue[1:]
	if len(next.queue) == 0 {
		heap.Pop(&t.waiting)
	}
	t.start(next)
	close(granted)
}

// maxIdle is how many accounts are remembered before those that are idle and owe nothing
// are forgotten.
const maxIdle = 1024

// forget drops the accounts that are idle and have used no more than the others.
func (t *Turns[Account]) forget() {
	for account, u := range t.users {
		if u.running == 0 && len(u.queue) == 0 && u.used <= t.floor {
			delete(t.users, account)
		}
	}
}

// waiting is a heap of the accounts that wait, by what they have used.
type waiting []*user

// Len implements [heap.Interface].
func (w waiting) Len() int { return len(w) }

// Less implements [heap.Interface].
func (w waiting) Less(i, j int) bool { return w[i].used < w[j].used }

// Swap implements [heap.Interface].
func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push implements [heap.Interface].
func (w *waiting) Push(x any) {
	u, _ := x.(*user)
	u.index = len(*w)
	*w = append(*w, u)
}

// Pop implements [heap.Interface].
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}
