package provider

import (
	"container/heap"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// repeats remembers log lines, so that the same one is logged once in a window. An audit
// finds the same denied pods every minute, and a ReplicaSet tries again for ever.
//
// All accounts share a number of lines evenly: a new line takes the place of the oldest one
// of the account with most. An account without a place for a line logs one in a while for
// all of those. So no account fills the log or the memory, and none changes which lines of
// another are logged that has no more of them than its even share. It is safe for
// concurrent use.
type repeats struct {
	window time.Duration
	limit  int
	now    func() time.Time

	mu       sync.Mutex
	known    map[line]*repeat
	order    *list.List // of *repeat, the least recently logged first
	accounts map[verify.Account]*crowd
	largest  largest
	rest     repeat // the lines of accounts that are too many to have a place each
}

// line is what makes a line the same as another: a hash of its fields.
type line [sha256.Size]byte

func lineOf(fields ...string) line {
	hash := sha256.New()
	for _, field := range fields {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		hash.Write(length[:])
		hash.Write([]byte(field))
	}
	return line(hash.Sum(nil))
}

// repeat is one line that was logged.
type repeat struct {
	line   line
	of     *crowd
	logged time.Time
	again  int // times since then

	inOrder, inCrowd *list.Element
}

// crowd is an account with lines that are remembered, and what it has no places for.
type crowd struct {
	account verify.Account
	lines   *list.List // of *repeat, the least recently logged first
	over    repeat
	index   int // in largest
}

// largest is a heap of accounts, of which the first has the most lines.
type largest []*crowd

func (h *largest) Len() int           { return len(*h) }
func (h *largest) Less(i, j int) bool { return (*h)[i].lines.Len() > (*h)[j].lines.Len() }

func (h *largest) Swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].index, (*h)[j].index = i, j
}

// Push implements [heap.Interface].
func (h *largest) Push(x any) {
	of := x.(*crowd) //nolint:forcetypeassert // the heap has nothing else
	of.index = len(*h)
	*h = append(*h, of)
}

// Pop implements [heap.Interface].
func (h *largest) Pop() any {
	last := len(*h) - 1
	of := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return of
}

func newRepeats(window time.Duration, lines int, now func() time.Time) *repeats {
	return &repeats{window: window, limit: lines, now: now, known: map[line]*repeat{}, order: list.New(), accounts: map[verify.Account]*crowd{}}
}

// fresh reports whether to log a line of an account, and how often it came since it was
// last logged.
func (r *repeats) fresh(account verify.Account, l line) (log bool, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.expire(now)
	if known, ok := r.known[l]; ok {
		if log, repeated = known.count(now, r.window); log {
			r.order.MoveToBack(known.inOrder)
			known.of.lines.MoveToBack(known.inCrowd)
		}
		return log, repeated
	}
	of := r.accounts[account]
	switch {
	case r.room(of):
	case of == nil:
		return r.rest.count(now, crowdedInterval)
	default:
		return of.over.count(now, crowdedInterval)
	}
	if of == nil {
		of = &crowd{account: account, lines: list.New()}
		r.accounts[account] = of
		heap.Push(&r.largest, of)
	}
	known := &repeat{line: l, of: of, logged: now}
	known.inOrder, known.inCrowd = r.order.PushBack(known), of.lines.PushBack(known)
	r.known[l] = known
	heap.Fix(&r.largest, of.index)
	return true, 0
}

// room reports whether there is a place for another line of an account, which may be nil.
// It takes one from the account with most, unless that would then have fewer.
func (r *repeats) room(of *crowd) bool {
	if len(r.known) < r.limit {
		return true
	}
	have, most := 0, r.largest[0]
	if of != nil {
		have = of.lines.Len()
	}
	if most.lines.Len() <= have+1 {
		return false
	}
	r.forget(most.lines.Front())
	return true
}

// count counts a line, and reports whether the window since it was logged is over.
func (r *repeat) count(now time.Time, window time.Duration) (log bool, repeated int) {
	if !r.logged.IsZero() && now.Sub(r.logged) < window {
		r.again++
		return false, 0
	}
	repeated = r.again
	r.logged, r.again = now, 0
	return true, repeated
}

// expire forgets lines that did not come again: for another window after the one in which
// they are not logged, because that is when the next one says how often they came.
func (r *repeats) expire(now time.Time) {
	for element := r.order.Front(); element != nil; element = r.order.Front() {
		if oldest := element.Value.(*repeat); now.Sub(oldest.logged) < 2*r.window { //nolint:forcetypeassert // the list has nothing else
			return
		}
		r.forget(element)
	}
}

// forget forgets the line of an element of either list.
func (r *repeats) forget(element *list.Element) {
	known := element.Value.(*repeat) //nolint:forcetypeassert // the lists have nothing else
	r.order.Remove(known.inOrder)
	delete(r.known, known.line)
	of := known.of
	of.lines.Remove(known.inCrowd)
	heap.Fix(&r.largest, of.index)
	if of.lines.Len() == 0 {
		heap.Remove(&r.largest, of.index)
		delete(r.accounts, of.account)
	}
}
