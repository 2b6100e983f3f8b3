package prefetch

import (
	"context"
	"maps"
	"time"
)

// attach adds a key to the keys of an owner. The caller of every function in this file except
// sweepUntil holds mu.
func (s *Set[O, K, V]) attach(owner O, key K) *entry[O, K, V] {
	now := s.now()
	e := s.entries[key]
	if e == nil {
		e = &entry[O, K, V]{key: key, answered: make(chan struct{}), owners: map[O]bool{}, since: now}
		s.entries[key] = e
		if s.begin != nil {
			s.begin(e)
		}
	}
	e.used = now
	if e.owners[owner] {
		return e
	}
	own := s.shares[owner]
	if own == nil {
		own = &share[O, K, V]{keys: map[K]*entry[O, K, V]{}}
		s.shares[owner] = own
	}
	e.owners[owner] = true
	own.keys[key] = e
	own.bytes += e.size
	return e
}

// detach removes a key from the keys of an owner. It drops a key without owners and ends its
// Follow.
func (s *Set[O, K, V]) detach(owner O, e *entry[O, K, V]) {
	own := s.shares[owner]
	own.bytes -= e.size
	if delete(own.keys, e.key); len(own.keys) == 0 {
		delete(s.shares, owner)
	}
	if delete(e.owners, owner); len(e.owners) > 0 {
		return
	}
	s.bytes -= e.size
	delete(s.entries, e.key)
	if e.stop != nil {
		e.stop()
	}
	e.answer()
}

// resize accounts for the new size of an entry and makes room for it.
func (s *Set[O, K, V]) resize(e *entry[O, K, V], size int) {
	grown := size - e.size
	e.size = size
	s.bytes += grown
	for owner := range e.owners {
		own := s.shares[owner]
		own.bytes += grown
		for s.options.MaxBytes > 0 && own.bytes > s.options.MaxBytes && len(own.keys) > 1 {
			s.detach(owner, own.oldest(e))
		}
	}
	for s.options.MaxBytesTotal > 0 && s.bytes > s.options.MaxBytesTotal {
		owner, own := s.largest()
		s.detach(owner, own.oldest(nil))
	}
}

// largest returns the owner with the most bytes, and among equals the one with the least
// recently used key. There must be at least one owner.
func (s *Set[O, K, V]) largest() (found O, most *share[O, K, V]) {
	for owner, own := range s.shares {
		if most == nil || own.bytes > most.bytes || own.bytes == most.bytes && own.oldest(nil).used.Before(most.oldest(nil).used) {
			found, most = owner, own
		}
	}
	return found, most
}

// sweepUntil drops idle keys until ctx ends.
func (s *Set[O, K, V]) sweepUntil(ctx context.Context) {
	if s.options.Idle <= 0 {
		<-ctx.Done()
		return
	}
	for sleep(ctx, s.options.Idle/sweepsPerIdle) {
		s.mu.Lock()
		s.sweep(s.now().Add(-s.options.Idle))
		s.mu.Unlock()
	}
}

func (s *Set[O, K, V]) sweep(before time.Time) {
	for owner, own := range maps.Clone(s.shares) {
		for _, e := range maps.Clone(own.keys) {
			if e.used.Before(before) {
				s.detach(owner, e)
			}
		}
	}
}

// oldest returns the least recently used key other than except.
func (o *share[O, K, V]) oldest(except *entry[O, K, V]) *entry[O, K, V] {
	var found *entry[O, K, V]
	for _, e := range o.keys {
		if e != except && (found == nil || e.used.Before(found.used)) {
			found = e
		}
	}
	return found
}

// pending counts the keys without an answer.
func (o *share[O, K, V]) pending() (count int) {
	for _, e := range o.keys {
		if !e.isAnswered() {
			count++
		}
	}
	return count
}

func (e *entry[O, K, V]) isAnswered() bool {
	select {
	case <-e.answered:
		return true
	default:
		return false
	}
}

func (e *entry[O, K, V]) answer() {
	if !e.isAnswered() {
		close(e.answered)
	}
}
