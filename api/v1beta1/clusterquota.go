package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterQuotaSpec sets limits for some namespaces or Tenants. These limits replace the defaults
// from the flags.
// +kubebuilder:validation:XValidation:rule="[has(self.maxInFlight), has(self.registryRequestsPerSecond), has(self.cacheSharePercent)].exists(x, x)",message="set at least one of maxInFlight, registryRequestsPerSecond and cacheSharePercent in spec"
// +kubebuilder:validation:XValidation:rule="size(self.namespaces) > 0 || size(self.tenants) > 0",message="set spec.namespaces, spec.tenants or both: otherwise the quota is for nobody"
type ClusterQuotaSpec struct {
	// Namespaces that the quota applies to. Each namespace has its own quota. If several
	// ClusterQuotas list a namespace, the first by name applies. A tenant namespace that is listed
	// here does not use the quota of its Tenant.
	// +optional
	// +listType=set
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// Tenants that the quota applies to. The namespaces of a Tenant share one quota. If several
	// ClusterQuotas list a Tenant, the first by name applies.
	// +optional
	// +listType=set
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenants []string `json:"tenants,omitempty"`

	// MaxInFlight is the maximum number of uncached images that are verified at the same time, at
	// most half of --limit in-flight. The default is --limit in-flight-per-namespace. A single
	// request can have 32 images in flight.
	// +optional
	// +kubebuilder:validation:Minimum=32
	// +kubebuilder:validation:Maximum=65536
	MaxInFlight int32 `json:"maxInFlight,omitempty"`

	// RegistryRequestsPerSecond limits the rate of requests to registries. A burst can have twice
	// as many requests. The default is --limit registry-requests-per-second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RegistryRequestsPerSecond int32 `json:"registryRequestsPerSecond,omitempty"`

	// CacheSharePercent limits the share of the verdict cache, in percent. The default is 12.5. No
	// memory is reserved, so all shares together can exceed 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	CacheSharePercent int32 `json:"cacheSharePercent,omitempty"`
}

// ClusterQuota limits how much of Landwaiter's capacity some namespaces or Tenants can use.
// There is no namespaced kind, so a namespace cannot raise its own quota.
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
