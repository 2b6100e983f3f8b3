package fair

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// Turns shares a resource that a few can use at a time, such as processors or connections. The next
// turn goes to the account that has used the least time (start-time fair queueing, Goyal, Vin and
// Cheng 1996), and among equals to the one that has waited longest. An account that was idle waits
// for one turn of an account that floods, and not for its whole queue.
type Turns[Account comparable] struct {
	now    func() time.Time // nil measures no time
	limits Limits

	mu      sync.Mutex
	free    int
	floor   time.Duration // time used by the account of the latest turn, before it
	users   map[Account]*user
	full    int // number of users at which those that owe nothing are forgotten
	waiting waiting
	queued  uint64    // how often an account was put at the end of the queue
	paused  time.Time // when other runnable goroutines last went first
	line    line
}

// Limits bound [Turns]. The zero value lets one turn run at a time, and none wait.
type Limits struct {
	Total int // turns that run at a time, at least one
	Each  int // of them of one account, at least one
	Queue int // turns of one account that wait
}

// Unbounded disables a limit.
const Unbounded = math.MaxInt

// ErrQueueFull means that the account's queue is full.
var ErrQueueFull = errors.New("too many turns are waiting")

// user is the time that one account has used, and its queue.
type user struct {
	used    time.Duration
	running int
	queue   []chan struct{}
	since   uint64 // position among accounts with the same usage
	index   int    // in waiting, else -1
}

// NewTurns returns Turns for processors: total run at a time, at least one. It measures time with now,
// so turns must be short.
func NewTurns[Account comparable](total int, now func() time.Time) *Turns[Account] {
	return newTurns[Account](Limits{Total: total, Each: Unbounded, Queue: Unbounded}, now)
}

// RoundRobin returns Turns that measure no time, for work that waits for others: accounts take turns.
func RoundRobin[Account comparable](limits Limits) *Turns[Account] {
	return newTurns[Account](limits, nil)
}

func newTurns[Account comparable](limits Limits, now func() time.Time) *Turns[Account] {
	limits.Total, limits.Each = max(limits.Total, 1), max(limits.Each, 1)
	return &Turns[Account]{now: now, limits: limits, free: limits.Total, users: map[Account]*user{}, full: maxIdle}
}

// Turn is the permission to run. It belongs to one goroutine. Its zero value and nil hold nothing.
type Turn[Account comparable] struct {
	turns   *Turns[Account]
	account Account
	held    bool
	began   time.Time
	used    time.Duration
}

// Take waits for a turn of account. If ctx ends first, it returns the error of ctx. It
// returns [ErrQueueFull] immediately if the queue is full. The caller must [Turn.Leave] the
// turn.
func (t *Turns[Account]) Take(ctx context.Context, account Account) (*Turn[Account], error) {
	turn := &Turn[Account]{turns: t, account: account}
	return turn, turn.Enter(ctx)
}

// Try returns a turn of account if one is free now, else nil.
func (t *Turns[Account]) Try(account Account) *Turn[Account] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		return nil
	}
	user := t.user(account)
	if user.running >= t.limits.Each {
		return nil
	}
	t.start(user)
	return &Turn[Account]{turns: t, account: account, held: true, began: t.time()}
}

// Enter waits until the turn is held again after [Turn.Leave], as [Turns.Take] does. Work leaves its
// turn while it waits for anything but a processor.
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
	u.held, u.began = true, u.turns.time()
	return nil
}

// time returns the time, zero if none is measured.
func (t *Turns[Account]) time() (now time.Time) {
	if t.now != nil {
		now = t.now()
	}
	return now
}

// admit takes a place, and reports whether it had to wait for one.
func (t *Turns[Account]) admit(ctx context.Context, account Account) (waited bool, err error) {
	t.mu.Lock()
	user := t.user(account)
	if t.free > 0 && user.running < t.limits.Each {
		t.start(user)
		t.mu.Unlock()
		return false, nil
	}
	if len(user.queue) >= t.limits.Queue {
		t.forgetIdle(account)
		t.mu.Unlock()
		return false, ErrQueueFull
	}
	granted := make(chan struct{})
	if len(user.queue) == 0 {
		t.toEnd(user)
	}
	user.queue = append(user.queue, granted)
	t.sort(user)
	t.mu.Unlock()
	select {
	case <-granted:
		return true, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(user.queue, granted); i >= 0 {
		user.queue = slices.Delete(user.queue, i, i+1)
		t.sort(user)
		t.forgetIdle(account)
	} else {
		t.end(account, 0) // it was granted while ctx ended
	}
	return true, ctx.Err()
}

// pause lets all other runnable goroutines run first, once in a quantum. The runtime would not:
// a goroutine that another one wakes runs next and in the other's time slice, so short turns
// would follow each other for ten milliseconds while ready requests and answers wait.
func (t *Turns[Account]) pause() {
	if t.now == nil {
		return
	}
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
	took := max(t.time().Sub(u.began), 0)
	u.used += took
	t.end(u.account, took)
}

// Used returns the total time for which the turn was held.
func (u *Turn[Account]) Used() time.Duration {
	if u.held {
		return u.used + max(u.turns.time().Sub(u.began), 0)
	}
	return u.used
}

// quantum is the shortest time before a turn yields, enough for about ten signature checks.
const quantum = time.Millisecond

// Yield lets the account that has used the least go first, if the turn has lasted for a
// millisecond. Long work yields between its steps. It fails if ctx ends before the turn is
// held again.
func (u *Turn[Account]) Yield(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if u == nil || !u.held || u.turns.time().Sub(u.began) < quantum {
		return nil
	}
	u.Leave()
	u.turns.pause()
	return u.Enter(ctx)
}

// user returns the state of an account. An account that was idle owes nothing for that time,
// and gets no credit.
func (t *Turns[Account]) user(account Account) *user {
	u, ok := t.users[account]
	if !ok {
		if len(t.users) >= t.full && t.now != nil { // without a measure, none is remembered that is idle
			t.forget()
			t.full = max(maxIdle, 2*len(t.users)) // looking at all of them for each new one takes too long
		}
		u = &user{index: -1}
		t.users[account] = u
	}
	if u.running == 0 && len(u.queue) == 0 {
		u.used = max(u.used, t.floor)
	}
	return u
}

// start gives a turn to an account.
func (t *Turns[Account]) start(u *user) {
	t.free--
	u.running++
	t.floor = max(t.floor, u.used)
}

// toEnd moves an account behind the others with the same usage.
func (t *Turns[Account]) toEnd(u *user) {
	t.queued++
	u.since = t.queued
}

// sort moves an account to its position in waiting. It removes an account that has no turns to
// run, or may run no more.
func (t *Turns[Account]) sort(u *user) {
	switch wants := len(u.queue) > 0 && u.running < t.limits.Each; {
	case wants && u.index < 0:
		heap.Push(&t.waiting, u)
	case wants:
		heap.Fix(&t.waiting, u.index)
	case u.index >= 0:
		heap.Remove(&t.waiting, u.index)
	}
}

// end records the duration of a turn, and gives its place to the next one.
func (t *Turns[Account]) end(account Account, took time.Duration) {
	u := t.users[account]
	t.free++
	u.running--
	u.used += took
	t.sort(u)
	if len(t.waiting) > 0 {
		next := t.waiting[0]
		close(next.queue[0])
		next.queue = next.queue[1:]
		t.start(next)
		t.toEnd(next)
		t.sort(next)
	}
	t.forgetIdle(account)
}

// forgetIdle drops an account that is idle, if accounts cannot owe time.
func (t *Turns[Account]) forgetIdle(account Account) {
	if t.now != nil {
		return
	}
	if u := t.users[account]; u.running == 0 && len(u.queue) == 0 {
		delete(t.users, account)
	}
}

// maxIdle is the minimum number of accounts that are kept before idle accounts that owe nothing
// are forgotten.
const maxIdle = 1024

// forget drops the idle accounts that have used no more than the others.
func (t *Turns[Account]) forget() {
	for account, u := range t.users {
		if u.running == 0 && len(u.queue) == 0 && u.used <= t.floor {
			delete(t.users, account)
		}
	}
}

// waiting is a heap of the accounts that wait for a turn and may take one, ordered by usage.
type waiting []*user

// Len implements [heap.Interface].
func (w waiting) Len() int { return len(w) }

// Less implements [heap.Interface].
func (w waiting) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].used, w[j].used), cmp.Compare(w[i].since, w[j].since)) < 0
}

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
	last.index = -1
	return last
}
