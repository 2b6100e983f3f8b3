package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EveryNamespace in the list of a ClusterException selects all namespaces.
const EveryNamespace = "*"

// Annotations of a Namespace that admit every image until a given time, if serve runs with
// --break-glass. A guardrail ensures that only the platform can set them.
const (
	// AnnotationBreakGlassFrom is when break-glass begins, in RFC 3339.
	AnnotationBreakGlassFrom = "landwaiter.dev/break-glass-from"
	// AnnotationBreakGlassUntil is when break-glass expires, in RFC 3339.
	AnnotationBreakGlassUntil = "landwaiter.dev/break-glass-until"
	// AnnotationBreakGlassReason is the reason for break-glass.
	AnnotationBreakGlassReason = "landwaiter.dev/break-glass-reason"
	// AnnotationBreakGlassOverrideMandatory is "true" if break-glass also overrides mandatory
	// policies.
	AnnotationBreakGlassOverrideMandatory = "landwaiter.dev/break-glass-override-mandatory"
)

// ExceptionSpec allows images until a given time although policies deny them. Every denied image
// of a pod needs an exception.
// +kubebuilder:validation:ExactlyOneOf=images;delegate
// +kubebuilder:validation:XValidation:rule="!has(self.overrideMandatory) || !self.overrideMandatory || has(self.images)",message="overrideMandatory: true is for images: nobody can delegate what mandatory policies deny"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaces) || !('*' in self.namespaces) || size(self.namespaces) == 1",message="\"*\" is every namespace, so it must be the only entry of spec.namespaces"
type ExceptionSpec struct {
	// Until is a string, not a time, because API servers accept times that Go cannot parse. One
	// object that cannot be decoded would block the watch of all objects.

	// Until is when the exception expires, in RFC 3339: YYYY-MM-DDThh:mm:ssZ. It can be at
	// most --max-exception after the exception was created, or --max-delegation with delegate.
	// Landwaiter ignores an exception that expires later.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`
	Until string `json:"until"`

	// Reason for the exception. Reports and logs show it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]*$')",message="spec.reason must be one line of printable characters"
	Reason string `json:"reason"`

	// Ticket references the work that makes the exception unnecessary.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]*$')",message="spec.ticket must be one line of printable characters"
	Ticket string `json:"ticket,omitempty"`

	// Images that are allowed: patterns as in a Verifier, such as "registry.example.com/team-a/app",
	// or host/repository@sha256:… for one digest. For an Exception, a ClusterException must delegate
	// these images to the namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(\*\*|((\*\.)?[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])(/(\*\*|([a-z0-9][a-z0-9._-]*)?(\*[a-z0-9._-]+)*(\*?[a-z0-9]|\*)))+|([A-Za-z0-9]+((\.|-+)[A-Za-z0-9]+)*(:[1-9][0-9]{0,4})?/)?[a-z0-9]+(([._/]|__|-+)[a-z0-9]+)*@sha256:[a-f0-9]{64})$`
	Images []string `json:"images,omitempty"`

	// Namespaces that the exception applies to. A single "*" selects every namespace. Only a
	// ClusterException can set this field: an Exception applies to its own namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespaces []string `json:"namespaces,omitempty"`

	// OverrideMandatory allows the images even if a mandatory policy denies them. Only a
	// ClusterException can set this field.
	// +optional
	OverrideMandatory bool `json:"overrideMandatory,omitempty"`

	// Delegate permits namespaces to have their own Exceptions, and does not itself allow any
	// image. Only a ClusterException can set this field.
	// +optional
	Delegate *ExceptionDelegation `json:"delegate,omitempty"`
}

// ExceptionDelegation defines which namespaces can have Exceptions, and for which images.
// +kubebuilder:validation:XValidation:rule="has(self.namespaces) || has(self.tenants)",message="set namespaces, tenants or both: otherwise the delegation is for nobody"
type ExceptionDelegation struct {
	// Images that Exceptions can allow: patterns as in a Verifier, such as
	// "registry.example.com/team-a/**", or host/repository@sha256:… for one digest. An image must
	// match both the Exception and the delegation.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(\*\*|((\*\.)?[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])(/(\*\*|([a-z0-9][a-z0-9._-]*)?(\*[a-z0-9._-]+)*(\*?[a-z0-9]|\*)))+|([A-Za-z0-9]+((\.|-+)[A-Za-z0-9]+)*(:[1-9][0-9]{0,4})?/)?[a-z0-9]+(([._/]|__|-+)[a-z0-9]+)*@sha256:[a-f0-9]{64})$`
	Images []string `json:"images"`

	// Namespaces that can have Exceptions. These Exceptions only apply in namespaces of this
	// delegation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// Tenants that can have Exceptions, in the home namespace and all other namespaces of the
	// Tenant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenants []string `json:"tenants,omitempty"`

	// MaxDuration is the maximum time from the creation of an Exception to its expiry, such as
	// 168h. The default and maximum is --max-exception.
	// +optional
	MaxDuration Duration `json:"maxDuration,omitempty"`
}

// Exception allows images in its namespace until a given time although policies deny them. A
// ClusterException must delegate the images to the namespace. An Exception never overrides a
// mandatory policy.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lwex
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.namespaces)",fieldPath=".spec.namespaces",message="only a ClusterException names namespaces: this is for its own"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.overrideMandatory)",fieldPath=".spec.overrideMandatory",message="only a ClusterException can override mandatory policies"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.delegate)",fieldPath=".spec.delegate",message="only a ClusterException can delegate"
type Exception struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExceptionSpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (e *Exception) CommonStatus() *Status { return &e.Status }

// ExceptionList is a list of Exceptions.
// +kubebuilder:object:root=true
type ExceptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Exception `json:"items"`
}

// ClusterException allows images until a given time although policies deny them, or permits
// namespaces to have their own Exceptions.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcex
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.images) == has(self.spec.namespaces)",fieldPath=".spec.namespaces",message="images need spec.namespaces (\"*\" for every namespace), and a delegation names its namespaces in spec.delegate"
type ClusterException struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExceptionSpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (e *ClusterException) CommonStatus() *Status { return &e.Status }

// ClusterExceptionList is a list of ClusterExceptions.
// +kubebuilder:object:root=true
type ClusterExceptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterException `json:"items"`
}
