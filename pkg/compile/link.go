package compile

import (
	"slices"
	"sync"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
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

	from      int        // the level of the Verifiers that apply
	verifiers []verifier // that apply
	stores    []store    // that apply, nearest first
	hasStores bool       // some of them are not the cluster's
	policies  applicable
	floors    []verify.Layer
	slow      string // why the view takes too many steps, "" if it does not

	counted sync.Once
	usages  usage // once counted
}

// link combines a namespace's level with its Tenant's and the cluster's. A namespace
// without objects and the cluster itself have an empty own level.
func (s *Snapshot) link(own *level) *view {
	bound := s.bind(own)
	v := &view{own: own, bound: bound, binding: bound}
	v.chain = chainOf(own, v.binding, s.cluster)
	if own.objects.broken != nil || v.counts() && own.broken != "" && !v.hidden {
		v.broken, v.by, v.hidden = own.broken, policy.ObjectRef{}, false
	}
	v.from, v.verifiers = v.nearestVerifiers()
	stores := storesByHost(v.chain)
	v.stores, v.hasStores = merged(stores), len(stores) > 0 && stores[0].at < v.last()
	v.policies = applyPolicies(v.chain)
	slow := v.limitSteps()

	namespace := own.objects.namespace
	v.config = &verify.Config{Namespace: namespace, Account: v.account, UID: own.objects.uid, Limits: v.limits}
	v.choices = slices.Concat(v.verifierChoices(), v.storeChoices(stores), v.policyChoices())
	s.addLayers(v)
	v.config.Generation = s.generation(v)
	v.config.Floors = s.floorsOf(v, v.floors)
	exceptional := s.addExceptions(v)
	v.config.BreakGlass = own.glass
	v.problems = slices.Concat(own.problems, slow, exceptional)
	if v.counts() {
		v.problems = append(v.problems, verifierProblems(own.objects.policies, v.verifiers)...)
	}
	if namespace == verify.Cluster {
		v.problems = append(slices.Clone(s.cluster.problems), verifierProblems(s.cluster.objects.policies, s.cluster.verifiers)...)
	}
	return v
}

// noVerifiers returns why the Verifiers that apply are unknown, "" if they are not.
func (v *view) noVerifiers() string {
	if v.from < len(v.chain) {
		return v.chain[v.from].hiddenVerifiers()
	}
	return ""
}

// addLayers makes the layers of v: what decides, the floors, and what warns.
func (s *Snapshot) addLayers(v *view) {
	attestations := needAttestations(v.verifiers) || (len(s.cluster.floors) > 0 && needAttestations(s.cluster.verifiers))
	client := s.outside.Registry(s.access(v, v.stores, attestations))
	v.config.Layers = []verify.Layer{v.decidingLayer(client)}
	var warnings []verify.Layer
	for _, g := range warningLayers(v.policies.warning) {
		layer := v.judging(append([]group{g}, g.next...), client)
		layer.Warns = true // hidden policies are among those that decide as well
		warnings = append(warnings, layer)
	}
	if floors := s.cluster.floors; len(floors) > 0 {
		if v.hasStores {
			client = s.outside.Registry(s.access(v, s.cluster.stores, attestations))
		}
		v.choices = append(v.choices, v.choice(v.last(), v1alpha1.KindClusterVerificationPolicy, mapSlice(floors, sourceOf),
			"a floor is evaluated in every namespace, with cluster Verifiers and Stores"))
		for _, floor := range floors {
			layer := v.layer([]compiledPolicy{floor}, s.cluster.verifiers, client)
			layer.NoVerifiers = s.cluster.hiddenVerifiers()
			if layer.Warns {
				warnings = append(warnings, layer)
			} else {
				v.config.Layers = append(v.config.Layers, layer)
				v.floors = append(v.floors, layer)
			}
		}
	}
	v.config.Layers = append(v.config.Layers, warnings...)
}

// verifierChoices explains which Verifiers apply.
func (v *view) verifierChoices() []Choice {
	const kind = v1alpha1.KindVerifier
	if len(v.verifiers) == 0 {
		return []Choice{v.none(kind)}
	}
	return []Choice{v.choice(v.from, kind, mapSlice(v.verifiers, func(v verifier) policy.ObjectRef { return v.Source }), v.whyAt(v.from, kind))}
}

// warningLayers groups policies that warn into layers: those of one level together, as
// they would decide, and each broken one alone, so that no policy hides the warnings
// of another level or of a sound one.
func warningLayers(levels []group) []group {
	var layers []group
	for _, l := range levels {
		sound := -1 // the index of the level's layer
		for _, p := range l.policies {
			if p.broken == "" && sound >= 0 {
				layers[sound].policies = append(layers[sound].policies, p)
				continue
			}
			if p.broken == "" {
				sound = len(layers)
			}
			layers = append(layers, group{at: l.at, policies: []compiledPolicy{p}, next: l.next})
		}
	}
	return layers
}

// decidingLayer returns the layer that must allow even if all policies only warn.
func (v *view) decidingLayer(client verify.Registry) verify.Layer {
	groups := v.policies.deciding
	if len(groups) == 0 && len(v.policies.warning) > 0 {
		// A broken policy denies, even one that only warns.
		var warning []compiledPolicy
		for _, g := range v.policies.warning {
			warning = append(warning, g.policies...)
		}
		i := slices.IndexFunc(warning, func(p compiledPolicy) bool { return p.broken != "" })
		if i < 0 {
			return v.refused(verify.Layer{Registry: client, Source: warning[0].source, OnlyWarnings: true})
		}
		groups = []group{{policies: warning[i : i+1]}}
	}
	layer := v.judging(groups, client)
	layer.Warns = false
	layer.RequireMatching = len(groups) == 0
	if layer.Broken == "" && v.slow != "" {
		layer.Broken, layer.Hidden = v.slow, false
	}
	return v.refused(layer)
}

// refused returns a layer that denies if nothing may be allowed in v.
func (v *view) refused(layer verify.Layer) verify.Layer {
	if v.broken == "" {
		return layer
	}
	layer.Broken, layer.Hidden = v.broken, v.hidden
	if v.by != (policy.ObjectRef{}) {
		layer.Source = v.by
	}
	return layer
}

// judging returns the layer of the first group, with the others behind it while the
// default is Inherit. The whole warns if the first group does.
func (v *view) judging(groups []group, client verify.Registry) verify.Layer {
	if len(groups) == 0 {
		layer := v.layer(nil, v.verifiers, client)
		layer.NoVerifiers = v.noVerifiers()
		return layer
	}
	layer := v.layer(groups[0].policies, v.verifiers, client)
	layer.NoVerifiers = v.noVerifiers()
	if groups[0].rules != nil {
		layer.Rules = groups[0].rules // a home may have many rules, and a Tenant many namespaces
	}
	if layer.Inherits && len(groups) > 1 {
		next := v.judging(groups[1:], client)
		layer.Next = &next
	}
	for next := layer.Next; next != nil; next = next.Next {
		next.Warns = layer.Warns
	}
	return layer
}

// layer combines policies with the verifiers that they may name. Rules are tried in
// the order of the policies' names.
func (v *view) layer(policies []compiledPolicy, verifiers []verifier, client verify.Registry) verify.Layer {
	layer := verify.Layer{Registry: client, Verifiers: mapSlice(verifiers, func(v verifier) *verify.Verifier { return v.Verifier })}
	if len(policies) == 0 {
		return layer
	}
	last := strictest(policies)
	layer.Source, layer.Inherits = last.source, last.inherits()
	if last.fallback == v1alpha1.DefaultActionAllow {
		layer.Default = policy.Allowed
	}
	for _, p := range policies {
		layer.Warns = p.warns
		layer.Rules = append(layer.Rules, p.rules...)
		// A broken policy might deny any image, so it denies all.
		if p.broken != "" && layer.Broken == "" {
			layer.Source, layer.Broken, layer.Hidden = p.source, p.broken, p.hidden
		}
	}
	return layer
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
	for i := range access.Stores {
		access.Stores[i].Mirrors, access.Stores[i].Evidence, access.Stores[i].EvidenceOnly = nil, nil, false
	}
	return s.outside.Registry(access)
}

// needAttestations reports whether any verifier checks attestations.
func needAttestations(verifiers []verifier) bool {
	return slices.ContainsFunc(verifiers, func(v verifier) bool { return v.Type == string(v1alpha1.VerifierTypeAttestation) })
}

// generation hashes the effective configuration, and nothing else. An edit takes
// effect immediately, reverting it finds the cached results, and a change that does
// not affect the namespace keeps its results.
func (s *Snapshot) generation(v *view) string {
	parts := []string{v.broken, v.noVerifiers(), s.cluster.hiddenVerifiers()}
	list := func(kind string, fingerprints []string) { parts = append(append(parts, kind), fingerprints...) }
	list("verifiers", mapSlice(v.verifiers, func(v verifier) string { return v.fingerprint }))
	list("stores", mapSlice(v.stores, func(s store) string { return s.fingerprint }))
	list("policies", mapSlice(v.policies.all(), func(p compiledPolicy) string { return p.fingerprint }))
	if len(s.cluster.floors) > 0 {
		parts = append(parts, "floors", s.cluster.shared.floors, s.cluster.shared.verifiers, s.cluster.shared.stores)
	}
	return digestOf(append(parts, "hosts", s.cluster.shared.hosts))
}
