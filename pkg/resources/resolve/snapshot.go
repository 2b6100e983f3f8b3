// Package resolve determines what applies in each namespace. It groups resources by level,
// compiles them, and selects the verifiers, stores and policies of a namespace from the namespace
// itself, the home namespace of its Tenant or the cluster, separately for each kind. A Snapshot is
// the result at one moment.
//
// It is pure. It refuses to treat a broken resource as a missing one: everything that depends on
// it denies.
package resolve

import (
	"maps"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Snapshot is the compiled state of all namespaces at one moment. It is immutable except for
// a cache of namespaces without objects.
type Snapshot struct {
	outside    Outside
	cluster    *Level
	tenancy    *tenancy
	levels     map[verify.Namespace]*Level // of namespaces
	views      map[verify.Namespace]*View  // [verify.Cluster] for cluster resources alone
	members    *members                    // shared by snapshots with the same namespaces and cluster resources
	undeclared memo
}

// Empty returns a snapshot without resources. It and the snapshots that [Snapshot.Next] derives from it reach the
// network through outside.
func Empty(outside Outside) *Snapshot {
	s, _ := (&Snapshot{outside: outside, levels: map[verify.Namespace]*Level{}, views: map[verify.Namespace]*View{}}).
		Next(Group(resource.Objects{}), nil)
	return s
}

// Next returns the snapshot after a change, and the problems of the changed levels, for their owners; s itself does
// not change. changed has the changed levels, nil for a deleted namespace, and fetched the content of the sources
// that they name. Next never fails: a problem in a namespace denies in that namespace, and one in the cluster's
// objects denies wherever they apply.
//
// Next reuses a level or a view if its input is the same as in s. A change of the cluster's objects, or of the Tenant
// of a namespace, may affect every namespace; any other change only affects namespaces of the same Tenants.
func (s *Snapshot) Next(changed Levels, fetched external.Fetched) (*Snapshot, []resource.Problem) {
	next := &Snapshot{outside: s.outside, cluster: s.cluster, tenancy: s.tenancy, members: s.members, levels: maps.Clone(s.levels),
		views: maps.Clone(s.views)}
	concerned := next.replace(changed, fetched)
	next.compile(concerned)
	for _, namespace := range concerned { // all are compiled: a Tenant's home namespace is linked to its members
		own, was := next.levels[namespace], s.views[namespace]
		if was != nil && was.Own == own && was.Home == next.levels[was.home] && next.members == s.members {
			continue // nothing from the cluster or a Tenant has changed
		}
		bound := next.bind(own)
		if was == nil || was.Own != own || was.bound != bound || was.used != was.using(next.cluster.shared) {
			next.views[namespace] = next.link(own, bound)
		}
	}
	if next.cluster != s.cluster {
		next.views[verify.Cluster] = next.linkEmpty(verify.Cluster)
	}
	var problems []resource.Problem
	for _, level := range slices.Sorted(maps.Keys(changed)) {
		problems = append(problems, next.ProblemsOf(level)...)
	}
	return next, problems
}

// replace replaces the changed levels and returns the namespaces that this may affect. Some of these are only weighed
// so far.
func (s *Snapshot) replace(changed Levels, fetched external.Fetched) []verify.Namespace {
	cluster, everywhere := changed[verify.Cluster]
	if everywhere {
		s.cluster = s.outside.level(weigh(cluster.with(fetched), nil), nil, excess{})
	}
	moved := everywhere
	for namespace, found := range changed {
		if namespace == verify.Cluster {
			continue
		}
		before, existed := s.levels[namespace]
		if existed != (found != nil) {
			s.members = &members{}
		}
		if found == nil {
			delete(s.levels, namespace)
			delete(s.views, namespace)
		} else {
			s.levels[namespace] = &Level{weighed: weigh(found.with(fetched), s.cluster)}
		}
		moved = moved || before.label() != s.levels[namespace].label()
	}
	if !moved {
		return s.concerned(changed)
	}
	s.tenancy, s.members = newTenancy(s.cluster.Objects, s.labels()), &members{}
	if everywhere {
		s.weighAgain()
	}
	return slices.Collect(maps.Keys(s.levels))
}

// label returns the Tenant that the label of a namespace names, "" for none and for a namespace that does not exist.
func (l *Level) label() string {
	if l == nil {
		return ""
	}
	return l.Objects.labelled
}

// weighAgain weighs the namespaces that name a changed ClusterTrustStore.
func (s *Snapshot) weighAgain() {
	for namespace, l := range s.levels {
		if !l.follows(s.cluster) {
			s.levels[namespace] = &Level{weighed: weigh(l.Objects, s.cluster)}
		}
	}
}

// compile compiles the given namespaces that are only weighed, and those that cross the limits of their account in
// either direction.
func (s *Snapshot) compile(namespaces []verify.Namespace) {
	excesses := s.excesses(namespaces)
	for _, namespace := range namespaces {
		if l := s.levels[namespace]; !l.compiled || l.excess != excesses[namespace] {
			s.levels[namespace] = s.outside.level(l.weighed, s.cluster, excesses[namespace])
		}
	}
}

// ChangedSince returns the namespaces of s whose configuration is not that of an earlier snapshot: a change of one may
// deny others of its Tenant.
func (s *Snapshot) ChangedSince(earlier *Snapshot) (changed []verify.Namespace) {
	for namespace, v := range s.views {
		if earlier.views[namespace] != v {
			changed = append(changed, namespace)
		}
	}
	return changed
}

// For returns the configuration of a namespace. The cluster's resources apply to a namespace
// without objects.
func (s *Snapshot) For(namespace verify.Namespace) *verify.Config {
	return s.view(namespace).config
}

// Cluster returns the cluster's level.
func (s *Snapshot) Cluster() *Level { return s.cluster }

// View returns the view of a compiled namespace, or of [verify.Cluster], nil for others.
func (s *Snapshot) View(namespace verify.Namespace) *View { return s.views[namespace] }

// Level returns the compiled resources of a namespace in the snapshot, or of the cluster, nil for
// others.
func (s *Snapshot) Level(namespace verify.Namespace) *Level {
	if namespace == verify.Cluster {
		return s.cluster
	}
	if v := s.views[namespace]; v != nil {
		return v.Own
	}
	return nil
}

// Tenants returns the Tenants, which know the holder of each namespace.
func (s *Snapshot) Tenants() *resource.Tenants { return s.tenancy.Tenants }

// TenantError returns why a Tenant cannot be used, nil if it can.
func (s *Snapshot) TenantError(source policy.ObjectRef) error { return s.tenancy.unusable[source] }

// Has reports whether the snapshot was compiled with a namespace.
func (s *Snapshot) Has(namespace verify.Namespace) bool {
	_, ok := s.views[namespace]
	return ok
}

// Namespaces returns the namespaces of the snapshot and [verify.Cluster], sorted.
func (s *Snapshot) Namespaces() []verify.Namespace {
	return slices.Sorted(maps.Keys(s.views))
}

// Explain returns, for each kind, which resources apply in a namespace and why.
func (s *Snapshot) Explain(namespace verify.Namespace) []Choice {
	return s.view(namespace).choices
}

// ProblemsOf returns the problems of one namespace, or of the cluster.
func (s *Snapshot) ProblemsOf(namespace verify.Namespace) []resource.Problem {
	switch v := s.views[namespace]; {
	case v == nil:
		return nil
	case namespace == verify.Cluster:
		return append(s.tenantProblems(), v.problems...)
	default:
		return v.problems
	}
}

func (s *Snapshot) view(namespace verify.Namespace) *View {
	if v, ok := s.views[namespace]; ok {
		return v
	}
	return s.undeclared.get(namespace, func() *View { return s.linkEmpty(namespace) })
}

// memo caches up to [maxUndeclared] views; further ones are built for each request.
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

// EndsOf returns the expiry of the trust material of a namespace's or the cluster's
// resources, by resource. Callers must not modify the map.
func (s *Snapshot) EndsOf(namespace verify.Namespace) map[policy.ObjectRef]*compile.Ends {
	if l := s.Level(namespace); l != nil {
		return l.Ends
	}
	return nil
}

// Count is the number of resources of one kind.
type Count struct{ All, NotReady int }

// Counts returns, for each kind of its scope, how many resources a namespace or the cluster
// has, and how many of them have a problem. It is cheap enough to call for all namespaces at
// each scrape. It returns nil for a namespace that is not in s.
func (s *Snapshot) Counts(namespace verify.Namespace) map[string]Count {
	own := s.Level(namespace)
	if own == nil {
		return nil
	}
	broken := map[policy.ObjectRef]bool{}
	for _, p := range s.ProblemsOf(namespace) {
		broken[p.Source] = true
	}
	counts := map[string]Count{}
	for _, kind := range v1beta1.Kinds() {
		if kind.Namespaced == (namespace != verify.Cluster) {
			counts[kind.Name] = Count{}
		}
	}
	for source := range own.Objects.Generations() {
		count := counts[source.Kind]
		count.All++
		if broken[source] {
			count.NotReady++
		}
		counts[source.Kind] = count
	}
	return counts
}
