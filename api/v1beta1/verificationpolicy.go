package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultAction is the action for images that no rule matches.
// +kubebuilder:validation:Enum=Deny;Allow;Inherit
type DefaultAction string

// The default actions.
const (
	DefaultActionDeny    DefaultAction = "Deny"
	DefaultActionAllow   DefaultAction = "Allow"
	DefaultActionInherit DefaultAction = "Inherit" // the next level decides
)

// EnforcementAction is the action for images that a policy does not allow.
// +kubebuilder:validation:Enum=Deny;Warn
type EnforcementAction string

// The enforcement actions.
const (
	EnforcementActionDeny EnforcementAction = "Deny"
	EnforcementActionWarn EnforcementAction = "Warn"
)

// RuleAction is the action of a rule for its images.
// +kubebuilder:validation:Enum=Require;Allow;Deny
type RuleAction string

// The actions of rules.
const (
	RuleActionRequire RuleAction = "Require"
	RuleActionAllow   RuleAction = "Allow"
	RuleActionDeny    RuleAction = "Deny"
)

// IndexMode selects how an image index (a multi-platform image) is verified.
// +kubebuilder:validation:Enum=Itself;ItselfOrEveryManifest
type IndexMode string

// The index modes.
const (
	IndexModeItself                IndexMode = "Itself"
	IndexModeItselfOrEveryManifest IndexMode = "ItselfOrEveryManifest"
)

// PolicyScope selects the namespaces that a cluster policy applies to.
// +kubebuilder:validation:Enum=Fallback;Mandatory
type PolicyScope string

// The scopes.
const (
	PolicyScopeFallback  PolicyScope = "Fallback"
	PolicyScopeMandatory PolicyScope = "Mandatory"
)

// TagAction selects what happens to the tags of images in pods.
// +kubebuilder:validation:Enum=Pin;Leave
type TagAction string

// The actions on tags.
const (
	TagActionPin   TagAction = "Pin"
	TagActionLeave TagAction = "Leave"
)

// VerificationPolicySpec defines which evidence images need.
type VerificationPolicySpec struct {
	// Rules are evaluated in order, and the first rule that matches the image decides. If a
	// namespace has several policies, they are evaluated in the order of their names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Rules []PolicyRule `json:"rules,omitempty"`

	// DefaultAction applies to images that no rule matches: Deny, Allow or Inherit. With Inherit,
	// only the next level decides: the Tenant, then the cluster.
	// +optional
	// +kubebuilder:default=Deny
	DefaultAction DefaultAction `json:"defaultAction,omitempty"`

	// EnforcementAction is Deny or Warn. A policy with Warn only adds warnings. Other policies
	// decide as if this policy did not exist.
	// +optional
	// +kubebuilder:default=Deny
	EnforcementAction EnforcementAction `json:"enforcementAction,omitempty"`

	// Contact says whom to ask about the policy. Denials show it. Without it, they show the contact of
	// the Tenant that has the namespace.
	// +optional
	Contact Contact `json:"contact,omitempty"`

	// Tags is Pin or Leave. Pin allows the operator to add the digest to images of new pods. Within
	// a level, Pin takes precedence. If no policy of a level sets tags, the next level decides. The
	// default is Leave.
	// +optional
	Tags TagAction `json:"tags,omitempty"`

	// Scope is Fallback (for namespaces without their own policy) or Mandatory (for every
	// namespace, in addition to its own policy). The default is Fallback. Only a
	// ClusterVerificationPolicy can set this field.
	// +optional
	Scope PolicyScope `json:"scope,omitempty"`
}

// PolicyRule defines the requirements for some images.
// +kubebuilder:validation:XValidation:rule="has(self.require) == (self.action == 'Require')",message="action Require needs require, and no other action may have it"
type PolicyRule struct {
	// Images that the rule applies to: "**" for all images, or patterns of a registry host and a
	// repository in lower case, without tag and digest, such as "registry.example.com/team-a/**", as
	// in a Verifier.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(\*\*|((\*\.)?[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)+(:[1-9][0-9]{0,4})?|[A-Za-z0-9]+(-+[A-Za-z0-9]+)*:[1-9][0-9]{0,4}|[Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt])(/(\*\*|([a-z0-9][a-z0-9._-]*)?(\*[a-z0-9._-]+)*(\*?[a-z0-9]|\*)))+)$`
	Images []string `json:"images"`

	// Action is Require, Allow or Deny. Require allows an image that satisfies all entries of
	// require. Allow allows an image without verification.
	// +optional
	// +kubebuilder:default=Require
	Action RuleAction `json:"action,omitempty"`

	// Require lists requirements. The image must satisfy all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Require []Requirement `json:"require,omitempty"`

	// Index is Itself or ItselfOrEveryManifest. With Itself, an image index itself must satisfy the
	// rule. ItselfOrEveryManifest also accepts an index if each of its manifests satisfies the
	// rule.
	// +optional
	// +kubebuilder:default=Itself
	Index IndexMode `json:"index,omitempty"`
}

// Requirement is one requirement of a rule.
// +kubebuilder:validation:ExactlyOneOf=anyOf;allOf;types;expression
type Requirement struct {
	// AnyOf lists verifiers by name. At least one of them must be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AnyOf []string `json:"anyOf,omitempty"`
	// AllOf lists verifiers by name. All of them must be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AllOf []string `json:"allOf,omitempty"`
	// Types of verifiers. Of the verifiers with these types that apply to the image, at least one
	// must be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Types []VerifierType `json:"types,omitempty"`
	// Expression is a CEL expression that must be true. Its variable findings contains the results
	// of the verifiers that apply to the image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`
	// AtLeast is the minimum number of different signers.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=1
	AtLeast *int32 `json:"atLeast,omitempty"`
}

// VerificationPolicy defines which evidence images in its namespace need.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter,shortName=lwvp
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.defaultAction`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcementAction`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.scope)",fieldPath=".spec.scope",message="only a ClusterVerificationPolicy has a scope"
type VerificationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VerificationPolicySpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (p *VerificationPolicy) CommonStatus() *Status { return &p.Status }

// VerificationPolicyList is a list of VerificationPolicies.
// +kubebuilder:object:root=true
type VerificationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VerificationPolicy `json:"items"`
}

// ClusterVerificationPolicy defines which evidence images need in namespaces without their own
// policy. A mandatory policy applies to every namespace, in addition to the namespace's own
// policy.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwcvp
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.defaultAction`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcementAction`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Review",type=string,JSONPath=`.status.conditions[?(@.type=="NeedsReview")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec.defaultAction != 'Inherit'",fieldPath=".spec.defaultAction",message="no level comes after the cluster's: set Deny or Allow"
type ClusterVerificationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VerificationPolicySpec `json:"spec"`
	// +kubebuilder:default={}
	Status Status `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (p *ClusterVerificationPolicy) CommonStatus() *Status { return &p.Status }

// ClusterVerificationPolicyList is a list of ClusterVerificationPolicies.
// +kubebuilder:object:root=true
type ClusterVerificationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterVerificationPolicy `json:"items"`
}
