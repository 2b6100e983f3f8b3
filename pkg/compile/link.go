package compile

import (
	"cmp"
	"fmt"
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
	chain    []*level // nearest first, the cluster last
	config   *verify.Config
	choices  []Choice
	problems []resource.Problem

	verifiers []verifier // effective ones
	policies  applicable
	slow      string // why the view takes too many steps, "" if it does not

	counted sync.Once
	counts  usage // once counted
}

// Choice says from which level the resources of one kind apply.
type Choice struct {
	Kind    string
	Level   string // "namespace", "cluster" or "none"
	Applied []policy.ObjectRef
	Why     string
}

// nearest returns the resources of the first level that has any, and the reason. A
// kind falls back as a whole, and only if nearer levels have none at all.
func nearest[T any](chain []*level, kind string, of func(*level) []T, source func(T) policy.ObjectRef) ([]T, Choice) {
	for i, l := range chain {
		if found := of(l); len(found) > 0 {
			return found, Choice{Kind: kind, Level: l.label(), Applied: mapSlice(found, source), Why: whyAt(chain, i, kind)}
		}
	}
	return nil, Choice{Kind: kind, Level: "none", Applied: []policy.ObjectRef{}, Why: whyNone(chain, kind)}
}

// whyNone explains why no resource of a kind applies.
func whyNone(chain []*level, kind string) string {
	if slices.ContainsFunc(chain, func(l *level) bool { return l.broken != "" }) {
		return "not compiled; see the reason"
	}
	return fmt.Sprintf("neither the namespace nor the cluster has a %s", kind)
}

// whyAt explains why the resources of a kind at level i apply.
func whyAt(chain []*level, i int, kind string) string {
	if i < len(chain)-1 {
		return fmt.Sprintf("the %s has its own %s, so no Cluster%s applies", chain[i].label(), kind, kind)
	}
	return fmt.Sprintf("the namespace has no %s of its own", kind)
}

// applicable holds the policies that apply in a chain of levels.
type applicable struct {
	deciding []compiledPolicy // of the nearest level with a policy that denies
	at       int              // index of that level; len(chain) if there is none
	warning  []compiledPolicy // of that level and of nearer ones
}

// applyPolicies selects the policies that apply. Policies that warn only add
// warnings: a level that has only such policies counts as having none.
func applyPolicies(chain []*level) applicable {
	a := applicable{at: len(chain)}
	for i, l := range chain {
		for _, p := range l.policies {
			if p.decides() {
				a.deciding, a.at = append(a.deciding, p), i
			} else {
				a.warning = append(a.warning, p)
			}
		}
		if len(a.deciding) > 0 {
			break
		}
	}
	return a
}

// link combines a namespace's level with the cluster's. A namespace without objects
// and the cluster itself have an empty own level.
func (s *Snapshot) link(own *level) *view {
	v := &view{chain: []*level{own, s.cluster}}
	var verifierChoice, storeChoice Choice
	var stores []store
	v.verifiers, verifierChoice = nearest(v.chain, v1alpha1.KindVerifier, func(l *level) []verifier { return l.verifiers }, func(v verifier) policy.ObjectRef { return v.Source })
	stores, storeChoice = nearest(v.chain, v1alpha1.KindStore, func(l *level) []store { return l.stores }, func(s store) policy.ObjectRef { return s.Source })
	v.policies = applyPolicies(v.chain)
	slow := v.limitSteps(own)

	attestations := needAttestations(v.verifiers) || (len(s.cluster.floors) > 0 && needAttestations(s.cluster.verifiers))
	client := s.outside.Registry(s.access(own, stores, attestations))
	namespace := own.objects.namespace
	v.config = &verify.Config{Namespace: namespace, Account: namespace.Account(), UID: own.objects.uid, Limits: s.cluster.quotas[namespace]}
	v.config.Layers = []verify.Layer{v.decidingLayer(client)}
	v.choices = append([]Choice{verifierChoice, storeChoice}, v.policyChoices()...)
	var warnings []verify.Layer
	for _, policies := range warningLayers(v.policies.warning) {
		warnings = append(warnings, v.layer(policies, v.verifiers, client))
	}
	if floors := s.cluster.floors; len(floors) > 0 {
		if storeChoice.Level != s.cluster.label() {
			client = s.outside.Registry(s.access(own, s.cluster.stores, attestations))
		}
		v.choices = append(v.choices, Choice{Kind: v1alpha1.KindClusterVerificationPolicy, Level: s.cluster.label(), Applied: mapSlice(floors, sourceOf),
			Why: "a floor is evaluated in every namespace, with cluster Verifiers and Stores"})
		for _, floor := range floors {
			layer := v.layer([]compiledPolicy{floor}, s.cluster.verifiers, client)
			if layer.Warns {
				warnings = append(warnings, layer)
			} else {
				v.config.Layers = append(v.config.Layers, layer)
			}
		}
	}
	v.config.Layers = append(v.config.Layers, warnings...)
	v.config.Generation = s.generation(v, stores)
	v.problems = slices.Concat(own.problems, slow, verifierProblems(own.objects.policies, v.verifiers))
	if namespace == verify.Cluster {
		v.problems = append(slices.Clone(s.cluster.problems), verifierProblems(s.cluster.objects.policies, s.cluster.verifiers)...)
	}
	return v
}

func sourceOf(p compiledPolicy) policy.ObjectRef { return p.source }

// warningLayers groups policies that warn into layers: those of one level together, as
// they would decide, and each broken one alone, so that no policy hides the warnings
// of another level or of a sound one.
func warningLayers(policies []compiledPolicy) [][]compiledPolicy {
	var layers [][]compiledPolicy
	sound := map[string]int{} // the layer of each level, by its namespace
	for _, p := range policies {
		at, ok := sound[p.source.Namespace]
		if p.broken != "" || !ok {
			if p.broken == "" {
				sound[p.source.Namespace] = len(layers)
			}
			layers = append(layers, []compiledPolicy{p})
			continue
		}
		layers[at] = append(layers[at], p)
	}
	return layers
}

// policyChoices explains which policies decide and which only add warnings.
func (v *view) policyChoices() []Choice {
	const kind = v1alpha1.KindVerificationPolicy
	deciding := Choice{Kind: kind, Level: "none", Applied: []policy.ObjectRef{}, Why: whyNone(v.chain, kind)}
	if len(v.policies.deciding) > 0 {
		deciding = Choice{Kind: kind, Level: v.chain[v.policies.at].label(), Applied: mapSlice(v.policies.deciding, sourceOf), Why: whyAt(v.chain, v.policies.at, kind)}
	}
	if len(v.policies.warning) == 0 {
		return []Choice{deciding}
	}
	if len(v.policies.deciding) == 0 {
		deciding.Why = fmt.Sprintf("neither the namespace nor the cluster has a %s that denies", kind)
	}
	warning := Choice{Kind: kind, Level: v.chain[0].label(), Applied: mapSlice(v.policies.warning, sourceOf), Why: "their enforcementAction is Warn, so they only add warnings"}
	if v.policies.warning[0].source.Namespace == "" {
		warning.Level = v.chain[len(v.chain)-1].label()
	}
	return []Choice{deciding, warning}
}

// decidingLayer returns the layer that must allow even if all policies only warn.
func (v *view) decidingLayer(client verify.Registry) verify.Layer {
	deciding := v.policies.deciding
	if len(deciding) == 0 && len(v.policies.warning) > 0 {
		// A broken policy denies, even one that only warns.
		i := slices.IndexFunc(v.policies.warning, func(p compiledPolicy) bool { return p.broken != "" })
		if i < 0 {
			return verify.Layer{Registry: client, Source: v.policies.warning[0].source, OnlyWarnings: true, Broken: v.chain[0].broken}
		}
		deciding = []compiledPolicy{v.policies.warning[i]}
	}
	layer := v.layer(deciding, v.verifiers, client)
	layer.Warns = false
	layer.RequireMatching = len(deciding) == 0
	layer.Broken = cmp.Or(layer.Broken, v.slow)
	if broken := v.chain[0].broken; broken != "" {
		layer.Broken = broken
	}
	return layer
}

// layer combines policies with the verifiers that they may name. Rules are tried in
// the order of the policies' names.
func (v *view) layer(policies []compiledPolicy, verifiers []verifier, client verify.Registry) verify.Layer {
	layer := verify.Layer{Registry: client, Verifiers: mapSlice(verifiers, func(v verifier) *verify.Verifier { return v.Verifier })}
	for i, p := range policies {
		// Deny by default wins over Allow.
		if i == 0 || p.fallback != policy.Allowed && layer.Default == policy.Allowed {
			layer.Source, layer.Default = p.source, p.fallback
		}
		layer.Warns = p.warns
		layer.Rules = append(layer.Rules, p.rules...)
		// A broken policy might deny any image, so it denies all.
		if p.broken != "" && layer.Broken == "" {
			layer.Source, layer.Broken = p.source, p.broken
		}
	}
	return layer
}

// access returns the access of a namespace's registry client.
func (s *Snapshot) access(own *level, stores []store, attestations bool) registry.Access {
	namespace := own.objects.namespace
	return registry.Access{Namespace: namespace, Account: namespace.Account(), UID: own.objects.uid, Hosts: s.cluster.hosts, Attestations: attestations,
		PerSecond: s.cluster.quotas[namespace].RegistryPerSecond, Stores: mapSlice(stores, func(s store) registry.Store { return s.Store })}
}

// needAttestations reports whether any verifier checks attestations.
func needAttestations(verifiers []verifier) bool {
	return slices.ContainsFunc(verifiers, func(v verifier) bool { return v.Type == string(v1alpha1.VerifierTypeAttestation) })
}

// generation hashes the effective configuration, and nothing else. An edit takes
// effect immediately, reverting it finds the cached results, and a change that does
// not affect the namespace keeps its results.
func (s *Snapshot) generation(v *view, stores []store) string {
	parts := []string{v.chain[0].broken}
	list := func(kind string, fingerprints []string) { parts = append(append(parts, kind), fingerprints...) }
	list("verifiers", mapSlice(v.verifiers, func(v verifier) string { return v.fingerprint }))
	list("stores", mapSlice(stores, func(s store) string { return s.fingerprint }))
	list("policies", mapSlice(slices.Concat(v.policies.deciding, v.policies.warning), func(p compiledPolicy) string { return p.fingerprint }))
	if len(s.cluster.floors) > 0 {
		parts = append(parts, "floors", s.cluster.shared.floors, s.cluster.shared.verifiers, s.cluster.shared.stores)
	}
	return digestOf(append(parts, "hosts", s.cluster.shared.hosts))
}
