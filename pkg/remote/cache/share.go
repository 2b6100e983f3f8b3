package cache

import (
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// shares keeps each account's entries within its share of the memory: an account that
// keeps asking about new images drops its own oldest entries, not those of others. Reads
// do not take its lock.
type shares struct {
	mu sync.Mutex
	of map[verify.Account]*share
}

// share is the entries of one account, oldest first.
type share struct {
	bytes   int64
	weights map[verify.Key]int64
	order   []verify.Key // may name keys that are gone
}

func newShares() *shares {
	return &shares{of: map[verify.Account]*share{}}
}

// add charges an entry to an account that may have most bytes, and returns the keys
// that must go for it.
func (s *shares) add(account verify.Account, key verify.Key, weight, most int64) (drop []verify.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.of[account]
	if !ok {
		own = &share{weights: map[verify.Key]int64{}}
		s.of[account] = own
	}
	if before, there := own.weights[key]; there {
		own.bytes -= before
	} else {
		own.order = append(own.order, key)
	}
	own.weights[key] = weight
	own.bytes += weight
	for own.bytes > most && len(own.weights) > 1 {
		oldest := own.order[0]
		own.order = own.order[1:]
		if oldest == key {
			own.order = append(own.order, key) // it was just rewritten
			continue
		}
		if own.drop(oldest) {
			drop = append(drop, oldest)
		}
	}
	own.compact()
	return drop
}

// remove discharges an entry that is gone.
func (s *shares) remove(account verify.Account, key verify.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.of[account]
	if !ok {
		return
	}
	if own.drop(key); len(own.weights) == 0 {
		delete(s.of, account)
	}
}

func (s *share) drop(key verify.Key) bool {
	weight, there := s.weights[key]
	if there {
		s.bytes -= weight
		delete(s.weights, key)
	}
	return there
}

// compact removes keys that are gone from the order, once they are the majority.
func (s *share) compact() {
	if len(s.order) < 2*len(s.weights)+64 {
		return
	}
	kept := make([]verify.Key, 0, len(s.weights))
	seen := make(map[verify.Key]bool, len(s.weights))
	for _, key := range s.order {
		if _, there := s.weights[key]; there && !seen[key] {
			seen[key] = true
			kept = append(kept, key)
		}
	}
	s.order = kept
}
