package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrustStoreType is a kind of trust material.
// +kubebuilder:validation:Enum=PublicKeys;Certificates;SigningAuthorities;TimestampAuthorities;SigstoreRoot;RevocationLists
type TrustStoreType string

// The types of trust stores.
const (
	TrustStoreTypePublicKeys           TrustStoreType = "PublicKeys"
	TrustStoreTypeCertificates         TrustStoreType = "Certificates"
	TrustStoreTypeSigningAuthorities   TrustStoreType = "SigningAuthorities"
	TrustStoreTypeTimestampAuthorities TrustStoreType = "TimestampAuthorities"
	TrustStoreTypeSigstoreRoot         TrustStoreType = "SigstoreRoot"
	TrustStoreTypeRevocationLists      TrustStoreType = "RevocationLists"
)

// HashAlgorithm is the hash algorithm of a signature.
// +kubebuilder:validation:Enum=SHA256;SHA384;SHA512
type HashAlgorithm string

// The hash algorithms.
const (
	HashAlgorithmSHA256 HashAlgorithm = "SHA256"
	HashAlgorithmSHA384 HashAlgorithm = "SHA384"
	HashAlgorithmSHA512 HashAlgorithm = "SHA512"
)

// TrustStoreSpec defines trust material.
// +kubebuilder:validation:XValidation:rule="!has(self.source.tuf) || self.type == 'SigstoreRoot'",message="spec.source.tuf is only for spec.type SigstoreRoot"
// +kubebuilder:validation:XValidation:rule="!has(self.source.kms) || self.type == 'PublicKeys'",message="spec.source.kms is only for spec.type PublicKeys"
// +kubebuilder:validation:XValidation:rule="!has(self.source.vault) || !(self.type in ['SigstoreRoot', 'RevocationLists'])",message="spec.source.vault is not for spec.type SigstoreRoot or RevocationLists"
// +kubebuilder:validation:XValidation:rule="!has(self.hash) || self.type == 'PublicKeys'",message="spec.hash is only for spec.type PublicKeys; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.awsSigner) || self.type == 'SigningAuthorities'",message="spec.awsSigner is only for spec.type SigningAuthorities; remove it"
// +kubebuilder:validation:XValidation:rule="(has(self.source.inline) ? size(self.source.inline) : 0) + (has(self.source.tuf) ? (has(self.source.tuf.root) ? size(self.source.tuf.root) : 0) + (has(self.source.tuf.caBundle) && has(self.source.tuf.caBundle.inline) ? size(self.source.tuf.caBundle.inline) : 0) : 0) + (has(self.source.vault) && has(self.source.vault.caBundle) && has(self.source.vault.caBundle.inline) ? size(self.source.vault.caBundle.inline) : 0) <= 88000",message="spec holds more than 96 KiB: put the text into a ConfigMap or a Secret"
type TrustStoreSpec struct {
	// Type of the trust material. PublicKeys, Certificates, SigningAuthorities (certificates of
	// notation's signing authorities), TimestampAuthorities (root certificates) and RevocationLists
	// are PEM text. SigstoreRoot is a trusted_root.json.
	Type TrustStoreType `json:"type"`

	// Source of the trust material.
	Source TrustSource `json:"source"`

	// Hash algorithm of signatures made with these keys. The default is SHA256 and,
	// for ECDSA P-384 and P-521 and for RSA with 3072 and 4096 bits, also the hash of matching
	// strength: SHA384 or SHA512.
	// +optional
	Hash HashAlgorithm `json:"hash,omitempty"`

	// AWSSigner configures the identity for querying AWS Signer about revoked signatures. It is
	// only for type SigningAuthorities.
	// +optional
	AWSSigner *AWSSignerAccess `json:"awsSigner,omitempty"`
}

// TrustStore contains keys and certificates that Verifiers in its namespace trust.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lwts
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.kms) || has(self.spec.source.kms.secretRef) || has(self.spec.source.kms.serviceAccount)",fieldPath=".spec.source.kms",message="set secretRef or serviceAccount: only a ClusterTrustStore can read a key as Landwaiter's own pod"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.awsSigner) || has(self.spec.awsSigner.secretRef) || has(self.spec.awsSigner.serviceAccount)",fieldPath=".spec.awsSigner",message="set secretRef or serviceAccount: only a ClusterTrustStore can ask as Landwaiter's own pod"
type TrustStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TrustStoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status TrustStoreStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (t *TrustStore) CommonStatus() *Status { return &t.Status.Status }

// Trusts returns the fingerprints in the status.
func (t *TrustStore) Trusts() *[]string { return &t.Status.Fingerprints }

// Details returns the status of the trust material.
func (t *TrustStore) Details() *TrustStoreStatus { return &t.Status }

// TrustStoreList is a list of TrustStores.
// +kubebuilder:object:root=true
type TrustStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrustStore `json:"items"`
}

// ClusterTrustStore contains keys and certificates that Verifiers in every namespace can
// reference.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcts
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterTrustStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TrustStoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status TrustStoreStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (t *ClusterTrustStore) CommonStatus() *Status { return &t.Status.Status }

// Trusts returns the fingerprints in the status.
func (t *ClusterTrustStore) Trusts() *[]string { return &t.Status.Fingerprints }

// Details returns the status of the trust material.
func (t *ClusterTrustStore) Details() *TrustStoreStatus { return &t.Status }

// ClusterTrustStoreList is a list of ClusterTrustStores.
// +kubebuilder:object:root=true
type ClusterTrustStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTrustStore `json:"items"`
}
