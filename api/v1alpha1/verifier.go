package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerifierType is a kind of evidence.
// +kubebuilder:validation:Enum=Cosign;Notation;Attestation
type VerifierType string

// The types of verifiers.
const (
	TypeCosign      VerifierType = "Cosign"
	TypeNotation    VerifierType = "Notation"
	TypeAttestation VerifierType = "Attestation"
)

// TransparencyLogMode says whether signatures must be in a transparency log.
// +kubebuilder:validation:Enum=Required;Ignore
type TransparencyLogMode string

// The modes of transparencyLog.
const (
	TransparencyLogRequired TransparencyLogMode = "Required"
	TransparencyLogIgnore   TransparencyLogMode = "Ignore"
)

// TrustStoreKind is the kind of a referenced trust store.
// +kubebuilder:validation:Enum=TrustStore;ClusterTrustStore
type TrustStoreKind string

// VerifierSpec says how one kind of evidence is checked.
// +kubebuilder:validation:XValidation:rule="[has(self.cosign), has(self.notation), has(self.attestation)].filter(x, x).size() == 1",message="set exactly one of spec.cosign, spec.notation and spec.attestation"
type VerifierSpec struct {
	// Images that the verifier is for: "**" for all (the default when empty), or
	// patterns of host and repository such as "registry.example.com/team-a/**".
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Images []string `json:"images,omitempty"`

	// Cosign checks cosign signatures: legacy ones and Sigstore bundles.
	// +optional
	Cosign *CosignVerifier `json:"cosign,omitempty"`

	// Notation checks Notary Project signatures.
	// +optional
	Notation *NotationVerifier `json:"notation,omitempty"`

	// Attestation checks in-toto attestations.
	// +optional
	Attestation *AttestationVerifier `json:"attestation,omitempty"`
}

// CosignVerifier says which cosign signatures are valid.
// +kubebuilder:validation:XValidation:rule="has(self.keys) != has(self.keyless)",message="set exactly one of spec.cosign.keys and spec.cosign.keyless"
// +kubebuilder:validation:XValidation:rule="!has(self.logTrustStore) || (has(self.keys) && has(self.transparencyLog) && self.transparencyLog == 'Required')",message="spec.cosign.logTrustStore is for spec.cosign.keys with transparencyLog Required; remove it"
type CosignVerifier struct {
	// Keys are trust stores of type PublicKeys. A signature by any of their keys
	// is valid.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Keys []TrustStoreRef `json:"keys,omitempty"`

	// Keyless trusts identities instead of keys.
	// +optional
	Keyless *Keyless `json:"keyless,omitempty"`

	// TransparencyLog says whether signatures must be in a transparency log: for
	// keyless the default is Required, for keys Ignore. Where it is ignored for
	// keyless, a timestamp authority must vouch for the time instead.
	// +optional
	TransparencyLog TransparencyLogMode `json:"transparencyLog,omitempty"`

	// LogTrustStore is of type SigstoreRoot and has the transparency logs for
	// signatures by keys, where transparencyLog is Required.
	// +optional
	LogTrustStore *TrustStoreRef `json:"logTrustStore,omitempty"`

	// Annotations that the signature must carry with exactly these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// MatchRepository also demands that the signature names the image's own
	// repository. Leave it off where images are mirrored.
	// +optional
	MatchRepository bool `json:"matchRepository,omitempty"`
}

// AttestationVerifier says which in-toto attestations are valid.
// +kubebuilder:validation:XValidation:rule="!has(self.logTrustStore) || (has(self.keys) && has(self.transparencyLog) && self.transparencyLog == 'Required')",message="spec.attestation.logTrustStore is for spec.attestation.keys with transparencyLog Required; remove it"
// +kubebuilder:validation:XValidation:rule="has(self.keys) != has(self.keyless)",message="set exactly one of spec.attestation.keys and spec.attestation.keyless"
type AttestationVerifier struct {
	// PredicateType that the statement must have, exactly.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PredicateType string `json:"predicateType"`
	// Keys are trust stores of type PublicKeys.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Keys []TrustStoreRef `json:"keys,omitempty"`
	// Keyless trusts identities instead of keys.
	// +optional
	Keyless *Keyless `json:"keyless,omitempty"`
	// TransparencyLog is as for cosign.
	// +optional
	TransparencyLog TransparencyLogMode `json:"transparencyLog,omitempty"`
	// LogTrustStore is of type SigstoreRoot and has the transparency logs for
	// attestations by keys, where transparencyLog is Required.
	// +optional
	LogTrustStore *TrustStoreRef `json:"logTrustStore,omitempty"`
	// Expression in CEL that must be true. It sees predicate, predicateType, now
	// and signer.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`
}

// TrustStoreRef names a trust store: by trustStore one of the own scope (the
// same namespace; for a cluster resource a ClusterTrustStore), or by kind and
// name.
// +kubebuilder:validation:XValidation:rule="has(self.trustStore) ? !has(self.kind) && !has(self.name) : has(self.kind) && has(self.name)",message="name a trust store either by trustStore or by kind and name"
type TrustStoreRef struct {
	// TrustStore is the name of a store of the own scope.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TrustStore string `json:"trustStore,omitempty"`
	// Kind is TrustStore or ClusterTrustStore.
	// +optional
	Kind TrustStoreKind `json:"kind,omitempty"`
	// Name of the store.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Verifier checks one kind of evidence in its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Images",type=string,JSONPath=`.spec.images`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Verifier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VerifierSpec `json:"spec"`
	Status Status       `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (v *Verifier) GetStatus() *Status { return &v.Status }

// VerifierList is a list of Verifiers.
// +kubebuilder:object:root=true
type VerifierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Verifier `json:"items"`
}

// ClusterVerifier checks one kind of evidence in namespaces that have no
// Verifier of their own, and for floors.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Images",type=string,JSONPath=`.spec.images`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterVerifier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VerifierSpec `json:"spec"`
	Status Status       `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (v *ClusterVerifier) GetStatus() *Status { return &v.Status }

// ClusterVerifierList is a list of ClusterVerifiers.
// +kubebuilder:object:root=true
type ClusterVerifierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterVerifier `json:"items"`
}
