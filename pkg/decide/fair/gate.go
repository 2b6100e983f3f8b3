// Package fair shares scarce resources between accounts: a [Gate] shares places or bytes and never waits,
// and [Turns] is the queue for processors and connections. Even if one account requests everything,
// another one gets its share. The package knows nothing about images or requests, and reads no clock of
// its own.
package fair

import (
	"sync"
)

// Gate shares a fixed capacity, such as places or bytes. An account may hold at most as much
// as is free for others (dynamic thresholds, Choudhury and Hahne 1998): alone it gets half,
// and a new account gets a share even if others flood the Gate. A Gate never waits: its
// callers have deadlines, so a retry is better than a queue. It is safe for concurrent use.
type Gate[Account comparable] struct {
	mu    sync.Mutex
	total int64
	held  int64
	of    map[Account]int64
}

// NewGate returns a Gate with the given capacity.
func NewGate[Account comparable](total int64) *Gate[Account] {
	return &Gate[Account]{total: total, of: map[Account]int64{}}
}

// Take takes n of the capacity for account. It returns false if too little is free; a request for nothing
// always succeeds. most is the account's own limit; 0 means that it has none. The caller must [Gate.Return]
// what it takes.
func (g *Gate[Account]) Take(account Account, n, most int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	have, free := g.of[account], g.total-g.held
	switch {
	case n == 0:
		return true
	case n < 0 || n > free,
		most > 0 && have+n > most,
		have > 0 && have+n > free:
		return false
	}
	g.add(account, n)
	return true
}

// TakeSpare is Take at low priority: it only succeeds while less than half of the capacity is
// in use, in total, and less than half of most by the account.
func (g *Gate[Account]) TakeSpare(account Account, n, most int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n == 0 {
		return true
	}
	if n < 0 || n > g.total-g.held || 2*g.held >= g.total || most > 0 && 2*g.of[account] >= most {
		return false
	}
	g.add(account, n)
	return true
}

func (g *Gate[Account]) add(account Account, n int64) {
	if n > 0 {
		g.held += n
		g.of[account] += n
	}
}

// Return returns n that account holds.
func (g *Gate[Account]) Return(account Account, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n = min(max(n, 0), g.of[account])
	g.held -= n
	if g.of[account] -= n; g.of[account] == 0 {
		delete(g.of, account)
	}
}

// Hold is the part of a [Gate] that one piece of work holds for an account. It is safe for
// concurrent use.
type Hold[Account comparable] struct {
	gate    *Gate[Account]
	account Account

	mu   sync.Mutex
	held int64
}

// Hold returns an empty Hold.
func (g *Gate[Account]) Hold(account Account) *Hold[Account] {
	return &Hold[Account]{gate: g, account: account}
}

// Another returns an empty Hold for the same account.
func (h *Hold[Account]) Another() *Hold[Account] { return h.gate.Hold(h.account) }

// Take is [Gate.Take] without an account limit.
func (h *Hold[Account]) Take(n int64) bool {
	if !h.gate.Take(h.account, n, 0) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += n
	return true
}

// Release returns everything. Later calls of Take need another Release.
func (h *Hold[Account]) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate.Return(h.account, h.held)
	h.held = 0
}
