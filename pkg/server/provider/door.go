package provider

import (
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// places are what one request holds at the door: one for each of its distinct keys, in
// its account. They are given back when the request is answered and none of its workers
// works any more, so that work that ignores its deadline stays counted.
type places struct {
	gate *fair.Gate[verify.Account]
	held map[verify.Account]int64
	// payer is the account of the first key. It pays for the processor time that the request
	// takes as a whole.
	payer verify.Account
	refs  atomic.Int64
}

// enter takes the places of a request, one by one: a few large requests, each of another
// account, leave room too. Malformed keys belong to nobody, but stay in memory for as long as
// those that they came with, so the account of the first key has places for them. enter returns
// the account that has too many keys at the door, if one does, and then no places.
func (h *handler) enter(plan plan) (*places, verify.Account, bool) {
	p := &places{gate: h.door, held: map[verify.Account]int64{}}
	p.refs.Store(1)
	malformed := 0
	for _, key := range plan.keys {
		if key.err != nil {
			malformed++
			continue
		}
		account := h.decider.Account(plan.targets[key.target].namespace)
		if len(p.held) == 0 {
			p.payer = account
		}
		if !p.take(account) {
			return nil, account, false
		}
	}
	if len(p.held) == 0 {
		malformed = 0 // the answer is at hand
	}
	for range malformed {
		if !p.take(p.payer) {
			return nil, p.payer, false
		}
	}
	return p, "", true
}

// take takes one place, or gives all back.
func (p *places) take(account verify.Account) bool {
	if !p.gate.Take(account, 1, 0) {
		p.leave()
		return false
	}
	p.held[account]++
	return true
}

// join shares the places with a worker, which must leave. It reports false if they were
// given back already.
func (p *places) join() bool {
	for {
		n := p.refs.Load()
		if n <= 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave gives the places back if nobody else shares them.
func (p *places) leave() {
	if p.refs.Add(-1) > 0 {
		return
	}
	for account, n := range p.held {
		p.gate.Return(account, n)
	}
}
