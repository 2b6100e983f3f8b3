package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// view is what applies in one namespace, and why.
type view struct {
	config    *verify.Config
	choices   []Choice
	materials map[policy.ObjectRef]v1alpha1.Material // of the namespace's own trust stores
}

// Choice says from which level the resources of one kind apply.
type Choice struct {
	Kind    string             `json:"kind"`
	Level   string             `json:"level"` // "namespace", "cluster" or "none"
	Applied []policy.ObjectRef `json:"applied"`
	Why     string             `json:"why"`
}

// nearest returns the resources of the first level that has any, and says why:
// a kind falls back as a whole, and only when the nearer level has none at all.
// The chain is a list, so that a level between namespace and cluster is one
// more entry.
func nearest[T any](kind string, source func(T) policy.ObjectRef, own, cluster []T) ([]T, Choice) {
	choice := Choice{Kind: kind, Level: "none", Applied: []policy.ObjectRef{},
		Why: fmt.Sprintf("neither the namespace nor the cluster has a %s", kind)}
	var found []T
	for _, candidate := range []struct {
		level, why string
		resources  []T
	}{
		{"namespace", fmt.Sprintf("the namespace has its own %s, so no %s%s applies", kind, clusterPrefix, kind), own},
		{"cluster", fmt.Sprintf("the namespace has no %s of its own", kind), cluster},
	} {
		if len(candidate.resources) > 0 {
			found, choice.Level, choice.Why = candidate.resources, candidate.level, candidate.why
			break
		}
	}
	for _, resource := range found {
		choice.Applied = append(choice.Applied, source(resource))
	}
	return found, choice
}

// link joins a namespace's level with the cluster's. An empty level stands for
// a namespace that declares nothing, and for the cluster itself.
func (s *Snapshot) link(own *level) *view {
	verifiers, verifierChoice := nearest(kindVerifier, func(v verifier) policy.ObjectRef { return v.Source }, own.verifiers, s.cluster.verifiers)
	stores, storeChoice := nearest(kindStore, func(st store) policy.ObjectRef { return st.Source }, own.stores, s.cluster.stores)
	policies, policyChoice := nearest(kindPolicy, func(p compiledPolicy) policy.ObjectRef { return p.source }, own.policies, s.cluster.policies)

	attestations := attested(verifiers) || (len(s.cluster.floors) > 0 && attested(s.cluster.verifiers))
	registry := s.outside.Registry(s.access(own, stores, attestations))
	config := &verify.Config{Namespace: own.namespace, Account: own.namespace.Account(), UID: own.uid, Limits: s.cluster.limits[own.namespace]}
	config.Layers = []verify.Layer{policyLayer(own, policies, verifiers, registry)}
	choices := []Choice{verifierChoice, storeChoice, policyChoice}
	if floors := s.cluster.floors; len(floors) > 0 {
		if storeChoice.Level == "namespace" {
			registry = s.outside.Registry(s.access(own, s.cluster.stores, attestations))
		}
		choices = append(choices, Choice{Kind: clusterPrefix + kindPolicy, Level: "cluster", Applied: sources(floors),
			Why: "a floor is evaluated in every namespace, with cluster Verifiers and Stores"})
		for _, floor := range floors {
			config.Layers = append(config.Layers, policyLayer(&level{}, []compiledPolicy{floor}, s.cluster.verifiers, registry))
		}
	}
	config.Generation = s.generation(own, verifiers, stores, policies)
	return &view{config: config, choices: choices, materials: own.materials()}
}

// access is what the registry client may do for a namespace.
func (s *Snapshot) access(own *level, stores []store, attestations bool) registry.Access {
	access := registry.Access{Namespace: own.namespace, Account: own.namespace.Account(), UID: own.uid, Hosts: s.cluster.hosts, Attestations: attestations,
		PerSecond: s.cluster.limits[own.namespace].RegistryPerSecond}
	for _, st := range stores {
		access.Stores = append(access.Stores, st.Store)
	}
	return access
}

// attested tells whether any verifier looks at attestations.
func attested(verifiers []verifier) bool {
	return slices.ContainsFunc(verifiers, func(v verifier) bool { return v.Type == string(v1alpha1.TypeAttestation) })
}

// policyLayer joins policies, whose rules are tried in the order of the
// policies' names, with the verifiers that they can name.
func policyLayer(own *level, policies []compiledPolicy, verifiers []verifier, registry verify.Registry) verify.Layer {
	layer := verify.Layer{Registry: registry, RequireMatching: len(policies) == 0, Broken: own.broken}
	for _, v := range verifiers {
		layer.Verifiers = append(layer.Verifiers, v.Verifier)
	}
	for i, p := range policies {
		// One policy that denies by default makes all of them do so, and one that
		// does more than warn goes before those that warn.
		stricter := p.fallback != policy.Allowed && (layer.Default == policy.Allowed || (layer.DefaultWarns && !p.warns))
		if i == 0 || stricter {
			layer.Source, layer.Default, layer.DefaultWarns = p.source, p.fallback, p.warns
		}
		layer.Rules = append(layer.Rules, p.rules...)
		// What a broken policy says of an image is unknown, so it may be a deny.
		if p.broken != "" && layer.Broken == "" {
			layer.Source, layer.Broken = p.source, p.broken
		}
	}
	return layer
}

func sources(policies []compiledPolicy) []policy.ObjectRef {
	list := make([]policy.ObjectRef, len(policies))
	for i, p := range policies {
		list[i] = p.source
	}
	return list
}

// generation is a hash over everything that applies, and nothing else: an edit
// takes effect at once, an edit back finds what was kept, and a change that does
// not concern the namespace leaves its results alone.
func (s *Snapshot) generation(own *level, verifiers []verifier, stores []store, policies []compiledPolicy) string {
	hash := sha256.New()
	add := func(part string) { fmt.Fprintf(hash, "%d:%s", len(part), part) }
	add(own.broken)
	addAll := func(kind string, fingerprints []string) {
		add(kind)
		for _, f := range fingerprints {
			add(f)
		}
	}
	addAll("verifiers", fingerprints(verifiers, func(v verifier) string { return v.fingerprint }))
	addAll("stores", fingerprints(stores, func(st store) string { return st.fingerprint }))
	addAll("policies", fingerprints(policies, func(p compiledPolicy) string { return p.fingerprint }))
	if len(s.cluster.floors) > 0 {
		addAll("floors", fingerprints(s.cluster.floors, func(p compiledPolicy) string { return p.fingerprint }))
		addAll("floor verifiers", fingerprints(s.cluster.verifiers, func(v verifier) string { return v.fingerprint }))
		addAll("floor stores", fingerprints(s.cluster.stores, func(st store) string { return st.fingerprint }))
	}
	add("hosts")
	for _, host := range sortedKeys(s.cluster.hosts) {
		add(host)
		add(fmt.Sprint(s.cluster.hosts[host]))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func fingerprints[T any](resources []T, of func(T) string) []string {
	list := make([]string, 0, len(resources))
	for _, resource := range resources {
		list = append(list, of(resource))
	}
	return slices.Clip(list)
}
