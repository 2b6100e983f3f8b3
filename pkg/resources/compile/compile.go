// Package compile turns resources into the engine's configuration. For each namespace
// it selects the verifiers, stores and policies that apply, from the namespace or from
// the cluster, separately for each kind. It is pure. It refuses to treat a broken
// resource as a missing one: everything that depends on it denies.
package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// New compiles objects for which nothing has to be fetched, or for which it is known what
// is: see [Levels.Compile].
func New(o resource.Objects, fetched Fetched, outside Outside) (*Snapshot, []resource.Problem) {
	return Group(o).Compile(fetched, outside)
}

// Compile compiles objects into a Snapshot, and returns problems that their owners should
// fix. It never fails: a problem in a namespace denies in that namespace, and one in
// the cluster's objects denies wherever they apply.
func (levels Levels) Compile(fetched Fetched, outside Outside) (*Snapshot, []resource.Problem) {
	c := &compiler{outside: outside}
	for _, found := range levels {
		found.referenced.fetched = fetched
	}
	s := &Snapshot{outside: outside, cluster: c.level(weighed(levels[verify.Cluster], nil), nil, excess{}), tenants: newTenancy(levels[verify.Cluster]),
		levels: map[verify.Namespace]*level{}, namespaces: map[verify.Namespace]*view{}, members: &members{}}
	for namespace, found := range levels {
		if namespace != verify.Cluster {
			s.levels[namespace] = weighed(found, s.cluster)
		}
	}
	s.settleAll()
	for namespace, l := range s.levels { // all are compiled: a Tenant's home is linked to its members
		s.namespaces[namespace] = s.link(l)
	}
	s.namespaces[verify.Cluster] = s.link(&level{objects: &objects{}})
	return s, s.problems()
}

// With returns a snapshot in which one namespace is recompiled from levels, and that
// namespace's problems; s itself does not change. If the namespace is the home of a
// Tenant, the Tenant's other namespaces follow, and so do those that come to be past the
// limits of its account or no longer are. If levels has no objects of the
// namespace, the new snapshot does not contain it. With panics if namespace is
// [verify.Cluster]: a change of cluster objects needs [Snapshot.WithCluster].
func (s *Snapshot) With(namespace verify.Namespace, levels Levels, fetched Fetched) (*Snapshot, []resource.Problem) {
	if namespace == verify.Cluster {
		panic("compile: a change of cluster objects needs WithCluster")
	}
	next := &Snapshot{outside: s.outside, cluster: s.cluster, tenants: s.tenants, levels: maps.Clone(s.levels), namespaces: maps.Clone(s.namespaces), members: s.members}
	found, exists := levels[namespace]
	if _, existed := s.levels[namespace]; existed != exists {
		next.members = &members{}
	}
	if exists {
		found.referenced.fetched = fetched
		next.levels[namespace] = weighed(found, s.cluster)
	} else {
		delete(next.levels, namespace)
		delete(next.namespaces, namespace)
	}
	linked := map[verify.Namespace]bool{}
	for _, changed := range append(next.settleAccount(namespace), namespace) {
		for _, concerned := range next.concerned(changed) {
			if !linked[concerned] {
				next.namespaces[concerned], linked[concerned] = next.link(next.levels[concerned]), true
			}
		}
	}
	if v, ok := next.namespaces[namespace]; ok {
		return next, v.problems
	}
	return next, nil
}

// WithCluster returns a snapshot with the cluster's objects from levels, and their
// problems; s itself does not change. Namespaces that the change does not affect are
// not recompiled. WithCluster ignores the other levels.
func (s *Snapshot) WithCluster(levels Levels, fetched Fetched) (*Snapshot, []resource.Problem) {
	c, found := &compiler{outside: s.outside}, levels[verify.Cluster]
	found.referenced.fetched = fetched
	next := &Snapshot{outside: s.outside, cluster: c.level(weighed(found, nil), nil, excess{}), tenants: newTenancy(found), members: &members{},
		levels: make(map[verify.Namespace]*level, len(s.levels)), namespaces: make(map[verify.Namespace]*view, len(s.namespaces))}
	for namespace, own := range s.levels {
		if next.cluster.differs(own.uses) {
			own = weighed(own.objects, next.cluster)
		}
		next.levels[namespace] = own
	}
	next.settleAll()
	for namespace, was := range s.namespaces {
		own := next.levels[namespace]
		switch {
		case namespace == verify.Cluster:
			next.namespaces[namespace] = next.link(&level{objects: &objects{}})
		case own != was.own, next.bind(own) != was.bound, next.affects(was, s.cluster):
			next.namespaces[namespace] = next.link(own)
		default:
			next.namespaces[namespace] = was
		}
	}
	return next, next.problemsOf(verify.Cluster)
}

// differs reports whether a ClusterTrustStore has another fingerprint than in uses.
func (l *level) differs(uses map[string]string) bool {
	for name, fingerprint := range uses {
		if l.fingerprintOf(name) != fingerprint {
			return true
		}
	}
	return false
}

// fingerprintOf returns the fingerprint of a trust store, "" if it does not exist.
func (l *level) fingerprintOf(name string) string {
	if t, ok := l.trustStores[name]; ok {
		return t.fingerprint
	}
	return ""
}

// affects reports whether v is linked to something that differs between the cluster
// level of s and was.
func (s *Snapshot) affects(v *view, was *level) bool {
	is := s.cluster
	mandatory := len(is.mandatory)+len(was.mandatory) > 0
	changed := func(part func(shared) string) bool { return part(is.shared) != part(was.shared) }
	return changed(func(s shared) string { return s.hosts }) ||
		changed(func(s shared) string { return s.mandatory }) ||
		changed(func(s shared) string { return s.exceptions }) ||
		changed(func(s shared) string { return s.stores + s.credentials }) || // any may list a host that no nearer level lists
		(mandatory || v.some(func(a *applicable) bool { return a.from >= v.last() })) && changed(func(s shared) string { return s.verifiers }) ||
		v.some(func(a *applicable) bool { return a.deciding.at == v.last() }) && changed(func(s shared) string { return s.policies })
}

// compiler compiles levels.
type compiler struct {
	outside Outside
}

// level compiles l, which is only weighed, and returns it. Cluster is nil for the cluster's own
// level.
func (c *compiler) level(l, cluster *level, past excess) *level {
	o := l.objects
	l.excess, l.compiled, l.allFaults = past, true, c.outside.AllFaults
	if o.broken != nil {
		l.broken = refusalOf(fmt.Errorf("%s cannot be read: %w", policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.namespace)}, o.broken))
		l.problem(policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.namespace)}, o.broken)
	}
	c.breakGlass(l)
	err := l.weight.refused
	if err == nil || past.past[specsKept] { // what a namespace weighs is unknown while specs are withheld
		err = past.refusal(o.namespace, l.weight, o.written(resource.Share{Namespace: string(o.namespace)}))
	}
	switch {
	case err != nil && cluster != nil:
		l.broken = err
		for source := range o.generations() {
			l.problem(source, err)
		}
		return l
	case err != nil:
		// The scope of policies and the hosts of stores stay in force.
		o.refuse(err)
	}
	if len(o.trustStores) > 0 {
		l.trustStores = make(map[string]*trustStore, len(o.trustStores))
	}
	for _, e := range o.trustStores {
		t := compileTrustStore(e, o.referenced)
		l.trustStores[e.source.Name] = t
		l.problem(e.source, t.err)
	}
	c.verifiers(l, cluster)
	for _, e := range o.stores {
		s, err := compileStore(o.namespace, e, o.referenced)
		l.stores = append(l.stores, s)
		l.problem(e.source, err)
	}
	for _, e := range o.policies {
		p, err := compilePolicy(e)
		if p.mandatory {
			l.mandatory = append(l.mandatory, p)
		} else {
			l.policies = append(l.policies, p)
		}
		l.problem(e.source, err)
	}
	c.exceptions(l)
	l.hide()
	l.ends = l.endsOf(o.referenced)
	if cluster == nil {
		l.limitSteps()
		l.reachStores()
		l.hosts, l.patterns = hostRules(o.stores, l.stores)
		l.quotas = l.compileQuotas(o.quotas)
		l.shared = sharedFingerprints(l)
	}
	for _, p := range l.policies {
		if p.decides() {
			l.rules = append(l.rules, p.rules...)
		}
	}
	return l
}

// verifiers compiles the verifiers of l.
func (c *compiler) verifiers(l, cluster *level) {
	reach := trustStores{levels: []shelf{l.shelf()}}
	if cluster != nil {
		reach.levels = append(reach.levels, cluster.shelf())
	}
	if slices.ContainsFunc(l.objects.verifiers, func(e entry[v1beta1.VerifierSpec]) bool { return usesPublicGood(e.spec) }) {
		reach.publicGood = publicGoodStore(l.objects.namespace, l.objects.referenced)
		l.publicGood = reach.publicGood
	}
	for _, e := range l.objects.verifiers {
		v, err := compileVerifier(e, reach, c.outside)
		l.verifiers = append(l.verifiers, v)
		l.problem(e.source, err)
	}
}

func (l *level) shelf() shelf {
	return shelf{owner: l.objects.namespace, stores: l.trustStores, hidden: l.objects.hidden[v1beta1.KindTrustStore]}
}

// usedOf returns the ClusterTrustStores that o names, as in level.uses.
func usedOf(o *objects, cluster *level) map[string]string {
	var uses map[string]string // most namespaces name none
	for _, e := range o.verifiers {
		for _, source := range trustStoresOf(o.namespace, e.spec) {
			if source.Namespace == "" {
				if uses == nil {
					uses = map[string]string{}
				}
				uses[source.Name] = cluster.fingerprintOf(source.Name)
			}
		}
	}
	return uses
}

func (l *level) problem(source policy.ObjectRef, err error) {
	l.problems = append(l.problems, problemsOf(source, err, l.allFaults)...)
}

// sharedFingerprints returns the fingerprints of the parts of a cluster level that
// namespaces use.
func sharedFingerprints(l *level) shared {
	hosts := make([]string, 0, len(l.hosts))
	for _, host := range sortedKeys(l.hosts) {
		// Proxies change no verdict.
		hosts = append(hosts, fmt.Sprintf("%s %t %t", host, l.hosts[host].PlainHTTP, l.hosts[host].Private))
	}
	for _, p := range l.patterns {
		hosts = append(hosts, p.Hosts.String())
	}
	return shared{
		verifiers: digestOf(mapSlice(l.verifiers, func(v verifier) string { return v.fingerprint })),
		stores:    digestOf(mapSlice(l.stores, func(s store) string { return s.fingerprint })),
		policies:  digestOf(mapSlice(l.policies, func(p compiledPolicy) string { return p.fingerprint })),
		mandatory: digestOf(mapSlice(l.mandatory, func(p compiledPolicy) string { return p.fingerprint })),
		hosts:     digestOf(hosts),
		exceptions: digestOf(mapSlice(l.objects.exceptions, func(e entry[v1beta1.ExceptionSpec]) string {
			return fingerprint(e.source, e.spec, []byte(e.created.String()), e.err())
		})),

		credentials: digestOf(mapSlice(l.stores, func(s store) string { return s.credentials + s.way() })),
	}
}

// compileQuotas returns the limits of each account that a ClusterQuota lists. If several
// list an account, the first by name applies. Accounts of a broken quota have the
// defaults: quotas affect scheduling, never verdicts.
func (l *level) compileQuotas(quotas []entry[v1beta1.ClusterQuotaSpec]) map[verify.Account]verify.Limits {
	found, by := map[verify.Account]verify.Limits{}, map[verify.Account]policy.ObjectRef{}
	for _, r := range quotas {
		limits, err := compileQuota(r)
		if err != nil {
			l.problem(r.source, resource.Reasoned(resource.ReasonOf(err), fmt.Errorf("%w; its namespaces and Tenants have the default quota", err)))
			continue
		}
		var taken []string
		for _, account := range accountsOf(r.spec) {
			if first, ok := by[account]; ok && first != r.source {
				taken = append(taken, fmt.Sprintf("%s has that of %s", account.Describe(), first))
				continue
			}
			found[account], by[account] = limits, r.source
		}
		if len(taken) > 0 {
			l.problem(r.source, resource.Reasoned(policy.ReasonConflict, fmt.Errorf("spec lists what another object lists too: %s; the first by name applies, and this one to the rest of its lists", joinNames(taken))))
		}
	}
	l.quotaSources = by
	return found
}

// breakGlass compiles break-glass of a namespace. While something is wrong with it, it
// allows nothing.
func (c *compiler) breakGlass(l *level) {
	if len(l.objects.annotations) == 0 {
		return
	}
	source := policy.ObjectRef{Kind: resource.KindNamespace, Name: string(l.objects.namespace)}
	made, err := breakGlassOf(source, l.objects.annotations, c.outside.Exceptions.BreakGlass)
	if err != nil {
		l.problem(source, fmt.Errorf("break-glass is not in force: %w", err))
		return
	}
	l.glass = made
}

// hostRules returns the rules for the registries in ClusterStores: these may have
// private addresses, and plain HTTP if the store allows it. They come from the spec alone
// and hold for the Stores of namespaces, so a store whose credentials or other registries are
// broken keeps its rules. One that the schema refuses allows nothing, but nobody goes around its
// proxy. The proxy is that of the first store by name.
func hostRules(specs []entry[v1beta1.StoreSpec], compiled []store) (map[string]registry.HostRule, []registry.PatternRule) {
	rules := map[string]registry.HostRule{}
	var patterns []registry.PatternRule
	for i, s := range compiled[:min(len(compiled), len(specs))] { // what stands for hidden ones has no spec
		sound := specs[i].broken == nil
		if !sound && s.proxy == nil {
			continue
		}
		named, matching, _ := hosts(verify.Cluster, specs[i].spec.Registries) // the entries that are right
		for _, host := range named {
			rule, earlier := rules[host]
			if !earlier {
				rule.Proxy = s.proxy
			}
			rule.Private = rule.Private || sound
			rule.PlainHTTP = rule.PlainHTTP || specs[i].spec.InsecurePlainHTTP
			rules[host] = rule
		}
		for _, pattern := range matching {
			patterns = append(patterns, registry.PatternRule{Hosts: pattern, Rule: registry.HostRule{Private: sound, Proxy: s.proxy}})
		}
	}
	return rules, patterns
}
