package fair

import "sync"

// Hold is what one piece of work holds of a [Gate], for an account that pays for all of
// it. It is safe for concurrent use.
type Hold[Account comparable] struct {
	gate    *Gate[Account]
	account Account

	mu   sync.Mutex
	held int64
}

// Hold returns a Hold that holds nothing yet.
func (g *Gate[Account]) Hold(account Account) *Hold[Account] {
	return &Hold[Account]{gate: g, account: account}
}

// Take is [Gate.Take] without a limit of the account's own.
func (h *Hold[Account]) Take(n int64) bool {
	if !h.gate.Take(h.account, n, 0) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += n
	return true
}

// Release returns everything. What is taken afterwards needs another Release.
func (h *Hold[Account]) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate.Return(h.account, h.held)
	h.held = 0
}
