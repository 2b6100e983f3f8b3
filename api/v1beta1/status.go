package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of conditions.
const (
	// ConditionReady is True if the resource is valid and everything that it references exists and
	// is Ready. While Ready is False, images that depend on the resource are denied.
	ConditionReady = "Ready"
	// ConditionEffective is True if Landwaiter decides by what the resource says. Otherwise, the
	// reason explains why not. A resource that Landwaiter cannot use is never Effective. Tools that
	// wait for a resource should wait for Ready, because a Ready resource need not be Effective.
	ConditionEffective = "Effective"
	// ConditionExpiresSoon is True if trust material in the resource has expired, or expires within
	// a notice period: 30 days for certificates. It does not affect Ready, because Landwaiter
	// checks the expiry for each signature. Only resources with trust material have this condition.
	ConditionExpiresSoon = "ExpiresSoon"
	// ConditionNeedsReview is True if the resource allows more than its author may know, or contains
	// what has no effect: an identity that no signer can have, a rule that no image reaches, or a
	// placeholder. It does not affect Ready. Otherwise, the resource does not have this condition.
	ConditionNeedsReview = "NeedsReview"
)

// IsWarning reports whether a condition of a type asks for attention while it is True. All others do while they are
// not.
func IsWarning(condition string) bool {
	return condition == ConditionExpiresSoon || condition == ConditionNeedsReview
}

// AnnotationTUFRoles is the annotation that landwaiter trust export sets on a ConfigMap. It
// lists the metadata that verified the content, and when this metadata expires. Only the
// condition ExpiresSoon uses it.
const AnnotationTUFRoles = "landwaiter.dev/tuf-roles"

// AnnotationCertificateProblem of a Gatekeeper Provider object says why Landwaiter cannot keep the certificate of the
// server that the object leads to.
const AnnotationCertificateProblem = "landwaiter.dev/certificate-problem"

// Status contains the status fields of all kinds.
type Status struct {
	// Conditions of the types Ready and Effective. Resources with trust material also have
	// ExpiresSoon, and resources that allow too much have NeedsReview.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for Landwaiter", lastTransitionTime: "1970-01-01T00:00:00Z"}, {type: "Effective", status: "Unknown", reason: "Pending", message: "Waiting for Landwaiter", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// VerifierStatus is the observed state of a Verifier or ClusterVerifier.
type VerifierStatus struct {
	Status `json:",inline"`

	// Fingerprints of the keys in the verifier itself ("sha256:" and the hash of the public key).
	// +optional
	// +listType=atomic
	Fingerprints []string `json:"fingerprints,omitempty"`
}

// TrustStoreStatus is the observed state of a TrustStore or
// ClusterTrustStore.
type TrustStoreStatus struct {
	Status `json:",inline"`

	// Fingerprints of the first 16 keys or certificates ("sha256:" and the hash of the public key),
	// or of a trusted root ("sha256:" and the hash of the text).
	// +optional
	// +listType=atomic
	Fingerprints []string `json:"fingerprints,omitempty"`
	// FetchedAt is when the trust material was last fetched. It is only set for sources outside the
	// cluster.
	// +optional
	FetchedAt *metav1.Time `json:"fetchedAt,omitempty"`
}
