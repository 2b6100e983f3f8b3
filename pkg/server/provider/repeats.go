package provider

import (
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
	known    map[line]*list.Element
	order    *list.List // of *repeat, the least recently logged first
	accounts map[verify.Account]*accountLines
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
	line    line
	account verify.Account
	logged  time.Time
	again   int // times since then
}

// accountLines counts the lines of an account that are remembered, and has what there is no
// place for.
type accountLines struct {
	places int
	over   repeat
}

func newRepeats(window time.Duration, lines int, now func() time.Time) *repeats {
	return &repeats{window: window, limit: lines, now: now, known: map[line]*list.Element{}, order: list.New(), accounts: map[verify.Account]*accountLines{}}
}

// fresh reports whether to log a line of an account, and how often it came since it was
// last logged.
func (r *repeats) fresh(account verify.Account, l line) (log bool, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.expire(now)
	if known, ok := r.known[l]; ok {
		if log, repeated = repeatOf(known).count(now, r.window); log {
			r.order.MoveToBack(known)
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
		of = &accountLines{}
		r.accounts[account] = of
	}
	of.places++
	r.known[l] = r.order.PushBack(&repeat{line: l, account: account, logged: now})
	return true, 0
}

// room reports whether there is a place for another line of an account, which may be nil.
// It takes one from the account with most, unless that would then have fewer. Once all
// places are taken it looks at every account, but only for lines that are not remembered.
func (r *repeats) room(of *accountLines) bool {
	if len(r.known) < r.limit {
		return true
	}
	have, largest, most := 0, verify.Account(""), 0
	if of != nil {
		have = of.places
	}
	for account, lines := range r.accounts {
		if lines.places > most {
			largest, most = account, lines.places
		}
	}
	if most <= have+1 {
		return false
	}
	oldest := r.order.Front()
	for repeatOf(oldest).account != largest {
		oldest = oldest.Next()
	}
	r.forget(oldest)
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
	for oldest := r.order.Front(); oldest != nil && now.Sub(repeatOf(oldest).logged) >= 2*r.window; oldest = r.order.Front() {
		r.forget(oldest)
	}
}

func (r *repeats) forget(element *list.Element) {
	known := repeatOf(element)
	r.order.Remove(element)
	delete(r.known, known.line)
	of := r.accounts[known.account]
	if of.places--; of.places == 0 {
		delete(r.accounts, known.account)
	}
}

func repeatOf(element *list.Element) *repeat {
	return element.Value.(*repeat) //nolint:forcetypeassert // the list has nothing else
}
