// Package resolve says what applies in each namespace: it groups resources by level, compiles
// them, and selects the verifiers, stores and policies of a namespace from itself, the home of its
// Tenant or the cluster, separately for each kind. A Snapshot is all of it at one moment.
//
// It is pure. It refuses to treat a broken resource as a missing one: everything that depends on
// it denies.
package resolve

import (
	"fmt"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

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
	for _, found := range levels {
		found.referenced.Fetched = fetched
	}
	s := &Snapshot{outside: outside, Cluster: c.level(weighed(levels[verify.Cluster], nil), nil, excess{}), Tenancy: newTenancy(levels[verify.Cluster]),
		levels: map[verify.Namespace]*Level{}, Views: map[verify.Namespace]*View{}, members: &members{}}
	for namespace, found := range levels {
		if namespace != verify.Cluster {
			s.levels[namespace] = weighed(found, s.Cluster)
		}
	}
	s.settleAll()
	for namespace, l := range s.levels { // all are compiled: a Tenant's home is linked to its members
		s.Views[namespace] = s.link(l)
	}
	s.Views[verify.Cluster] = s.link(&Level{Objects: &Objects{}})
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
		panic("compile: a change of cluster objects needs WithCluster")
	}
	next := &Snapshot{outside: s.outside, Cluster: s.Cluster, Tenancy: s.Tenancy, levels: maps.Clone(s.levels), Views: maps.Clone(s.Views), members: s.members}
	found, exists := levels[namespace]
	if _, existed := s.levels[namespace]; existed != exists {
		next.members = &members{}
	}
	if exists {
		found.referenced.Fetched = fetched
		next.levels[namespace] = weighed(found, s.Cluster)
	} else {
		delete(next.levels, namespace)
		delete(next.Views, namespace)
	}
	linked := map[verify.Namespace]bool{}
	for _, changed := range append(next.settleAccount(namespace), namespace) {
		for _, concerned := range next.concerned(changed) {
			if !linked[concerned] {
				next.Views[concerned], linked[concerned] = next.link(next.levels[concerned]), true
			}
		}
	}
	if v, ok := next.Views[namespace]; ok {
		return next, v.problems
	}
	return next, nil
}

// WithCluster returns a snapshot with the cluster's objects from levels, and their
// problems; s itself does not change. Namespaces that the change does not affect are
// not recompiled. WithCluster ignores the other levels.
func (s *Snapshot) WithCluster(levels Levels, fetched external.Fetched) (*Snapshot, []resource.Problem) {
	c, found := &compiler{outside: s.outside}, levels[verify.Cluster]
	found.referenced.Fetched = fetched
	next := &Snapshot{outside: s.outside, Cluster: c.level(weighed(found, nil), nil, excess{}), Tenancy: newTenancy(found), members: &members{},
		levels: make(map[verify.Namespace]*Level, len(s.levels)), Views: make(map[verify.Namespace]*View, len(s.Views))}
	for namespace, own := range s.levels {
		if next.Cluster.differs(own.uses) {
			own = weighed(own.Objects, next.Cluster)
		}
		next.levels[namespace] = own
	}
	next.settleAll()
	for namespace, was := range s.Views {
		own := next.levels[namespace]
		switch {
		case namespace == verify.Cluster:
			next.Views[namespace] = next.link(&Level{Objects: &Objects{}})
		case own != was.Own, next.bind(own) != was.bound, next.affects(was, s.Cluster):
			next.Views[namespace] = next.link(own)
		default:
			next.Views[namespace] = was
		}
	}
	return next, next.ProblemsOf(verify.Cluster)
}

// differs reports whether a ClusterTrustStore has another fingerprint than in uses.
func (l *Level) differs(uses map[string]string) bool {
	for name, fingerprint := range uses {
		if l.fingerprintOf(name) != fingerprint {
			return true
		}
	}
	return false
}

// fingerprintOf returns the fingerprint of a trust store, "" if it does not exist.
func (l *Level) fingerprintOf(name string) string {
	if t, ok := l.TrustStores[name]; ok {
		return t.Fingerprint
	}
	return ""
}

// affects reports whether v is linked to something that differs between the cluster
// level of s and was.
func (s *Snapshot) affects(v *View, was *Level) bool {
	is := s.Cluster
	mandatory := len(is.Mandatory)+len(was.Mandatory) > 0
	changed := func(part func(shared) string) bool { return part(is.shared) != part(was.shared) }
	return changed(func(s shared) string { return s.hosts }) ||
		changed(func(s shared) string { return s.mandatory }) ||
		changed(func(s shared) string { return s.exceptions }) ||
		changed(func(s shared) string { return s.stores + s.credentials }) || // any may list a host that no nearer level lists
		(mandatory || v.some(func(a *Applicable) bool { return a.from >= v.last() })) && changed(func(s shared) string { return s.verifiers }) ||
		v.some(func(a *Applicable) bool { return a.Deciding.At == v.last() }) && changed(func(s shared) string { return s.policies })
}

// compiler compiles levels.
type compiler struct {
	outside Outside
}

// level compiles l, which is only weighed, and returns it. Cluster is nil for the cluster's own
// level.
func (c *compiler) level(l, cluster *Level, past excess) *Level {
	o := l.Objects
	l.excess, l.compiled, l.allFaults = past, true, c.outside.AllFaults
	if o.broken != nil {
		l.Broken = compile.RefusalOf(fmt.Errorf("%s cannot be read: %w", policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.Namespace)}, o.broken))
		l.problem(policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.Namespace)}, o.broken)
	}
	c.breakGlass(l)
	err := l.weight.refused
	if err == nil || past.past[specsKept] { // what a namespace weighs is unknown while specs are withheld
		err = past.refusal(o.Namespace, l.weight, o.written(resource.Share{Namespace: string(o.Namespace)}))
	}
	switch {
	case err != nil && cluster != nil:
		l.Broken = err
		for source := range o.Generations() {
			l.problem(source, err)
		}
		return l
	case err != nil:
		// The scope of policies and the hosts of stores stay in force.
		o.refuse(err)
	}
	if len(o.TrustStores) > 0 {
		l.TrustStores = make(map[string]*compile.TrustStore, len(o.TrustStores))
	}
	for _, e := range o.TrustStores {
		t := compile.NewTrustStore(e, o.referenced)
		l.TrustStores[e.Source.Name] = t
		l.problem(e.Source, t.Err)
	}
	c.verifiers(l, cluster)
	for _, e := range o.Stores {
		s, err := compile.NewStore(o.Namespace, e, o.referenced)
		l.stores = append(l.stores, s)
		l.problem(e.Source, err)
	}
	for _, e := range o.policies {
		p, err := compile.NewPolicy(e)
		if p.Mandatory {
			l.Mandatory = append(l.Mandatory, p)
		} else {
			l.Policies = append(l.Policies, p)
		}
		l.problem(e.Source, err)
	}
	c.exceptions(l)
	l.hide()
	l.Ends = l.endsOf(o.referenced)
	if cluster == nil {
		l.limitSteps()
		l.reachStores()
		l.hosts, l.patterns = hostRules(o.Stores, l.stores)
		l.quotas = l.compileQuotas(o.Quotas)
		l.shared = sharedFingerprints(l)
	}
	for _, p := range l.Policies {
		if p.Decides() {
			l.rules = append(l.rules, p.Rules...)
		}
	}
	return l
}

// verifiers compiles the verifiers of l.
func (c *compiler) verifiers(l, cluster *Level) {
	reach := compile.TrustStores{Levels: []compile.Shelf{l.shelf()}}
	if cluster != nil {
		reach.Levels = append(reach.Levels, cluster.shelf())
	}
	if slices.ContainsFunc(l.Objects.Verifiers, func(e compile.Entry[v1beta1.VerifierSpec]) bool { return compile.UsesPublicGood(e.Spec) }) {
		reach.PublicGood = compile.NewPublicGood(l.Objects.Namespace, l.Objects.referenced)
		l.publicGood = reach.PublicGood
	}
	for _, e := range l.Objects.Verifiers {
		v, err := compile.NewVerifier(e, reach, c.outside.revokers())
		l.Verifiers = append(l.Verifiers, v)
		l.problem(e.Source, err)
	}
}

func (l *Level) shelf() compile.Shelf {
	return compile.Shelf{Owner: l.Objects.Namespace, Stores: l.TrustStores, Hidden: l.Objects.hidden[v1beta1.KindTrustStore]}
}

// usedOf returns the ClusterTrustStores that o names, as in level.uses.
func usedOf(o *Objects, cluster *Level) map[string]string {
	var uses map[string]string // most namespaces name none
	for _, e := range o.Verifiers {
		for _, source := range compile.TrustStoresOf(o.Namespace, e.Spec) {
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

func (l *Level) problem(source policy.ObjectRef, err error) {
	l.problems = append(l.problems, compile.ProblemsOf(source, err, l.allFaults)...)
}

// sharedFingerprints returns the fingerprints of the parts of a cluster level that
// namespaces use.
func sharedFingerprints(l *Level) shared {
	hosts := make([]string, 0, len(l.hosts))
	for _, host := range compile.SortedKeys(l.hosts) {
		// Proxies change no verdict.
		hosts = append(hosts, fmt.Sprintf("%s %t %t", host, l.hosts[host].PlainHTTP, l.hosts[host].Private))
	}
	for _, p := range l.patterns {
		hosts = append(hosts, p.Hosts.String())
	}
	return shared{
		verifiers: compile.DigestOf(compile.MapSlice(l.Verifiers, func(v compile.Verifier) string { return v.Fingerprint })),
		stores:    compile.DigestOf(compile.MapSlice(l.stores, func(s compile.Store) string { return s.Fingerprint })),
		policies:  compile.DigestOf(compile.MapSlice(l.Policies, func(p compile.Policy) string { return p.Fingerprint })),
		mandatory: compile.DigestOf(compile.MapSlice(l.Mandatory, func(p compile.Policy) string { return p.Fingerprint })),
		hosts:     compile.DigestOf(hosts),
		exceptions: compile.DigestOf(compile.MapSlice(l.Objects.exceptions, func(e compile.Entry[v1beta1.ExceptionSpec]) string {
			return compile.Fingerprint(e.Source, e.Spec, []byte(e.Created.String()), e.Err())
		})),

		credentials: compile.DigestOf(compile.MapSlice(l.stores, func(s compile.Store) string { return s.CredentialsHash + s.Way() })),
	}
}

// compileQuotas returns the limits of each account that a ClusterQuota lists. If several
// list an account, the first by name applies. Accounts of a broken quota have the
// defaults: quotas affect scheduling, never verdicts.
func (l *Level) compileQuotas(quotas []compile.Entry[v1beta1.ClusterQuotaSpec]) map[verify.Account]verify.Limits {
	found, by := map[verify.Account]verify.Limits{}, map[verify.Account]policy.ObjectRef{}
	for _, r := range quotas {
		limits, err := compile.NewQuota(r)
		if err != nil {
			l.problem(r.Source, resource.Reasoned(resource.ReasonOf(err), fmt.Errorf("%w; its namespaces and Tenants have the default quota", err)))
			continue
		}
		var taken []string
		for _, account := range compile.AccountsOf(r.Spec) {
			if first, ok := by[account]; ok && first != r.Source {
				taken = append(taken, fmt.Sprintf("%s has that of %s", account.Describe(), first))
				continue
			}
			found[account], by[account] = limits, r.Source
		}
		if len(taken) > 0 {
			l.problem(r.Source, resource.Reasoned(policy.ReasonConflict, fmt.Errorf("spec lists what another object lists too: %s; the first by name applies, and this one to the rest of its lists", compile.JoinNames(taken))))
		}
	}
	l.QuotaSources = by
	return found
}

// breakGlass compiles break-glass of a namespace. While something is wrong with it, it
// allows nothing.
func (c *compiler) breakGlass(l *Level) {
	if len(l.Objects.annotations) == 0 {
		return
	}
	source := policy.ObjectRef{Kind: resource.KindNamespace, Name: string(l.Objects.Namespace)}
	made, err := compile.NewBreakGlass(source, l.Objects.annotations, c.outside.Exceptions.BreakGlass)
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
func hostRules(specs []compile.Entry[v1beta1.StoreSpec], compiled []compile.Store) (map[string]registry.HostRule, []registry.PatternRule) {
	rules := map[string]registry.HostRule{}
	var patterns []registry.PatternRule
	for i, s := range compiled[:min(len(compiled), len(specs))] { // what stands for hidden ones has no spec
		sound := specs[i].Broken == nil
		if !sound && s.Proxy == nil {
			continue
		}
		named, matching, _ := compile.Hosts(verify.Cluster, specs[i].Spec.Registries) // the entries that are right
		for _, host := range named {
			rule, earlier := rules[host]
			if !earlier {
				rule.Proxy = s.Proxy
			}
			rule.Private = rule.Private || sound
			rule.PlainHTTP = rule.PlainHTTP || specs[i].Spec.InsecurePlainHTTP
			rules[host] = rule
		}
		for _, pattern := range matching {
			patterns = append(patterns, registry.PatternRule{Hosts: pattern, Rule: registry.HostRule{Private: sound, Proxy: s.Proxy}})
		}
	}
	return rules, patterns
}
