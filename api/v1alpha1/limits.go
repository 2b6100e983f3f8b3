package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterLimitsSpec says what each of some namespaces may take, instead of what the
// program's flags give to every namespace.
// +kubebuilder:validation:XValidation:rule="[has(self.imagesInWork), has(self.registryRequestsPerSecond), has(self.cachePercent)].exists(x, x)",message="set at least one of imagesInWork, registryRequestsPerSecond and cachePercent in spec"
type ClusterLimitsSpec struct {
	// Namespaces that the limits are for, each by itself. If several objects list a
	// namespace, the first one by name applies.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces"`

	// ImagesInWork is how many images may be verified at a time that are not known
	// yet (--in-flight-per-namespace); never more than are left for others, so at most
	// half of --in-flight. One request has 32 in work.
	// +optional
	// +kubebuilder:validation:Minimum=32
	// +kubebuilder:validation:Maximum=65536
	ImagesInWork int32 `json:"imagesInWork,omitempty"`

	// RegistryRequestsPerSecond is how many requests may be made to registries; twice
	// as many at once (--registry-requests-per-second).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RegistryRequestsPerSecond int32 `json:"registryRequestsPerSecond,omitempty"`

	// CachePercent is which part of the memory for verdicts may be taken, in percent;
	// 12.5 otherwise. Shares are no reservations and may come to more than 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	CachePercent int32 `json:"cachePercent,omitempty"`
}

// ClusterLimits says what some namespaces may take. It has no namespaced twin: no
// namespace raises its own share.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterlimits,scope=Cluster,categories=landwaiter
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterLimits struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterLimitsSpec `json:"spec"`
	Status Status            `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (l *ClusterLimits) GetStatus() *Status { return &l.Status }

// ClusterLimitsList is a list of ClusterLimits.
// +kubebuilder:object:root=true
type ClusterLimitsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterLimits `json:"items"`
}
