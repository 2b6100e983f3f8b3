package tenant

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// ErrNotReady means that no resources have been compiled yet: nothing may be
// allowed, and nothing denied for good.
var ErrNotReady = errors.New("resources are not loaded yet, try again")

// Set holds the Snapshot that is in force. Its zero value is not ready. It is
// safe for concurrent use; readers never wait.
type Set struct {
	current atomic.Pointer[Snapshot]
}

// Swap puts a snapshot in force. Requests under way finish with the one that
// they began with.
func (s *Set) Swap(snapshot *Snapshot) { s.current.Store(snapshot) }

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
func (s *Set) Snapshot() *Snapshot { return s.current.Load() }

// Ready returns nil once a snapshot is in force.
func (s *Set) Ready() error {
	if s.current.Load() == nil {
		return ErrNotReady
	}
	return nil
}

// For returns what applies in a namespace; one that declares nothing has the
// cluster's resources.
func (s *Snapshot) For(namespace verify.Namespace) *verify.Config {
	return s.view(namespace).config
}

// Has reports whether the snapshot was compiled with objects of a namespace.
func (s *Snapshot) Has(namespace verify.Namespace) bool {
	_, ok := s.namespaces[namespace]
	return ok
}

// Explain returns, kind by kind, which resources apply in a namespace and why.
func (s *Snapshot) Explain(namespace verify.Namespace) []Choice {
	return s.view(namespace).choices
}

func (s *Snapshot) view(namespace verify.Namespace) *view {
	if v, ok := s.namespaces[namespace]; ok {
		return v
	}
	return s.undeclared.get(namespace, func() *view { return s.link(&level{namespace: namespace}) })
}

// maxUndeclared bounds the memory for namespaces that declare nothing: their
// names come from requests.
const maxUndeclared = 10_000

// memo remembers views up to a number; past it they are made anew each time.
type memo struct {
	mu    sync.RWMutex
	views map[verify.Namespace]*view
}

func (m *memo) get(namespace verify.Namespace, make func() *view) *view {
	m.mu.RLock()
	v, ok := m.views[namespace]
	m.mu.RUnlock()
	if ok {
		return v
	}
	v = make()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.views == nil {
		m.views = map[verify.Namespace]*view{}
	}
	if earlier, ok := m.views[namespace]; ok {
		return earlier
	}
	if len(m.views) < maxUndeclared {
		m.views[namespace] = v
	}
	return v
}
