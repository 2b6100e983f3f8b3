// Package tenant answers for images by namespace: the snapshot in force says what
// applies in the namespace, the engine whether it holds. It refuses to take a
// namespace that it does not know for one that declares nothing.
package tenant

import (
	"errors"
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// ErrNotReady means that no resources have been compiled yet: nothing may be
// allowed, and nothing denied for good.
var ErrNotReady = errors.New("resources are not loaded yet, try again")

// Set holds the Snapshot that is in force. Its zero value is not ready. It is
// safe for concurrent use; readers never wait.
type Set struct {
	current atomic.Pointer[compile.Snapshot]
}

// Swap puts a snapshot in force. Requests under way finish with the one that
// they began with.
func (s *Set) Swap(snapshot *compile.Snapshot) { s.current.Store(snapshot) }

// For returns what applies in a namespace now; verify.Cluster stands for
// cluster resources alone. It returns [ErrNotReady] before the first Swap.
func (s *Set) For(namespace verify.Namespace) (*verify.Config, error) {
	snapshot := s.current.Load()
	if snapshot == nil {
		return nil, ErrNotReady
	}
	return snapshot.For(namespace), nil
}

// Snapshot returns what is in force, nil before the first Swap.
func (s *Set) Snapshot() *compile.Snapshot { return s.current.Load() }

// Ready returns nil once a snapshot is in force.
func (s *Set) Ready() error {
	if s.current.Load() == nil {
		return ErrNotReady
	}
	return nil
}
