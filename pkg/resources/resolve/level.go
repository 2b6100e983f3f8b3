package resolve

import (
	"cmp"
	"fmt"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Level is the compiled form of one level's objects.
type Level struct {
	*weighed
	excess   excess // at compile time
	compiled bool   // false while it is only weighed
	Broken   error  // why the level cannot be used

	TrustStores  map[string]*compile.TrustStore
	Verifiers    []compile.Verifier
	stores       []compile.Store
	hosts        map[string]registry.HostRule        // cluster level only
	patterns     []registry.PatternRule              // cluster level only
	quotas       map[verify.Account]verify.Limits    // cluster level only
	QuotaSources map[verify.Account]policy.ObjectRef // the ClusterQuota of each account
	Policies     []compile.Policy                    // without mandatory policies
	rules        []verify.Rule                       // of the deciding policies
	Mandatory    []compile.Policy                    // cluster level only
	Exceptions   []*compile.Exception                // those that are sound
	breakGlass   *verify.Exception                   // of a namespace, nil without break-glass
	problems     []resource.Problem
	allFaults    bool // problems contain each fault of a resource, and not only the first
	// publicGood is Sigstore's public-good root, if a verifier uses it by default.
	publicGood *compile.TrustStore
	Ends       map[policy.ObjectRef]*compile.Ends
	// shared is set for the cluster level.
	shared shared
}

// level compiles a weighed level. Cluster is nil for the cluster's own level.
func (outside Outside) level(w *weighed, cluster *Level, past excess) *Level {
	l, o := &Level{weighed: w, excess: past, compiled: true, allFaults: outside.AllFaults}, w.Objects
	if o.broken != nil {
		l.Broken = compile.RefusalOf(fmt.Errorf("%s cannot be read: %w",
			policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.Namespace)}, o.broken))
		l.problem(policy.ObjectRef{Kind: resource.KindNamespace, Name: string(o.Namespace)}, o.broken)
	}
	outside.breakGlass(l)
	err := cmp.Or(l.tooLarge(resource.Specs), l.tooHeavy())
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
	for _, e := range EntriesOf[v1beta1.TrustStoreSpec](o) {
		if l.TrustStores == nil { // most namespaces have none
			l.TrustStores = map[string]*compile.TrustStore{}
		}
		t := compile.NewTrustStore(e, o.referenced)
		l.TrustStores[e.Source.Name] = t
		l.problem(e.Source, t.Err)
	}
	outside.verifiers(l, cluster)
	for _, e := range EntriesOf[v1beta1.StoreSpec](o) {
		s, err := compile.NewStore(o.Namespace, e, o.referenced)
		l.stores = append(l.stores, s)
		l.problem(e.Source, err)
	}
	for _, e := range EntriesOf[v1beta1.VerificationPolicySpec](o) {
		p, err := compile.NewPolicy(e)
		if p.Mandatory {
			l.Mandatory = append(l.Mandatory, p)
		} else {
			l.Policies = append(l.Policies, p)
		}
		l.problem(e.Source, err)
	}
	outside.exceptions(l)
	l.Ends = l.endsOf(o.referenced)
	if cluster == nil {
		l.limitSteps()
		l.reachStores()
		l.hosts, l.patterns = hostRules(o, l.stores)
		l.quotas = l.compileQuotas()
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
func (outside Outside) verifiers(l, cluster *Level) {
	reach := compile.TrustStores{Owner: l.Objects.Namespace, Own: l.TrustStores, Cluster: l.TrustStores}
	if cluster != nil {
		reach.Cluster = cluster.TrustStores
	}
	for _, e := range EntriesOf[v1beta1.VerifierSpec](l.Objects) {
		if l.publicGood == nil && compile.UsesPublicGood(e.Spec) {
			l.publicGood = compile.NewPublicGood(l.Objects.Namespace, l.Objects.referenced)
			reach.PublicGood = l.publicGood
		}
		v, err := compile.NewVerifier(e, reach, outside.revokers())
		if e.Err() == nil {
			addSigner(v.Verifier, e.Spec)
		}
		l.Verifiers = append(l.Verifiers, v)
		l.problem(e.Source, err)
	}
}

// endsOf collects the expiry of the trust material of a level's resources.
func (l *Level) endsOf(m compile.Referenced) map[policy.ObjectRef]*compile.Ends {
	all := map[policy.ObjectRef]*compile.Ends{}
	for _, e := range EntriesOf[v1beta1.TrustStoreSpec](l.Objects) {
		if t, ok := l.TrustStores[e.Source.Name]; ok {
			all[e.Source] = t.EndsIn(m, e.Spec.Source.ConfigMapKeyRef)
		}
	}
	for i, e := range EntriesOf[v1beta1.StoreSpec](l.Objects) {
		all[e.Source] = l.stores[i].Ends()
	}
	for _, e := range EntriesOf[v1beta1.VerifierSpec](l.Objects) {
		if l.publicGood != nil && compile.UsesPublicGood(e.Spec) {
			all[e.Source] = l.publicGood.EndsIn(m, nil)
		}
	}
	return all
}

func (l *Level) problem(source policy.ObjectRef, err error) {
	l.problems = append(l.problems, compile.ProblemsOf(source, err, l.allFaults)...)
}

// compileQuotas returns the limits of each account that a ClusterQuota lists. If several
// list an account, the first by name applies. Accounts of a broken quota have the
// defaults: quotas affect scheduling, never verdicts.
func (l *Level) compileQuotas() map[verify.Account]verify.Limits {
	found, by := map[verify.Account]verify.Limits{}, map[verify.Account]policy.ObjectRef{}
	for _, r := range EntriesOf[v1beta1.ClusterQuotaSpec](l.Objects) {
		if r.Broken != nil {
			l.problem(r.Source,
				resource.Reasoned(resource.ReasonOf(r.Broken), fmt.Errorf("%w; its namespaces and Tenants have the default quota", r.Broken)))
			continue
		}
		var taken []string
		for _, account := range compile.AccountsOf(r.Spec) {
			if first, ok := by[account]; ok && first != r.Source {
				taken = append(taken, fmt.Sprintf("%s has that of %s", account.Describe(), first))
				continue
			}
			found[account], by[account] = compile.LimitsOf(r.Spec), r.Source
		}
		if len(taken) > 0 {
			l.problem(r.Source,
				resource.Reasoned(policy.ReasonConflict,
					fmt.Errorf("spec lists what another object lists too: %s; the first by name applies, and this one to the rest of its lists",
						compile.JoinNames(taken))))
		}
	}
	l.QuotaSources = by
	return found
}

// BreakGlass compiles break-glass of a namespace from its annotations. It may last at most
// most.
func BreakGlass(namespace verify.Namespace, annotations map[string]string, most time.Duration) (*verify.Exception, error) {
	return compile.NewBreakGlass(policy.ObjectRef{Kind: resource.KindNamespace, Name: string(namespace)}, annotations, most)
}

// breakGlass compiles break-glass of a namespace. If it is invalid, it allows nothing.
func (outside Outside) breakGlass(l *Level) {
	if len(l.Objects.annotations) == 0 {
		return
	}
	source := policy.ObjectRef{Kind: resource.KindNamespace, Name: string(l.Objects.Namespace)}
	made, err := BreakGlass(l.Objects.Namespace, l.Objects.annotations, outside.Exceptions.BreakGlass)
	if err != nil {
		l.problem(source, fmt.Errorf("break-glass is not in force: %w", err))
		return
	}
	l.breakGlass = made
}

// hostRules returns the rules for the registries in ClusterStores: these may have private
// addresses, and plain HTTP if the store allows it. They depend on the spec alone and apply to
// the Stores of namespaces, so a store with broken credentials or other broken registries keeps
// its rules. A store that the schema refuses allows nothing, but its proxy stays mandatory. The
// proxy is the one of the first store by name.
func hostRules(o *Objects, compiled []compile.Store) (map[string]registry.HostRule, []registry.PatternRule) {
	rules := map[string]registry.HostRule{}
	var patterns []registry.PatternRule
	for i, e := range EntriesOf[v1beta1.StoreSpec](o) {
		s, sound := compiled[i], e.Broken == nil
		if !sound && s.Proxy == nil {
			continue
		}
		named, matching, _ := compile.Hosts(verify.Cluster, e.Spec.Registries) // the valid entries
		for _, host := range named {
			rule, earlier := rules[host]
			if !earlier {
				rule.Proxy = s.Proxy
			}
			rule.Private = rule.Private || sound
			rule.PlainHTTP = rule.PlainHTTP || e.Spec.InsecurePlainHTTP
			rules[host] = rule
		}
		for _, pattern := range matching {
			patterns = append(patterns, registry.PatternRule{Hosts: pattern, Rule: registry.HostRule{Private: sound, Proxy: s.Proxy}})
		}
	}
	return rules, patterns
}
