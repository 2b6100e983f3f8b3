package resolve

import (
	"maps"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Snapshot is the compiled state of all namespaces at one moment. It is immutable
// except for a cache of namespaces without objects.
type Snapshot struct {
	outside    Outside
	Cluster    *Level
	Tenancy    *tenancy
	levels     map[verify.Namespace]*Level // of namespaces
	Views      map[verify.Namespace]*View  // [verify.Cluster] for cluster resources alone
	members    *members                    // shared by snapshots with the same namespaces and Tenants
	undeclared memo
}

// For returns the configuration of a namespace. The cluster's resources apply to a
// namespace without objects.
func (s *Snapshot) For(namespace verify.Namespace) *verify.Config {
	return s.view(namespace).config
}

// Has reports whether the snapshot was compiled with a namespace.
func (s *Snapshot) Has(namespace verify.Namespace) bool {
	_, ok := s.Views[namespace]
	return ok
}

// Namespaces returns the namespaces that the snapshot was compiled with and
// [verify.Cluster], sorted.
func (s *Snapshot) Namespaces() []verify.Namespace {
	return slices.Sorted(maps.Keys(s.Views))
}

// Explain returns, for each kind, which resources apply in a namespace and why.
func (s *Snapshot) Explain(namespace verify.Namespace) []Choice {
	return s.view(namespace).choices
}

// problems returns the problems of all namespaces, the cluster's first.
func (s *Snapshot) problems() []resource.Problem {
	var all []resource.Problem
	for _, namespace := range s.Namespaces() {
		all = append(all, s.ProblemsOf(namespace)...)
	}
	return all
}

// ProblemsOf returns the problems of one namespace, or of the cluster.
func (s *Snapshot) ProblemsOf(namespace verify.Namespace) []resource.Problem {
	found := s.Views[namespace].problems
	if namespace == verify.Cluster {
		found = append(s.tenantProblems(), found...)
	}
	return found
}

func (s *Snapshot) view(namespace verify.Namespace) *View {
	if v, ok := s.Views[namespace]; ok {
		return v
	}
	return s.undeclared.get(namespace, func() *View { return s.link(&Level{Objects: &Objects{Namespace: namespace}}) })
}

// memo caches up to [maxUndeclared] views; further ones are made for each request.
type memo struct {
	mu    sync.RWMutex
	views map[verify.Namespace]*View
}

func (m *memo) get(namespace verify.Namespace, make func() *View) *View {
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
		m.views = map[verify.Namespace]*View{}
	}
	if earlier, ok := m.views[namespace]; ok {
		return earlier
	}
	if len(m.views) < maxUndeclared {
		m.views[namespace] = v
	}
	return v
}

// EndsOf returns when the trust material of the resources of a namespace, or of the cluster,
// ends, by resource. The map must not be modified.
func (s *Snapshot) EndsOf(namespace verify.Namespace) map[policy.ObjectRef]*compile.Ends {
	if namespace == verify.Cluster {
		return s.Cluster.Ends
	}
	if v, ok := s.Views[namespace]; ok {
		return v.Own.Ends
	}
	return nil
}
