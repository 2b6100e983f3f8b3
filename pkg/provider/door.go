package provider

import (
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/fair"
	"github.com/landwaiter/landwaiter/pkg/verify"
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

// enter takes the places of a request. It returns the account that has too many keys at
// the door, if one does, and then no places.
func (h *handler) enter(plan plan) (*places, verify.Account, bool) {
	p := &places{gate: h.door, held: map[verify.Account]int64{}}
	p.refs.Store(1)
	var keys map[verify.Account]int64
	keys, p.payer = h.accounts(plan)
	for account, n := range keys {
		for range n { // one by one: a few large requests, each of another account, leave room too
			if !h.door.Take(account, 1, 0) {
				p.leave()
				return nil, account, false
			}
			p.held[account]++
		}
	}
	return p, "", true
}

// accounts returns how many keys of a plan belong to each account, and the account of the
// first one. Malformed keys belong to nobody, but are kept for as long as those that they
// came with.
func (h *handler) accounts(plan plan) (keys map[verify.Account]int64, first verify.Account) {
	keys = map[verify.Account]int64{}
	malformed := int64(0)
	for _, key := range plan.keys {
		if key.err != nil {
			malformed++
			continue
		}
		account := h.decider.Account(plan.targets[key.target].namespace)
		if len(keys) == 0 {
			first = account
		}
		keys[account]++
	}
	if len(keys) > 0 {
		keys[first] += malformed
	}
	return keys, first
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
