package tenant

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
)

// Objects is everything that verdicts depend on, as read from an API server or
// from files. The order of a slice means nothing.
type Objects struct {
	Namespaces []corev1.Namespace
	Secrets    []corev1.Secret
	ConfigMaps []corev1.ConfigMap

	Verifiers                   []v1alpha1.Verifier
	ClusterVerifiers            []v1alpha1.ClusterVerifier
	Stores                      []v1alpha1.Store
	ClusterStores               []v1alpha1.ClusterStore
	TrustStores                 []v1alpha1.TrustStore
	ClusterTrustStores          []v1alpha1.ClusterTrustStore
	VerificationPolicies        []v1alpha1.VerificationPolicy
	ClusterVerificationPolicies []v1alpha1.ClusterVerificationPolicy

	// Broken objects are known to be there although their content could not be
	// read. They deny where they would have applied.
	Broken []Broken
}

// Broken is an object whose kind, namespace and name are known, but not its
// content. Secrets, ConfigMaps and Namespaces may be broken too.
type Broken struct {
	Source policy.Source
	Err    error
}

// Problem is something that the owner of a resource should correct. Reason is
// one word in CamelCase, as in a Kubernetes condition.
type Problem struct {
	Source  policy.Source
	Reason  string
	Message string
}
