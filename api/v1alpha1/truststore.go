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

// TrustSource is where trust material comes from.
// +kubebuilder:validation:XValidation:rule="[has(self.inline), has(self.secretRef), has(self.configMapRef), has(self.kms), has(self.vault)].filter(x, x).size() == 1",message="set exactly one of inline, secretRef, configMapRef, kms and vault in spec.source"
type TrustSource struct {
	// Inline is the text itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretRef names a key of a Secret that holds the text.
	// +optional
	SecretRef *ObjectKeyRef `json:"secretRef,omitempty"`
	// ConfigMapRef names a key of a ConfigMap that holds the text.
	// +optional
	ConfigMapRef *ObjectKeyRef `json:"configMapRef,omitempty"`
	// KMS names a key in a key management service. Not available in this version.
	// +optional
	KMS *KMSSource `json:"kms,omitempty"`
	// Vault names a key in HashiCorp Vault. Not available in this version.
	// +optional
	Vault *VaultSource `json:"vault,omitempty"`
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

// KMSSource names a key in a key management service.
type KMSSource struct {
	// URI such as "awskms:///alias/release".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	URI string `json:"uri"`
}

// VaultSource names a key in HashiCorp Vault.
type VaultSource struct {
	// Address of the server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Address string `json:"address"`
	// Path of the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
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
