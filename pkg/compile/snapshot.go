package compile

import (
	"sync"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

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
