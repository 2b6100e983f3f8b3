package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerifierType is a kind of evidence.
// +kubebuilder:validation:Enum=Cosign;Notation;Attestation
type VerifierType string

// The types of verifiers.
const (
	VerifierTypeCosign      VerifierType = "Cosign"
	VerifierTypeNotation    VerifierType = "Notation"
	VerifierTypeAttestation VerifierType = "Attestation"
)

// VerifierSpec configures how one kind of evidence is checked.
// +kubebuilder:validation:XValidation:rule="has(self.cosign) == (self.type == 'Cosign')",message="spec.type Cosign needs spec.cosign, and no other type may have it"
// +kubebuilder:validation:XValidation:rule="has(self.notation) == (self.type == 'Notation')",message="spec.type Notation needs spec.notation, and no other type may have it"
// +kubebuilder:validation:XValidation:rule="has(self.attestation) == (self.type == 'Attestation')",message="spec.type Attestation needs spec.attestation, and no other type may have it"
type VerifierSpec struct {
	// Images that the verifier applies to: "**" for all images, or patterns of a registry host and a
	// repository in lower case, without tag and digest, such as "registry.example.com/team-a/**" or
	// "docker.io/library/nginx". In the repository, "*" matches within one segment, and a segment
	// "**" matches one or more segments. In the host, a leading "*." matches one label.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(\*\*|((\*\.)?[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])(/(\*\*|([a-z0-9][a-z0-9._-]*)?(\*[a-z0-9._-]+)*(\*?[a-z0-9]|\*)))+)$`
	// +kubebuilder:default={"**"}
	Images []string `json:"images,omitempty"`

	// Type of the evidence. The field with the same name configures the check.
	Type VerifierType `json:"type"`

	// Cosign checks cosign signatures: legacy signatures and Sigstore bundles.
	// +optional
	Cosign *CosignVerifier `json:"cosign,omitempty"`

	// Notation checks Notary Project signatures.
	// +optional
	Notation *NotationVerifier `json:"notation,omitempty"`

	// Attestation checks in-toto attestations.
	// +optional
	Attestation *AttestationVerifier `json:"attestation,omitempty"`
}

// CosignVerifier defines which cosign signatures are valid.
// +kubebuilder:validation:ExactlyOneOf=keys;keyless
type CosignVerifier struct {
	Signers `json:",inline"`

	// Annotations that the signature must have, with exactly these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 256 && size(self[k]) <= 1024)",message="a name has more than 256 characters, or a value more than 1024"
	Annotations map[string]string `json:"annotations,omitempty"`

	// MatchRepository requires that the signature contains the name of the image's own repository.
	// Do not enable it if images are mirrored.
	// +optional
	MatchRepository bool `json:"matchRepository,omitempty"`
}

// AttestationVerifier defines which in-toto attestations are valid.
// +kubebuilder:validation:ExactlyOneOf=keys;keyless
type AttestationVerifier struct {
	Signers `json:",inline"`

	// PredicateType is the exact predicate type that the statement must have.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PredicateType string `json:"predicateType"`

	// Expression is a CEL expression that must be true. Its variables are predicate, predicateType,
	// now and signer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`
}

// Verifier checks one kind of evidence in its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lwv
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Verifier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VerifierSpec `json:"spec"`
	// +kubebuilder:default={}
	Status VerifierStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (v *Verifier) CommonStatus() *Status { return &v.Status.Status }

// Trusts returns the fingerprints in the status.
func (v *Verifier) Trusts() *[]string { return &v.Status.Fingerprints }

// VerifierList is a list of Verifiers.
// +kubebuilder:object:root=true
type VerifierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Verifier `json:"items"`
}

// ClusterVerifier checks one kind of evidence in namespaces that have no
// Verifier, and for mandatory policies.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcv
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterVerifier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VerifierSpec `json:"spec"`
	// +kubebuilder:default={}
	Status VerifierStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (v *ClusterVerifier) CommonStatus() *Status { return &v.Status.Status }

// Trusts returns the fingerprints in the status.
func (v *ClusterVerifier) Trusts() *[]string { return &v.Status.Fingerprints }

// ClusterVerifierList is a list of ClusterVerifiers.
// +kubebuilder:object:root=true
type ClusterVerifierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterVerifier `json:"items"`
}
