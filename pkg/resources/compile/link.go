package compile

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// view is the effective configuration of one namespace, with explanations.
type view struct {
	own   *level  // the namespace's own, whether or not it counts
	bound binding // as [Snapshot.bind] returned it
	binding
	chain    []rung // the levels that count, nearest first, the cluster last
	config   *verify.Config
	choices  []Choice
	problems []resource.Problem

	*applicable               // what judges an image first
	applies     []*applicable // as [applyAll] returns it, v.applicable first
	slow        error         // why the view takes too many steps

	counted sync.Once
	usages  usage // once counted
}

// link combines a namespace's level with its Tenant's and the cluster's. A namespace
// without objects and the cluster itself have an empty own level.
func (s *Snapshot) link(own *level) *view {
	bound := s.bind(own)
	v := &view{own: own, bound: bound, binding: bound}
	v.chain = chainOf(own, v.binding, s.cluster)
	if own.objects.broken != nil || v.counts() && own.broken != nil && !policy.IsHidden(v.broken) {
		v.broken, v.by = own.broken, policy.ObjectRef{}
	}
	v.applies = applyAll(v.chain)
	v.applicable = v.applies[0]
	slow := v.limitSteps()

	namespace := own.objects.namespace
	v.config = &verify.Config{Namespace: namespace, Account: v.account, UID: own.objects.uid, Limits: v.limits}
	v.choices = slices.Concat(v.verifierChoices(), v.storeChoices(), v.policyChoices())
	s.addLayers(v)
	v.config.Generation = s.generation(v)
	if len(s.cluster.mandatory) > 0 {
		v.config.MandatoryGeneration = s.mandatoryGeneration(v)
	}
	exceptional := s.addExceptions(v)
	v.config.BreakGlass = own.glass
	v.problems = slices.Concat(own.problems, slow, exceptional)
	if v.counts() {
		v.problems = append(v.problems, verifierProblems(own.objects.policies, v.verifiers, s.outside.AllFaults)...)
	}
	if namespace == verify.Cluster {
		v.problems = append(slices.Clone(s.cluster.problems), verifierProblems(s.cluster.objects.policies, s.cluster.verifiers, s.outside.AllFaults)...)
	}
	return v
}

// further returns what applies of the levels of v from one on, nil if no policy leaves images to
// them.
func (v *view) further(first int) *applicable {
	for _, a := range v.applies {
		if a.first == first {
			return a
		}
	}
	return nil
}

// some reports whether something that applies in v is such. Every namespace is asked at each
// change of the cluster.
func (v *view) some(such func(*applicable) bool) bool {
	for _, a := range v.applies {
		if such(a) {
			return true
		}
	}
	return false
}

// path yields what judges images, each as far as those before leave them to it.
func (v *view) path() iter.Seq[*applicable] {
	return func(yield func(*applicable) bool) {
		for a := v.applicable; yield(a) && strictest(a.deciding.policies).inherits(); {
			a = v.further(a.deciding.at + 1)
		}
	}
}

// hasStores reports whether Stores of other levels than the cluster's apply.
func (v *view) hasStores() bool { return len(v.byHost) > 0 && v.byHost[0].at < v.last() }

// noVerifiers returns why the Verifiers of a are unknown, "" if they are not.
func (v *view) noVerifiers(a *applicable) string {
	if a.from < len(v.chain) {
		return v.chain[a.from].hiddenVerifiers()
	}
	return ""
}

// addLayers makes the layers of v: what decides, the mandatory policies, and what warns.
func (s *Snapshot) addLayers(v *view) {
	attestations := len(s.cluster.mandatory) > 0 && needAttestations(s.cluster.verifiers)
	for _, a := range v.applies {
		attestations = attestations || needAttestations(a.verifiers)
	}
	client := s.outside.Registry(s.access(v, v.stores, attestations))
	for _, a := range v.applies {
		if a.client = client; a != v.applicable && v.hasStores() {
			a.client = s.outside.Registry(s.access(v, a.stores, attestations))
		}
	}
	v.config.Layers = []verify.Layer{v.decidingLayer(v.applicable, false)}
	var warnings []verify.Layer
	for a := range v.path() {
		for _, g := range warningLayers(a.warning) {
			warnings = append(warnings, v.judging(a, g, true))
		}
	}
	if mandatory := s.cluster.mandatory; len(mandatory) > 0 {
		if v.hasStores() {
			client = s.outside.Registry(s.access(v, s.cluster.stores, attestations))
		}
		v.choices = append(v.choices, v.choice(v.last(), v1beta1.KindClusterVerificationPolicy, mapSlice(mandatory, sourceOf),
			"a mandatory policy is evaluated in every namespace, with cluster Verifiers and Stores"))
		for _, p := range mandatory {
			layer := v.layer([]compiledPolicy{p}, s.cluster.verifiers, client)
			layer.NoVerifiers, layer.Warns, layer.Mandatory = s.cluster.hiddenVerifiers(), p.warns, !p.warns
			if layer.Warns {
				warnings = append(warnings, layer)
			} else {
				v.config.Layers = append(v.config.Layers, layer)
			}
		}
	}
	v.config.Layers = append(v.config.Layers, warnings...)
}

// verifierChoices explains which Verifiers apply.
func (v *view) verifierChoices() []Choice {
	const kind = v1beta1.KindVerifier
	var choices []Choice
	told := map[int]bool{} // levels whose Verifiers are in choices
	for _, a := range v.applies {
		if len(a.verifiers) == 0 || told[a.from] {
			continue
		}
		told[a.from] = true
		why := ""
		if a == v.applicable {
			why = v.whyAt(a.from, kind)
		} else {
			why = "for " + a.left()
		}
		choices = append(choices, v.choice(a.from, kind, mapSlice(a.verifiers, func(v verifier) policy.ObjectRef { return v.Source }), why))
	}
	switch {
	case len(choices) == 0:
		return []Choice{v.none(kind)}
	case len(choices) > 1 && len(v.verifiers) > 0: // that no other applies would not be true
		choices[0].Why = fmt.Sprintf("%s has its own %s", v.name(v.chain[v.from]), kind)
	}
	return choices
}

// warningLayers groups policies that warn into layers: those of one level together, as
// they would decide, and each broken one alone, so that no policy hides the warnings
// of another level or of a sound one.
func warningLayers(levels []group) []group {
	var layers []group
	for _, l := range levels {
		sound := -1 // the index of the level's layer
		for _, p := range l.policies {
			if p.broken == nil && sound >= 0 {
				layers[sound].policies = append(layers[sound].policies, p)
				continue
			}
			if p.broken == nil {
				sound = len(layers)
			}
			layers = append(layers, group{at: l.at, policies: []compiledPolicy{p}})
		}
	}
	return layers
}

// decidingLayer returns the layer of a that must allow even if all policies only warn. It
// only warns itself if it judges what a policy that warns leaves to it.
func (v *view) decidingLayer(a *applicable, warns bool) verify.Layer {
	deciding := a.deciding
	if !a.denies() && len(a.warning) > 0 {
		// A broken policy denies, even one that only warns. It has a layer of its own.
		layers := warningLayers(a.warning)
		i := slices.IndexFunc(layers, func(g group) bool { return g.policies[0].broken != nil })
		if i < 0 {
			return v.refused(verify.Layer{Registry: a.client, Source: layers[0].policies[0].source, Judge: verify.OnlyWarnings(), Warns: warns})
		}
		deciding = layers[i]
	}
	layer := v.judging(a, deciding, warns)
	if len(deciding.policies) == 0 {
		layer.Judge = verify.ByVerifiers()
	}
	if layer.Judge.Usable() && v.slow != nil {
		layer.Judge = layer.Judge.Refusing(v.slow)
	}
	return v.refused(layer)
}

// refused returns a layer that denies if nothing may be allowed in v.
func (v *view) refused(layer verify.Layer) verify.Layer {
	if v.broken == nil {
		return layer
	}
	layer.Judge = layer.Judge.Refusing(v.broken)
	if v.by != (policy.ObjectRef{}) {
		layer.Source = v.by
	}
	return layer
}

// judging returns the layer of a group of a, with what its default leaves to further levels
// behind it. Whether the policies say so themselves does not decide whether it only warns.
func (v *view) judging(a *applicable, g group, warns bool) verify.Layer {
	layer := v.layer(g.policies, a.verifiers, a.client)
	layer.NoVerifiers, layer.Warns = v.noVerifiers(a), warns
	layer.Home, layer.Lenient = v.homeOfVerifiers(), a.lenient(g)
	rest := layer.Judge.Default()
	if g.rules != nil && layer.Judge.Usable() {
		layer.Judge = verify.ByRules(g.rules, rest) // a home may have many rules, and a Tenant many namespaces
	}
	if further := v.further(g.at + 1); rest == verify.DefaultInherit && further != nil { // without it, what is left is denied
		next := v.decidingLayer(further, warns)
		layer.Next = &next
	}
	return layer
}

// layer combines policies with the verifiers that they may name. Rules are tried in
// the order of the policies' names. Whether the layer only warns, the caller says: no policy
// among several does.
func (v *view) layer(policies []compiledPolicy, verifiers []verifier, client verify.Registry) verify.Layer {
	layer := verify.Layer{Registry: client, Verifiers: mapSlice(verifiers, func(v verifier) *verify.Verifier { return v.Verifier })}
	if len(policies) == 0 {
		return layer
	}
	last := strictest(policies)
	layer.Source = last.source
	var rules []verify.Rule
	for _, p := range policies {
		rules = append(rules, p.rules...)
	}
	layer.Judge = verify.ByRules(rules, last.rest())
	for _, p := range policies {
		// A broken policy might deny any image, so it denies all.
		if p.broken != nil && layer.Judge.Usable() {
			layer.Source, layer.Judge = p.source, layer.Judge.Refusing(p.broken)
		}
	}
	return layer
}

// rest returns what p says about images that no rule matches.
func (p compiledPolicy) rest() verify.Default {
	switch p.fallback {
	case v1beta1.DefaultActionAllow:
		return verify.DefaultAllow
	case v1beta1.DefaultActionInherit:
		return verify.DefaultInherit
	case v1beta1.DefaultActionDeny:
	}
	return verify.DefaultDeny
}

// access returns the access of a namespace's registry client.
func (s *Snapshot) access(v *view, stores []store, attestations bool) registry.Access {
	return registry.Access{Namespace: v.own.objects.namespace, Account: v.account, UID: v.own.objects.uid, Hosts: s.cluster.hosts, Patterns: s.cluster.patterns, Attestations: attestations,
		PerSecond: v.limits.RegistryPerSecond, Stores: registryStores(stores)}
}

// Origin returns a registry that reads the repositories that images name, with the
// credentials of a namespace and as if no Store had mirrors or evidence. It is for
// comparisons: no verdict is based on it.
func (s *Snapshot) Origin(namespace verify.Namespace) verify.Registry {
	v := s.view(namespace)
	access := s.access(v, v.stores, true)
	access.Stores = mapSlice(access.Stores, registry.Store.WithoutLocations)
	return s.outside.Registry(access)
}

// needAttestations reports whether any verifier checks attestations.
func needAttestations(verifiers []verifier) bool {
	return slices.ContainsFunc(verifiers, func(v verifier) bool { return v.Type == string(v1beta1.VerifierTypeAttestation) })
}

// generation hashes the effective configuration, and nothing else. An edit takes
// effect immediately, reverting it finds the cached results, and a change that does
// not affect the namespace keeps its results.
func (s *Snapshot) generation(v *view) string {
	parts := []string{textOf(v.broken), v.noVerifiers(v.applicable), s.cluster.hiddenVerifiers()}
	list := func(kind string, fingerprints []string) { parts = append(append(parts, kind), fingerprints...) }
	for _, a := range v.applies {
		if a != v.applicable {
			parts = append(parts, "inherited", fmt.Sprint(a.deciding.at), v.noVerifiers(a))
		}
		list("verifiers", mapSlice(a.verifiers, func(v verifier) string { return v.fingerprint }))
		list("stores", mapSlice(a.stores, func(s store) string { return s.fingerprint }))
		parts = append(parts, "policies")
		for p := range a.all() {
			parts = append(parts, p.fingerprint)
		}
	}
	if len(s.cluster.mandatory) > 0 {
		parts = append(parts, "mandatory", s.cluster.shared.mandatory, s.cluster.shared.verifiers, s.cluster.shared.stores)
	}
	return digestOf(append(parts, "hosts", s.cluster.shared.hosts))
}

// mandatoryGeneration hashes what the layers of v follow from that exceptions do not lift. It only
// changes with the mandatory policies, so that what they say is cached whatever the namespace changes.
func (s *Snapshot) mandatoryGeneration(v *view) string {
	shared := s.cluster.shared
	return digestOf(append([]string{"mandatory policies alone", shared.mandatory, shared.verifiers, shared.stores, "hosts", shared.hosts},
		mapSlice(v.stores, func(s store) string { return s.fingerprint })...))
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
