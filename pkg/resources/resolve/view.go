package resolve

import (
	"iter"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// View is the effective configuration of one namespace, with explanations.
type View struct {
	Own   *Level  // the namespace's own, whether or not it applies
	bound binding // as [Snapshot.bind] returned it
	used  shared  // of the cluster's resources
	binding
	nearer   []NamedLevel // the levels that apply before the cluster's, nearest first
	config   *verify.Config
	choices  []Choice
	problems []resource.Problem

	*Applicable               // judges images first
	applies     []*Applicable // as [applyAll] returns it, v.applicable first
	slow        error         // why the view takes too many steps
	unreadable  []resource.Unreadable

	counted sync.Once
	usages  Usage // once counted
}

// linkEmpty is link for a namespace without objects, or for the cluster itself.
func (s *Snapshot) linkEmpty(namespace verify.Namespace) *View {
	own := &Level{weighed: &weighed{Objects: &Objects{Namespace: namespace}}}
	return s.link(own, s.bind(own))
}

// Chain returns the levels that apply in v, nearest first and the cluster last. A view outlives changes of the
// cluster that do not affect it, so it does not hold the cluster's level.
func (s *Snapshot) Chain(v *View) []NamedLevel {
	return append(slices.Clip(v.nearer), NamedLevel{s.cluster, LevelCluster})
}

// link combines a namespace's level with its Tenant's and the cluster's.
func (s *Snapshot) link(own *Level, bound binding) *View {
	v := &View{Own: own, bound: bound, binding: bound, nearer: nearerOf(own, bound)}
	if own.Objects.broken != nil || v.Counts() && own.Broken != nil {
		v.Broken, v.by = own.Broken, policy.ObjectRef{}
	}
	chain := s.Chain(v)
	v.applies = applyAll(chain)
	v.Applicable = v.applies[0]
	v.used = v.using(s.cluster.shared)
	slow := v.limitSteps()

	namespace := own.Objects.Namespace
	v.config = &verify.Config{Namespace: namespace, Account: v.account, UID: own.Objects.uid, Limits: v.limits}
	v.choices = slices.Concat(v.verifierChoices(), v.storeChoices(), v.policyChoices())
	s.addTiers(v)
	v.config.Generation = s.generation(v)
	if len(s.cluster.Mandatory) > 0 {
		v.config.MandatoryGeneration = s.mandatoryGeneration(v)
	}
	exceptional := s.addExceptions(v)
	v.config.BreakGlass = own.breakGlass
	v.unreadable = s.unreadableIn(v, chain)
	v.problems = slices.Concat(own.problems, slow, exceptional)
	if v.Counts() {
		v.problems = append(v.problems, verifierProblems(own.Objects, v.Verifiers, s.outside.AllFaults)...)
	}
	if namespace == verify.Cluster {
		v.problems = append(slices.Clone(s.cluster.problems), verifierProblems(s.cluster.Objects, s.cluster.Verifiers, s.outside.AllFaults)...)
	}
	return v
}

// further returns what applies on the levels of v from first on, nil if no policy leaves images
// to them.
func (v *View) further(first int) *Applicable {
	for _, a := range v.applies {
		if a.first == first {
			return a
		}
	}
	return nil
}

// some reports whether a part of v meets a condition. It is called for every namespace at
// each change of the cluster.
func (v *View) some(such func(*Applicable) bool) bool {
	for _, a := range v.applies {
		if such(a) {
			return true
		}
	}
	return false
}

// Path yields the parts of v that judge images, in order. Each judges the images that the
// previous one leaves to it.
func (v *View) Path() iter.Seq[*Applicable] {
	return func(yield func(*Applicable) bool) {
		for a := v.Applicable; yield(a) && compile.Strictest(a.Deciding.Policies).Inherits(); {
			a = v.further(a.Deciding.At + 1)
		}
	}
}

// hasStores reports whether Stores of other levels than the cluster's apply.
func (v *View) hasStores() bool { return len(v.byHost) > 0 && v.byHost[0].at < v.last() }

// addTiers builds the tiers of v: the deciding one, the mandatory policies, and the ones that
// warn.
func (s *Snapshot) addTiers(v *View) {
	attestations := len(s.cluster.Mandatory) > 0 && needAttestations(s.cluster.Verifiers)
	for _, a := range v.applies {
		attestations = attestations || needAttestations(a.Verifiers)
	}
	client := s.outside.Registry(s.access(v, v.stores, attestations))
	for _, a := range v.applies {
		if a.client = client; a != v.Applicable && v.hasStores() {
			a.client = s.outside.Registry(s.access(v, a.stores, attestations))
		}
	}
	v.config.Tiers = []verify.Tier{v.decidingTier(v.Applicable, false)}
	var warnings []verify.Tier
	for a := range v.Path() {
		for _, g := range warningTiers(a.Warning) {
			warnings = append(warnings, v.judging(a, g, true))
		}
	}
	if mandatory := s.cluster.Mandatory; len(mandatory) > 0 {
		if v.hasStores() {
			client = s.outside.Registry(s.access(v, s.cluster.stores, attestations))
		}
		v.choices = append(v.choices, v.choice(v.last(), v1beta1.KindClusterVerificationPolicy, compile.MapSlice(mandatory, compile.SourceOf),
			"a mandatory policy is evaluated in every namespace, with cluster Verifiers and Stores"))
		for _, p := range mandatory {
			tier := v.tier([]compile.Policy{p}, s.cluster.Verifiers, client)
			tier.Warns, tier.Mandatory = p.Warns, !p.Warns
			if tier.Warns {
				warnings = append(warnings, tier)
			} else {
				v.config.Tiers = append(v.config.Tiers, tier)
			}
		}
	}
	v.config.Tiers = append(v.config.Tiers, warnings...)
}

// warningTiers groups policies that warn into tiers: those of one level together, as if they
// decided, and each broken one alone, so that no policy hides the warnings of another level
// or of a usable one.
func warningTiers(levels []group) []group {
	var tiers []group
	for _, l := range levels {
		sound := -1 // the index of the level's tier
		for _, p := range l.Policies {
			if p.Broken == nil && sound >= 0 {
				tiers[sound].Policies = append(tiers[sound].Policies, p)
				continue
			}
			if p.Broken == nil {
				sound = len(tiers)
			}
			tiers = append(tiers, group{At: l.At, Policies: []compile.Policy{p}})
		}
	}
	return tiers
}

// decidingTier returns the tier of a that must allow even if all policies only warn. The tier
// itself only warns if it judges images that a policy that warns leaves to it.
func (v *View) decidingTier(a *Applicable, warns bool) verify.Tier {
	deciding := a.Deciding
	if !a.Denies() && len(a.Warning) > 0 {
		// A broken policy denies, even one that only warns. It has a tier of its own.
		tiers := warningTiers(a.Warning)
		i := slices.IndexFunc(tiers, func(g group) bool { return g.Policies[0].Broken != nil })
		if i < 0 {
			return v.refused(verify.Tier{Registry: a.client, Source: tiers[0].Policies[0].Source, Judge: verify.OnlyWarnings(), Warns: warns,
				Contact: v.contact})
		}
		deciding = tiers[i]
	}
	tier := v.judging(a, deciding, warns)
	if len(deciding.Policies) == 0 {
		tier.Judge = verify.ByVerifiers()
	}
	if tier.Judge.Usable() && v.slow != nil {
		tier.Judge = tier.Judge.Refusing(v.slow)
	}
	return v.refused(tier)
}

// refused returns a tier, which denies if v must deny everything.
func (v *View) refused(tier verify.Tier) verify.Tier {
	if v.Broken == nil {
		return tier
	}
	tier.Judge = tier.Judge.Refusing(v.Broken)
	if v.by != (policy.ObjectRef{}) {
		tier.Source = v.by
	}
	return tier
}

// judging returns the tier of a group of a, followed by the tier for the images that its
// default leaves to further levels. warns decides whether it only warns, whatever its
// policies say.
func (v *View) judging(a *Applicable, g group, warns bool) verify.Tier {
	tier := v.tier(g.Policies, a.Verifiers, a.client)
	tier.Warns, tier.Home, tier.Lenient = warns, v.homeOfVerifiers(), a.lenient(g)
	rest := tier.Judge.Default()
	if g.rules != nil && tier.Judge.Usable() {
		tier.Judge = verify.ByRules(g.rules, rest) // a home namespace may have many rules, and a Tenant many namespaces
	}
	if further := v.further(g.At + 1); rest == verify.DefaultInherit && further != nil { // without it, such images are denied
		next := v.decidingTier(further, warns)
		tier.Next = &next
	}
	return tier
}

// tier combines policies with the verifiers that they may name. Rules are tried in the order
// of the policies' names. The caller decides whether the tier only warns, because no single
// policy does.
func (v *View) tier(policies []compile.Policy, verifiers []compile.Verifier, client verify.Registry) verify.Tier {
	tier := verify.Tier{Registry: client,
		Verifiers: compile.MapSlice(verifiers, func(v compile.Verifier) *verify.Verifier { return v.Verifier }), Contact: v.contact}
	if len(policies) == 0 {
		return tier
	}
	last := compile.Strictest(policies)
	tier.Source = last.Source
	if tier.Contacts = policies[0].Contacts; len(policies) > 1 {
		tier.Contacts = slices.Concat(compile.MapSlice(policies, func(p compile.Policy) []verify.Contact { return p.Contacts })...)
	}
	var rules []verify.Rule
	for _, p := range policies {
		rules = append(rules, p.Rules...)
	}
	tier.Judge = verify.ByRules(rules, last.Fallback)
	for _, p := range policies {
		// A broken policy might deny any image, so it denies all.
		if p.Broken != nil && tier.Judge.Usable() {
			tier.Source, tier.Judge = p.Source, tier.Judge.Refusing(p.Broken)
		}
	}
	return tier
}

// access returns the access of a namespace's registry client.
func (s *Snapshot) access(v *View, stores []compile.Store, attestations bool) registry.Access {
	return registry.Access{Namespace: v.Own.Objects.Namespace, Account: v.account, UID: v.Own.Objects.uid, Hosts: s.cluster.hosts,
		Patterns: s.cluster.patterns, Attestations: attestations,
		PerSecond: v.limits.RegistryPerSecond, Stores: registryStores(stores), Generation: s.registryGeneration(stores)}
}

// Origin returns a registry that reads the repositories that images name, with the
// credentials of a namespace and without the mirrors and evidence repositories of Stores. It
// is for comparisons: no verdict is based on it.
func (s *Snapshot) Origin(namespace verify.Namespace) verify.Registry {
	v := s.view(namespace)
	access := s.access(v, v.stores, true)
	access.Stores, access.Generation = compile.MapSlice(access.Stores, registry.Store.WithoutLocations), ""
	return s.outside.Registry(access)
}

// needAttestations reports whether any verifier checks attestations.
func needAttestations(verifiers []compile.Verifier) bool {
	return slices.ContainsFunc(verifiers, func(v compile.Verifier) bool { return v.Type == string(v1beta1.VerifierTypeAttestation) })
}
