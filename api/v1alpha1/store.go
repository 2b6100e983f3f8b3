package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreSpec says where evidence lives and how to get at it.
type StoreSpec struct {
	// Registries that the store is for, as host or host:port. The first store by
	// name that lists a registry applies to it.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	Registries []string `json:"registries"`

	// ImagePullSecrets hold credentials, as for pods. Each is only ever sent to
	// the host that it is for.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretRef `json:"imagePullSecrets,omitempty"`

	// Identity logs in with a cloud's identity instead. It needs the image
	// landwaiter:full.
	// +optional
	Identity *RegistryIdentity `json:"identity,omitempty"`

	// CABundle is trusted for these registries, besides the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// RegistryProvider is a cloud whose registries have logins of their own.
// +kubebuilder:validation:Enum=ECR;ACR;GAR
type RegistryProvider string

// The providers.
const (
	ProviderECR RegistryProvider = "ECR"
	ProviderACR RegistryProvider = "ACR"
	ProviderGAR RegistryProvider = "GAR"
)

// RegistryIdentity says how to log in at the registries of a cloud.
type RegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure) or GAR (Google). Credentials are only
	// ever sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials: accessKeyID and secretAccessKey for
	// ECR; tenantID, clientID and clientSecret for ACR; credentials.json for GAR.
	// Left out, a ClusterStore uses the identity of the pod.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// Namespace of the Secret: required in cluster resources, and forbidden in
	// namespaced ones.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CABundle is PEM certificates.
// +kubebuilder:validation:XValidation:rule="[has(self.inline), has(self.secretRef), has(self.configMapRef)].filter(x, x).size() == 1",message="set exactly one of inline, secretRef and configMapRef in spec.caBundle"
type CABundle struct {
	// Inline is PEM text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Inline string `json:"inline,omitempty"`
	// SecretRef names a key of a Secret that holds PEM text.
	// +optional
	SecretRef *ObjectKeyRef `json:"secretRef,omitempty"`
	// ConfigMapRef names a key of a ConfigMap that holds PEM text.
	// +optional
	ConfigMapRef *ObjectKeyRef `json:"configMapRef,omitempty"`
}

// ClusterStoreSpec is a StoreSpec with what only cluster admins may say.
// Listing a registry here also permits it to be on a private address.
type ClusterStoreSpec struct {
	StoreSpec `json:",inline"`

	// InsecurePlainHTTP reaches these registries without TLS.
	// +optional
	InsecurePlainHTTP bool `json:"insecurePlainHTTP,omitempty"`
}

// Store gives access to registries for its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter
// +kubebuilder:printcolumn:name="Registries",type=string,JSONPath=`.spec.registries`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.imagePullSecrets) || self.spec.imagePullSecrets.all(s, !has(s.__namespace__))",message="leave namespace out of spec.imagePullSecrets: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.identity) || has(self.spec.identity.secretRef)",message="set spec.identity.secretRef: a namespaced store needs credentials of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.identity) || !has(self.spec.identity.secretRef) || !has(self.spec.identity.secretRef.__namespace__)",message="leave spec.identity.secretRef.namespace out: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.caBundle) || !has(self.spec.caBundle.secretRef) || !has(self.spec.caBundle.secretRef.__namespace__)",message="leave spec.caBundle.secretRef.namespace out: only Secrets of the own namespace can be used"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.caBundle) || !has(self.spec.caBundle.configMapRef) || !has(self.spec.caBundle.configMapRef.__namespace__)",message="leave spec.caBundle.configMapRef.namespace out: only ConfigMaps of the own namespace can be used"
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StoreSpec `json:"spec"`
	Status Status    `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (s *Store) GetStatus() *Status { return &s.Status }

// StoreList is a list of Stores.
// +kubebuilder:object:root=true
type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Store `json:"items"`
}

// ClusterStore gives access to registries for namespaces that have no Store of
// their own, and for floors.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter
// +kubebuilder:printcolumn:name="Registries",type=string,JSONPath=`.spec.registries`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.imagePullSecrets) || self.spec.imagePullSecrets.all(s, has(s.__namespace__))",message="set namespace in every entry of spec.imagePullSecrets: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.identity) || !has(self.spec.identity.secretRef) || has(self.spec.identity.secretRef.__namespace__)",message="set spec.identity.secretRef.namespace: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.caBundle) || !has(self.spec.caBundle.secretRef) || has(self.spec.caBundle.secretRef.__namespace__)",message="set spec.caBundle.secretRef.namespace: a cluster resource has no namespace of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.caBundle) || !has(self.spec.caBundle.configMapRef) || has(self.spec.caBundle.configMapRef.__namespace__)",message="set spec.caBundle.configMapRef.namespace: a cluster resource has no namespace of its own"
type ClusterStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterStoreSpec `json:"spec"`
	Status Status           `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (s *ClusterStore) GetStatus() *Status { return &s.Status }

// ClusterStoreList is a list of ClusterStores.
// +kubebuilder:object:root=true
type ClusterStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStore `json:"items"`
}
