// Package v1alpha1 holds the resources of the group landwaiter.dev: verifiers,
// stores, trust stores and verification policies, each in a namespaced and a
// cluster-wide kind that share one specification, and the cluster's limits. It has
// types and nothing else: what they mean is compiled by package tenant.
// +kubebuilder:object:generate=true
// +groupName=landwaiter.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version of every kind in this package.
const (
	Group   = "landwaiter.dev"
	Version = "v1alpha1"
)

// GroupVersion returns the group and version of every kind in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers every kind and list of this package in scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&Verifier{}, &VerifierList{}, &ClusterVerifier{}, &ClusterVerifierList{},
		&Store{}, &StoreList{}, &ClusterStore{}, &ClusterStoreList{},
		&TrustStore{}, &TrustStoreList{}, &ClusterTrustStore{}, &ClusterTrustStoreList{},
		&VerificationPolicy{}, &VerificationPolicyList{}, &ClusterVerificationPolicy{}, &ClusterVerificationPolicyList{},
		&ClusterLimits{}, &ClusterLimitsList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}

// Object is a resource of this package, of either scope.
// +kubebuilder:object:generate=false
type Object interface {
	runtime.Object
	metav1.Object
	// GetStatus returns the status to read or to change in place.
	GetStatus() *Status
}

// ConditionReady tells whether a resource can be used. While it is not True,
// what depends on the resource denies.
const ConditionReady = "Ready"

// Status is what Landwaiter says of a resource.
type Status struct {
	// Conditions; the type Ready says whether the resource can be used, and why not.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Material is what a trust store holds.
	// +optional
	Material *Material `json:"material,omitempty"`
}

// Material is what a trust store holds.
type Material struct {
	// Fingerprints of keys and certificates ("sha256:" of the public key), or of a
	// trusted root ("sha256:" of the text); the first 16.
	// +optional
	// +listType=atomic
	Fingerprints []string `json:"fingerprints,omitempty"`
	// FetchedAt is when it was fetched last, if it is kept outside of the cluster.
	// +optional
	FetchedAt *metav1.Time `json:"fetchedAt,omitempty"`
}
