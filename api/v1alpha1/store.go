package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreCommon holds the fields common to Store and ClusterStore.
type StoreCommon struct {
	// Registries that the store applies to, as host or host:port. If several stores of
	// a scope list a registry, the first by name applies.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	Registries []string `json:"registries"`
}

// StoreSpec configures access to registries.
// +kubebuilder:validation:XValidation:rule="!has(self.identity) || !has(self.imagePullSecrets)",message="spec.identity and spec.imagePullSecrets are two ways to log in; use one"
type StoreSpec struct {
	StoreCommon `json:",inline"`

	// ImagePullSecrets hold credentials, as for pods. Each credential is only sent to
	// its own host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretRef `json:"imagePullSecrets,omitempty"`

	// Identity logs in with a cloud identity instead. It requires the image
	// landwaiter:full.
	// +optional
	Identity *RegistryIdentity `json:"identity,omitempty"`

	// CABundle is trusted for these registries, in addition to the system's
	// certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
}

// ClusterStoreSpec configures access to registries. Registries listed here may have
// private addresses.
// +kubebuilder:validation:XValidation:rule="!has(self.identity) || !has(self.imagePullSecrets)",message="spec.identity and spec.imagePullSecrets are two ways to log in; use one"
type ClusterStoreSpec struct {
	StoreCommon `json:",inline"`

	// ImagePullSecrets hold credentials, as for pods. Each credential is only sent to
	// its own host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []ClusterSecretRef `json:"imagePullSecrets,omitempty"`

	// Identity logs in with a cloud identity instead. It requires the image
	// landwaiter:full.
	// +optional
	Identity *ClusterRegistryIdentity `json:"identity,omitempty"`

	// CABundle is trusted for these registries, in addition to the system's
	// certificates.
	// +optional
	CABundle *ClusterCABundle `json:"caBundle,omitempty"`

	// InsecurePlainHTTP accesses these registries without TLS.
	// +optional
	InsecurePlainHTTP bool `json:"insecurePlainHTTP,omitempty"`
}

// RegistryProvider is a cloud provider with its own registry login.
// +kubebuilder:validation:Enum=ECR;ACR;GAR
type RegistryProvider string

// The providers: Amazon, Azure, Google Cloud.
const (
	RegistryProviderECR RegistryProvider = "ECR"
	RegistryProviderACR RegistryProvider = "ACR"
	RegistryProviderGAR RegistryProvider = "GAR"
)

// RegistryIdentity configures a namespace's login at the registries of a cloud.
type RegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure) or GAR (Google). Credentials are only
	// sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials: accessKeyID and secretAccessKey for
	// ECR; tenantID, clientID and clientSecret for ACR; credentials.json for GAR.
	SecretRef SecretRef `json:"secretRef"`
}

// ClusterRegistryIdentity configures the cluster's login at the registries of a cloud.
type ClusterRegistryIdentity struct {
	// Provider is ECR (Amazon), ACR (Azure) or GAR (Google). Credentials are only
	// sent to the provider's own hosts.
	Provider RegistryProvider `json:"provider"`
	// SecretRef names a Secret with credentials, as for a Store. The default is the
	// identity of Landwaiter's own pod.
	// +optional
	SecretRef *ClusterSecretRef `json:"secretRef,omitempty"`
}

// Store gives its namespace access to registries.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lws
// +kubebuilder:printcolumn:name="Registries",type=string,JSONPath=`.spec.registries`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status StoreStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (s *Store) CommonStatus() *Status { return &s.Status.Status }

// Qualified returns the spec in its cluster form, with each reference qualified with
// the store's own namespace, so that both scopes are compiled alike.
func (s *Store) Qualified() ClusterStoreSpec {
	made := ClusterStoreSpec{StoreCommon: s.Spec.StoreCommon, CABundle: s.Spec.CABundle.in(s.Namespace)}
	for _, ref := range s.Spec.ImagePullSecrets {
		made.ImagePullSecrets = append(made.ImagePullSecrets, *ref.in(s.Namespace))
	}
	if identity := s.Spec.Identity; identity != nil {
		made.Identity = &ClusterRegistryIdentity{Provider: identity.Provider, SecretRef: identity.SecretRef.in(s.Namespace)}
	}
	return made
}

// StoreList is a list of Stores.
// +kubebuilder:object:root=true
type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Store `json:"items"`
}

// ClusterStore gives access to registries to namespaces that have no Store, and
// to floors.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcs
// +kubebuilder:printcolumn:name="Registries",type=string,JSONPath=`.spec.registries`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterStoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status StoreStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (s *ClusterStore) CommonStatus() *Status { return &s.Status.Status }

// Qualified returns the spec.
func (s *ClusterStore) Qualified() ClusterStoreSpec { return s.Spec }

// ClusterStoreList is a list of ClusterStores.
// +kubebuilder:object:root=true
type ClusterStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStore `json:"items"`
}
