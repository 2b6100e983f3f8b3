package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterQuotaSpec sets limits for some namespaces or Tenants, instead of the defaults from the
// flags.
// +kubebuilder:validation:XValidation:rule="[has(self.maxInFlight), has(self.registryRequestsPerSecond), has(self.cacheSharePercent)].exists(x, x)",message="set at least one of maxInFlight, registryRequestsPerSecond and cacheSharePercent in spec"
// +kubebuilder:validation:XValidation:rule="size(self.namespaces) > 0 || size(self.tenants) > 0",message="set spec.namespaces, spec.tenants or both: otherwise the quota is for nobody"
type ClusterQuotaSpec struct {
	// Namespaces that the quota applies to; each has its own quota. If several objects
	// list a namespace, the first by name applies. A namespace of a Tenant that is listed
	// here is a quota owner of its own.
	// +optional
	// +listType=set
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// Tenants that the quota applies to; each shares one quota between its namespaces. If
	// several objects list a Tenant, the first by name applies.
	// +optional
	// +listType=set
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenants []string `json:"tenants,omitempty"`

	// MaxInFlight is the maximum number of uncached images that are verified at a time
	// (default --limit in-flight-per-namespace), at most half of --limit in-flight. One request can
	// have 32 in flight.
	// +optional
	// +kubebuilder:validation:Minimum=32
	// +kubebuilder:validation:Maximum=65536
	MaxInFlight int32 `json:"maxInFlight,omitempty"`

	// RegistryRequestsPerSecond limits the rate of requests to registries, with a burst
	// of twice as many (default --limit registry-requests-per-second).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RegistryRequestsPerSecond int32 `json:"registryRequestsPerSecond,omitempty"`

	// CacheSharePercent limits the share of the verdict cache, in percent; the default
	// is 12.5. It reserves nothing, so shares may add up to more than 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	CacheSharePercent int32 `json:"cacheSharePercent,omitempty"`
}

// ClusterQuota limits what some namespaces or Tenants may use. It has no namespaced twin, so that
// no namespace can raise its own quota.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcq
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterQuotaSpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (q *ClusterQuota) CommonStatus() *Status { return &q.Status }

// ClusterQuotaList is a list of ClusterQuotas.
// +kubebuilder:object:root=true
type ClusterQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterQuota `json:"items"`
}
