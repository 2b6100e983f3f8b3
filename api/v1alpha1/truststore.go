package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrustStoreType is a kind of trust material.
// +kubebuilder:validation:Enum=PublicKeys;Certificates;TimestampAuthorities;SigstoreRoot
type TrustStoreType string

// The types of trust stores.
const (
	PublicKeys           TrustStoreType = "PublicKeys"
	Certificates         TrustStoreType = "Certificates"
	TimestampAuthorities TrustStoreType = "TimestampAuthorities"
	SigstoreRoot         TrustStoreType = "SigstoreRoot"
)

// HashAlgorithm is what signed bytes are hashed with.
// +kubebuilder:validation:Enum=SHA256;SHA384;SHA512
type HashAlgorithm string

// The hash algorithms.
const (
	SHA256 HashAlgorithm = "SHA256"
	SHA384 HashAlgorithm = "SHA384"
	SHA512 HashAlgorithm = "SHA512"
)

// TrustStoreSpec is named trust material.
// +kubebuilder:validation:XValidation:rule="!has(self.source.tuf) || self.type == 'SigstoreRoot'",message="spec.source.tuf is only for spec.type SigstoreRoot"
// +kubebuilder:validation:XValidation:rule="!has(self.source.kms) || self.type == 'PublicKeys'",message="spec.source.kms is only for spec.type PublicKeys"
// +kubebuilder:validation:XValidation:rule="!has(self.source.vault) || self.type != 'SigstoreRoot'",message="spec.source.vault is not for spec.type SigstoreRoot"
// +kubebuilder:validation:XValidation:rule="!has(self.hash) || self.type == 'PublicKeys'",message="spec.hash is only for spec.type PublicKeys; remove it"
type TrustStoreSpec struct {
	// Type of the material: PublicKeys, Certificates and TimestampAuthorities (root
	// certificates) are PEM text, SigstoreRoot is a trusted_root.json.
	Type TrustStoreType `json:"type"`

	// Hash that signatures made with these keys use. Left out it is what cosign
	// uses: SHA256, or for ECDSA P-384 and P-521 also the hash of that strength.
	// +optional
	Hash HashAlgorithm `json:"hash,omitempty"`

	// Source of the material.
	Source TrustSource `json:"source"`
}

// ObjectKeyRef names one key of a Secret or ConfigMap.
type ObjectKeyRef struct {
	// Namespace of the object: required in cluster resources, and forbidden in
	// namespaced ones, which reach their own namespace only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key within the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// TrustStore is named trust material of a namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.secretRef) || !has(self.spec.source.secretRef.__namespace__)",message="leave spec.source.secretRef.namespace out: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.configMapRef) || !has(self.spec.source.configMapRef.__namespace__)",message="leave spec.source.configMapRef.namespace out: only ConfigMaps of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.vault) || !has(self.spec.source.vault.token.__namespace__)",message="leave spec.source.vault.token.namespace out: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.kms) || !has(self.spec.source.kms.secretRef) || !has(self.spec.source.kms.secretRef.__namespace__)",message="leave spec.source.kms.secretRef.namespace out: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.kms) || has(self.spec.source.kms.secretRef)",message="set spec.source.kms.secretRef: a namespaced trust store needs credentials of its own"
type TrustStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TrustStoreSpec `json:"spec"`
	Status Status         `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (t *TrustStore) GetStatus() *Status { return &t.Status }

// TrustStoreList is a list of TrustStores.
// +kubebuilder:object:root=true
type TrustStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrustStore `json:"items"`
}

// ClusterTrustStore is named trust material of the cluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.secretRef) || has(self.spec.source.secretRef.__namespace__)",message="set spec.source.secretRef.namespace: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.configMapRef) || has(self.spec.source.configMapRef.__namespace__)",message="set spec.source.configMapRef.namespace: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.vault) || has(self.spec.source.vault.token.__namespace__)",message="set spec.source.vault.token.namespace: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.kms) || !has(self.spec.source.kms.secretRef) || has(self.spec.source.kms.secretRef.__namespace__)",message="set spec.source.kms.secretRef.namespace: a cluster resource has no namespace of its own"
type ClusterTrustStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TrustStoreSpec `json:"spec"`
	Status Status         `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (t *ClusterTrustStore) GetStatus() *Status { return &t.Status }

// ClusterTrustStoreList is a list of ClusterTrustStores.
// +kubebuilder:object:root=true
type ClusterTrustStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTrustStore `json:"items"`
}
