// Package resolve says what applies in each namespace: it groups resources by level, compiles
// them, and selects the verifiers, stores and policies of a namespace from itself, the home of its
// Tenant or the cluster, separately for each kind. A Snapshot is all of it at one moment.
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

// Snapshot is the compiled state of all namespaces at one moment. It is immutable
// except for a cache of namespaces without objects.
type Snapshot struct {
	outside    Outside
	cluster    *Level
	tenancy    *tenancy
	levels     map[verify.Namespace]*Level // of namespaces
	views      map[verify.Namespace]*View  // [verify.Cluster] for cluster resources alone
	members    *members                    // shared by snapshots with the same namespaces and Tenants
	undeclared memo
}

// New compiles objects for which nothing has to be fetched, or for which it is known what
// is: see [Levels.Compile].
func New(o resource.Objects, fetched external.Fetched, outside Outside) (*Snapshot, []resource.Problem) {
	return Group(o).Compile(fetched, outside)
}

// Compile compiles objects into a Snapshot, and returns problems that their owners should
// fix. It never fails: a problem in a namespace denies in that namespace, and one in
// the cluster's objects denies wherever they apply.
func (levels Levels) Compile(fetched external.Fetched, outside Outside) (*Snapshot, []resource.Problem) {
	c := &compiler{outside: outside}
	cluster := levels[verify.Cluster].with(fetched)
	s := &Snapshot{outside: outside, cluster: c.level(weighed(cluster, nil), nil, excess{}), tenancy: newTenancy(cluster, levels.labels()),
		levels: map[verify.Namespace]*Level{}, views: map[verify.Namespace]*View{}, members: &members{}}
	for namespace, found := range levels {
		if namespace != verify.Cluster {
			s.levels[namespace] = weighed(found.with(fetched), s.cluster)
		}
	}
	s.settleAll()
	for namespace, l := range s.levels { // all are compiled: a Tenant's home is linked to its members
		s.views[namespace] = s.link(l)
	}
	s.views[verify.Cluster] = s.link(&Level{Objects: &Objects{}})
	return s, s.problems()
}

// With returns a snapshot in which one namespace is recompiled from levels, and that
// namespace's problems; s itself does not change. If the namespace is the home of a
// Tenant, the Tenant's other namespaces follow, and so do those that come to be past the
// limits of its account or no longer are. If levels has no objects of the
// namespace, the new snapshot does not contain it. With panics if namespace is
// [verify.Cluster]: a change of cluster objects needs [Snapshot.WithCluster].
func (s *Snapshot) With(namespace verify.Namespace, levels Levels, fetched external.Fetched) (*Snapshot, []resource.Problem) {
	if namespace == verify.Cluster {
		panic("resolve: a change of cluster objects needs WithCluster")
	}
	next := &Snapshot{outside: s.outside, cluster: s.cluster, tenancy: s.tenancy, levels: maps.Clone(s.levels), views: maps.Clone(s.views), members: s.members}
	found, exists := levels[namespace]
	if _, existed := s.levels[namespace]; existed != exists {
		next.members = &members{}
	}
	if exists {
		next.levels[namespace] = weighed(found.with(fetched), s.cluster)
	} else {
		delete(next.levels, namespace)
		delete(next.views, namespace)
	}
	label := ""
	if exists {
		label = found.labelled
	}
	tenancy, moved := s.tenancy.relabelled(namespace, label)
	if next.tenancy = tenancy; moved {
		// Two accounts may be settled, and the members of two homes linked: as for a change of Tenants.
		next.members = &members{}
		next.settleAll()
		next.linkChanged(s)
		return next, next.problemsIn(namespace)
	}
	linked := map[verify.Namespace]bool{}
	for _, changed := range append(next.settleAccount(namespace), namespace) {
		for _, concerned := range next.concerned(changed) {
			if !linked[concerned] {
				next.views[concerned], linked[concerned] = next.link(next.levels[concerned]), true
			}
		}
	}
	return next, next.problemsIn(namespace)
}

// problemsIn returns the problems of a namespace, none if s was not compiled with it.
func (s *Snapshot) problemsIn(namespace verify.Namespace) []resource.Problem {
	if v, ok := s.views[namespace]; ok {
		return v.problems
	}
	return nil
}

// WithCluster returns a snapshot with the cluster's objects from levels, and their
// problems; s itself does not change. Namespaces that the change does not affect are
// not recompiled. WithCluster ignores the other levels.
func (s *Snapshot) WithCluster(levels Levels, fetched external.Fetched) (*Snapshot, []resource.Problem) {
	c, found := &compiler{outside: s.outside}, levels[verify.Cluster].with(fetched)
	next := &Snapshot{outside: s.outside, cluster: c.level(weighed(found, nil), nil, excess{}), tenancy: newTenancy(found, s.tenancy.Labels()), members: &members{},
		levels: make(map[verify.Namespace]*Level, len(s.levels)), views: make(map[verify.Namespace]*View, len(s.views))}
	for namespace, own := range s.levels {
		if next.cluster.differs(own.uses) {
			own = weighed(own.Objects, next.cluster)
		}
		next.levels[namespace] = own
	}
	next.settleAll()
	next.linkChanged(s)
	return next, next.ProblemsOf(verify.Cluster)
}

// linkChanged links the cluster, and the namespaces that have another level or other Tenants than in an
// earlier snapshot.
func (s *Snapshot) linkChanged(earlier *Snapshot) {
	s.views[verify.Cluster] = s.link(&Level{Objects: &Objects{}})
	for namespace, own := range s.levels {
		was := earlier.views[namespace]
		switch {
		case was == nil, own != was.Own, s.bind(own) != was.bound, s.affects(was, earlier.cluster):
			s.views[namespace] = s.link(own)
		default:
			s.views[namespace] = was
		}
	}
}

// For returns the configuration of a namespace. The cluster's resources apply to a
// namespace without objects.
func (s *Snapshot) For(namespace verify.Namespace) *verify.Config {
	return s.view(namespace).config
}

// Cluster returns the cluster's level.
func (s *Snapshot) Cluster() *Level { return s.cluster }

// View returns the view of a namespace that the snapshot was compiled with, or of
// [verify.Cluster], nil for others.
func (s *Snapshot) View(namespace verify.Namespace) *View { return s.views[namespace] }

// Level returns the compiled resources of a namespace that the snapshot was compiled with, or those
// of the cluster, nil for others.
func (s *Snapshot) Level(namespace verify.Namespace) *Level {
	if namespace == verify.Cluster {
		return s.cluster
	}
	if v := s.views[namespace]; v != nil {
		return v.Own
	}
	return nil
}

// Tenants returns which Tenant holds each namespace.
func (s *Snapshot) Tenants() *resource.Tenants { return s.tenancy.Tenants }

// TenantError returns why a Tenant cannot be used, nil if it can.
func (s *Snapshot) TenantError(source policy.ObjectRef) error { return s.tenancy.unusable[source] }

// Has reports whether the snapshot was compiled with a namespace.
func (s *Snapshot) Has(namespace verify.Namespace) bool {
	_, ok := s.views[namespace]
	return ok
}

// Namespaces returns the namespaces that the snapshot was compiled with and
// [verify.Cluster], sorted.
func (s *Snapshot) Namespaces() []verify.Namespace {
	return slices.Sorted(maps.Keys(s.views))
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
	found := s.views[namespace].problems
	if namespace == verify.Cluster {
		found = append(s.tenantProblems(), found...)
	}
	return found
}

func (s *Snapshot) view(namespace verify.Namespace) *View {
	if v, ok := s.views[namespace]; ok {
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
	if l := s.Level(namespace); l != nil {
		return l.Ends
	}
	return nil
}

// Count says how many resources of one kind there are.
type Count struct{ All, NotReady int }

// Counts returns, for each kind of its scope, how many resources a namespace or the
// cluster has, and how many of them have a problem. It is cheap
// enough to be asked about all namespaces for each scrape. It returns nil for a namespace
// that is not in s.
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
