package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreSpec configures access to registries. Registries that a ClusterStore lists can have
// private addresses.
// +kubebuilder:validation:AtMostOneOf=identity;imagePullSecrets;imagePullSecretsFrom
// +kubebuilder:validation:XValidation:rule="!has(self.insecurePlainHTTP) || !self.insecurePlainHTTP || self.registries.all(r, !r.contains('*'))",message="spec.insecurePlainHTTP cannot be used with patterns in spec.registries; list each host"
// +kubebuilder:validation:XValidation:rule="!has(self.insecurePlainHTTP) || !self.insecurePlainHTTP || !has(self.proxy) || !has(self.proxy.url)",message="spec.proxy.url cannot be used with spec.insecurePlainHTTP: proxies open tunnels for TLS only"
type StoreSpec struct {
	// Registries that the store applies to, as host or host:port without scheme and path, such as
	// "registry.example.com:5000". If several stores of a level list
	// a registry, the first by name applies. In a ClusterStore, "*" matches any characters within
	// one label of the host, such as "*.dkr.ecr.*.amazonaws.com". An exact host takes precedence
	// over a pattern.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^((([A-Za-z0-9][A-Za-z0-9-]*)?(\*[A-Za-z0-9-]+)*(\*?[A-Za-z0-9]|\*)\.)*[A-Za-z0-9]+(-+[A-Za-z0-9]+)*\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])$`
	Registries []string `json:"registries"`

	// Mirrors that Landwaiter reads instead of these registries. It uses the first mirror that has
	// the image. Policies still apply to the image's own name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Mirrors []Mirror `json:"mirrors,omitempty"`

	// Evidence defines the repositories of signatures and attestations. The default is the image's
	// own repository.
	// +optional
	Evidence *Evidence `json:"evidence,omitempty"`

	// ImagePullSecrets contain registry credentials, as for pods. Landwaiter sends each credential
	// only to the hosts that its key matches, as a kubelet does.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []Reference `json:"imagePullSecrets,omitempty"`

	// ImagePullSecretsFrom uses the pull secrets of a ServiceAccount, as pods do.
	// +optional
	ImagePullSecretsFrom *ImagePullSecretsFrom `json:"imagePullSecretsFrom,omitempty"`

	// Identity logs in with a cloud identity or as a GitHub App instead of using pull secrets.
	// Cloud identities require an image whose tag ends in -full.
	// +optional
	Identity *RegistryIdentity `json:"identity,omitempty"`

	// CABundle is trusted for these registries, in addition to the system's certificates.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`

	// AdditionalCABundles are further certificates that are trusted for these registries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	AdditionalCABundles []CABundle `json:"additionalCABundles,omitempty"`

	// ClientCertificate is only presented to these registries.
	// +optional
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`

	// Proxy is the HTTP proxy for these registries, also for the Stores of namespaces. The default
	// is the proxy in the environment (HTTPS_PROXY, NO_PROXY). Only a ClusterStore can set this
	// field.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// InsecurePlainHTTP accesses these registries without TLS. Only a ClusterStore can set this
	// field.
	// +optional
	InsecurePlainHTTP bool `json:"insecurePlainHTTP,omitempty"`
}

// Store configures access to registries for its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lws
// +kubebuilder:printcolumn:name="First Registry",type=string,JSONPath=`.spec.registries[0]`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.proxy)",fieldPath=".spec.proxy",message="only a ClusterStore can have a proxy"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.insecurePlainHTTP)",fieldPath=".spec.insecurePlainHTTP",message="only a ClusterStore can access registries without TLS"
// +kubebuilder:validation:XValidation:rule="self.spec.registries.all(r, !r.contains('*'))",fieldPath=".spec.registries",message="only a ClusterStore can list registries by pattern; list each host"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.identity) || has(self.spec.identity.secretRef) || has(self.spec.identity.serviceAccount)",fieldPath=".spec.identity",message="set secretRef or serviceAccount: only a ClusterStore can log in as Landwaiter's own pod"
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (s *Store) CommonStatus() *Status { return &s.Status }

// StoreList is a list of Stores.
// +kubebuilder:object:root=true
type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Store `json:"items"`
}

// ClusterStore configures access to registries for namespaces without a Store that lists the
// registry, and for mandatory policies.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcs
// +kubebuilder:printcolumn:name="First Registry",type=string,JSONPath=`.spec.registries[0]`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StoreSpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (s *ClusterStore) CommonStatus() *Status { return &s.Status }

// ClusterStoreList is a list of ClusterStores.
// +kubebuilder:object:root=true
type ClusterStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStore `json:"items"`
}
