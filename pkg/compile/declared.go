package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Kinds as they are written in resources.
const (
	kindVerifier     = "Verifier"
	kindStore        = "Store"
	kindTrustStore   = "TrustStore"
	kindPolicy       = "VerificationPolicy"
	kindNamespace    = "Namespace"
	kindSecret       = "Secret"
	kindConfigMap    = "ConfigMap"
	clusterPrefix    = "Cluster"
	kindClusterStore = clusterPrefix + kindStore
)

// entry is one declared object, of either scope: from here on a namespaced
// kind and its cluster twin are the same type.
type entry[S any] struct {
	source policy.ObjectRef
	spec   S
	broken error // the content could not be read
}

// declared is what one level (a namespace, or the cluster) declares, each kind
// in the order of names.
type declared struct {
	namespace verify.Namespace
	uid       string
	broken    error // the Namespace object itself could not be read

	verifiers   []entry[v1alpha1.VerifierSpec]
	stores      []entry[v1alpha1.ClusterStoreSpec]
	trustStores []entry[v1alpha1.TrustStoreSpec]
	policies    []entry[v1alpha1.ClusterVerificationPolicySpec]
	limits      []entry[v1alpha1.ClusterLimitsSpec] // of the cluster
}

// levels sorts objects by the level that declares them. The cluster's is always
// there.
func levels(o resource.Objects) map[verify.Namespace]*declared {
	byLevel := sorter{verify.Cluster: {}}
	for i := range o.Namespaces {
		byLevel.level(o.Namespaces[i].Name).uid = string(o.Namespaces[i].UID)
	}
	for _, v := range o.Verifiers {
		byLevel.level(v.Namespace).addVerifier(kindVerifier, v.Namespace, v.Name, v.Spec)
	}
	for _, v := range o.ClusterVerifiers {
		byLevel.level("").addVerifier(clusterPrefix+kindVerifier, "", v.Name, v.Spec)
	}
	for _, s := range o.Stores {
		byLevel.level(s.Namespace).addStore(kindStore, s.Namespace, s.Name, v1alpha1.ClusterStoreSpec{StoreSpec: s.Spec})
	}
	for _, s := range o.ClusterStores {
		byLevel.level("").addStore(kindClusterStore, "", s.Name, s.Spec)
	}
	for _, s := range o.TrustStores {
		byLevel.level(s.Namespace).addTrustStore(kindTrustStore, s.Namespace, s.Name, s.Spec)
	}
	for _, s := range o.ClusterTrustStores {
		byLevel.level("").addTrustStore(clusterPrefix+kindTrustStore, "", s.Name, s.Spec)
	}
	for _, p := range o.VerificationPolicies {
		byLevel.level(p.Namespace).addPolicy(kindPolicy, p.Namespace, p.Name, v1alpha1.ClusterVerificationPolicySpec{VerificationPolicySpec: p.Spec})
	}
	for _, p := range o.ClusterVerificationPolicies {
		byLevel.level("").addPolicy(clusterPrefix+kindPolicy, "", p.Name, p.Spec)
	}
	for _, l := range o.ClusterLimits {
		cluster := byLevel.level("")
		cluster.limits = append(cluster.limits, declare(kindLimits, "", l.Name, l.Spec))
	}
	for _, b := range o.Broken {
		byLevel.addBroken(b)
	}
	for _, d := range byLevel {
		d.sort()
	}
	return byLevel
}

type sorter map[verify.Namespace]*declared

func (s sorter) level(namespace string) *declared {
	d := s[verify.Namespace(namespace)]
	if d == nil {
		d = &declared{namespace: verify.Namespace(namespace)}
		s[d.namespace] = d
	}
	return d
}

func (d *declared) addVerifier(kind, namespace, name string, spec v1alpha1.VerifierSpec) {
	d.verifiers = append(d.verifiers, declare(kind, namespace, name, spec))
}

func (d *declared) addStore(kind, namespace, name string, spec v1alpha1.ClusterStoreSpec) {
	d.stores = append(d.stores, declare(kind, namespace, name, spec))
}

func (d *declared) addTrustStore(kind, namespace, name string, spec v1alpha1.TrustStoreSpec) {
	d.trustStores = append(d.trustStores, declare(kind, namespace, name, spec))
}

func (d *declared) addPolicy(kind, namespace, name string, spec v1alpha1.ClusterVerificationPolicySpec) {
	d.policies = append(d.policies, declare(kind, namespace, name, spec))
}

func declare[S any](kind, namespace, name string, spec S) entry[S] {
	return entry[S]{source: policy.ObjectRef{Kind: kind, Namespace: namespace, Name: name}, spec: spec}
}

// addBroken keeps the place of an object that could not be read, so that it
// denies there instead of being as good as deleted. Broken Secrets and
// ConfigMaps are found where they are used.
func (s sorter) addBroken(b resource.Broken) {
	switch b.Source.Kind {
	case kindVerifier, clusterPrefix + kindVerifier:
		d := s.level(b.Source.Namespace)
		d.verifiers = append(d.verifiers, entry[v1alpha1.VerifierSpec]{source: b.Source, broken: b.Err})
	case kindStore, kindClusterStore:
		d := s.level(b.Source.Namespace)
		d.stores = append(d.stores, entry[v1alpha1.ClusterStoreSpec]{source: b.Source, broken: b.Err})
	case kindTrustStore, clusterPrefix + kindTrustStore:
		d := s.level(b.Source.Namespace)
		d.trustStores = append(d.trustStores, entry[v1alpha1.TrustStoreSpec]{source: b.Source, broken: b.Err})
	case kindPolicy, clusterPrefix + kindPolicy:
		d := s.level(b.Source.Namespace)
		d.policies = append(d.policies, entry[v1alpha1.ClusterVerificationPolicySpec]{source: b.Source, broken: b.Err})
	case kindLimits:
		d := s.level("")
		d.limits = append(d.limits, entry[v1alpha1.ClusterLimitsSpec]{source: b.Source, broken: b.Err})
	case kindNamespace:
		s.level(b.Source.Name).broken = b.Err
	}
}

// maxResources is how many resources one namespace may have: whoever may make
// them must not be able to keep everybody else's changes waiting.
const maxResources = 256

// tooMany returns an error if a namespace has more resources than are compiled.
// Cluster admins bind themselves.
func (d *declared) tooMany() error {
	if n := len(d.sources()); d.namespace != verify.Cluster && n > maxResources {
		return fmt.Errorf("namespace %s has %d resources, the limit is %d: delete some", d.namespace, n, maxResources)
	}
	return nil
}

// sources are all resources of the level.
func (d *declared) sources() []policy.ObjectRef {
	return slices.Concat(sourcesOf(d.verifiers), sourcesOf(d.stores), sourcesOf(d.trustStores), sourcesOf(d.policies))
}

func sourcesOf[S any](resources []entry[S]) []policy.ObjectRef {
	list := make([]policy.ObjectRef, len(resources))
	for i, r := range resources {
		list[i] = r.source
	}
	return list
}

func (d *declared) sort() {
	sortByName(d.verifiers)
	sortByName(d.stores)
	sortByName(d.trustStores)
	sortByName(d.policies)
	sortByName(d.limits)
}

func sortByName[S any](resources []entry[S]) {
	slices.SortStableFunc(resources, func(x, y entry[S]) int { return cmp.Compare(x.source.Name, y.source.Name) })
}
