package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of conditions.
const (
	// ConditionReady is True if the resource is valid and everything that it
	// refers to exists and is Ready. While it is False, whatever depends on the
	// resource is denied.
	ConditionReady = "Ready"
	// ConditionEffective is True if the resource takes part in a decision, and
	// otherwise says why it does not. It says nothing about health: tools that wait
	// for a resource wait for Ready.
	ConditionEffective = "Effective"
)

// Status is what every kind's status has.
type Status struct {
	// Conditions of the types Ready and Effective.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:default={{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for Landwaiter", lastTransitionTime: "1970-01-01T00:00:00Z"}, {type: "Effective", status: "Unknown", reason: "Pending", message: "Waiting for Landwaiter", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// VerifierStatus is what Landwaiter reports about a Verifier or ClusterVerifier.
type VerifierStatus struct {
	Status `json:",inline"`
}

// StoreStatus is what Landwaiter reports about a Store or ClusterStore.
type StoreStatus struct {
	Status `json:",inline"`
}

// TrustStoreStatus is what Landwaiter reports about a TrustStore or
// ClusterTrustStore.
type TrustStoreStatus struct {
	Status `json:",inline"`

	// Fingerprints of the keys and certificates ("sha256:" of the public key), or of
	// a trusted root ("sha256:" of the text); the first 16.
	// +optional
	// +listType=atomic
	Fingerprints []string `json:"fingerprints,omitempty"`
	// FetchedAt is when the material was last fetched, if it is kept outside the
	// cluster.
	// +optional
	FetchedAt *metav1.Time `json:"fetchedAt,omitempty"`
}

// VerificationPolicyStatus is what Landwaiter reports about a VerificationPolicy
// or ClusterVerificationPolicy.
type VerificationPolicyStatus struct {
	Status `json:",inline"`
}

// ClusterQuotaStatus is what Landwaiter reports about a ClusterQuota.
type ClusterQuotaStatus struct {
	Status `json:",inline"`
}
