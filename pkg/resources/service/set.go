package service

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// ErrNotReady means that no resources have been compiled yet. Verdicts are Undecided
// until then.
var ErrNotReady = errors.New("resources are not loaded yet, try again")

// Set holds the current Snapshot. Its zero value is not ready. It is safe for
// concurrent use; readers never block.
type Set struct {
	current atomic.Pointer[compile.Snapshot]
	changed atomic.Int64 // when current was swapped in, in Unix nanoseconds

	mu      sync.Mutex
	swapped chan struct{} // closed by the next Swap; nil without waiters
}

// Swap replaces the current snapshot. Requests in flight finish with the snapshot
// that they began with.
func (s *Set) Swap(snapshot *compile.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.Store(snapshot)
	s.changed.Store(time.Now().UnixNano())
	if s.swapped != nil {
		close(s.swapped)
		s.swapped = nil
	}
}

// watch returns the current snapshot, and a channel that the next Swap closes.
func (s *Set) watch() (*compile.Snapshot, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.swapped == nil {
		s.swapped = make(chan struct{})
	}
	return s.current.Load(), s.swapped
}

// For returns the current configuration of a namespace, or of cluster resources alone
// for [verify.Cluster]. It returns [ErrNotReady] before the first Swap.
func (s *Set) For(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.current.Load()
	if snapshot == nil {
		return nil, ErrNotReady
	}
	return snapshot.For(namespace), nil
}

// Snapshot returns the current snapshot, nil before the first Swap.
func (s *Set) Snapshot() *compile.Snapshot { return s.current.Load() }

// Changed returns when the current snapshot was swapped in, the zero time before the first
// Swap.
func (s *Set) Changed() time.Time {
	at := s.changed.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// Ready returns nil after the first Swap, and [ErrNotReady] before.
func (s *Set) Ready() error {
	if s.current.Load() == nil {
		return ErrNotReady
	}
	return nil
}
