package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultAction is what happens to images that no rule matches.
// +kubebuilder:validation:Enum=Deny;Allow
type DefaultAction string

// The default actions.
const (
	DefaultDeny  DefaultAction = "Deny"
	DefaultAllow DefaultAction = "Allow"
)

// PolicyMode says what happens to images that a policy does not allow.
// +kubebuilder:validation:Enum=Enforce;Warn
type PolicyMode string

// The modes.
const (
	ModeEnforce PolicyMode = "Enforce"
	ModeWarn    PolicyMode = "Warn"
)

// IndexMode says what proves an image index (a multi-platform image).
// +kubebuilder:validation:Enum=Itself;ItselfOrEveryManifest
type IndexMode string

// The index modes.
const (
	IndexItself      IndexMode = "Itself"
	IndexOrManifests IndexMode = "ItselfOrEveryManifest"
)

// Enforcement says whom a cluster policy binds.
// +kubebuilder:validation:Enum=Default;Floor
type Enforcement string

// The enforcements.
const (
	EnforcementDefault Enforcement = "Default"
	EnforcementFloor   Enforcement = "Floor"
)

// VerificationPolicySpec says how findings become a verdict.
type VerificationPolicySpec struct {
	// Rules are tried in order; the first whose images match decides. Rules of
	// several policies of a namespace are tried in the order of the policies' names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Rules []PolicyRule `json:"rules,omitempty"`

	// Default is for images that no rule matches: Deny (the default) or Allow.
	// +optional
	Default DefaultAction `json:"default,omitempty"`

	// Mode is Enforce (the default), or Warn: images that this policy does not
	// allow, or that could not be verified, are allowed and reported.
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`
}

// PolicyRule is what some images need.
type PolicyRule struct {
	// Images that the rule is for, as in a Verifier.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Images []string `json:"images"`

	// Require lists what must hold, every entry of it.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Require []Requirement `json:"require"`

	// Index says what proves an image index: Itself (the default), or
	// ItselfOrEveryManifest, which takes an index of which every manifest is proven.
	// +optional
	Index IndexMode `json:"index,omitempty"`
}

// Requirement is one thing that must hold.
// +kubebuilder:validation:XValidation:rule="[has(self.anyOf), has(self.allOf), has(self.types), has(self.expression)].filter(x, x).size() == 1",message="set exactly one of anyOf, allOf, types and expression in a requirement"
type Requirement struct {
	// AnyOf names verifiers of which one must be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AnyOf []string `json:"anyOf,omitempty"`
	// AllOf names verifiers which must all be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AllOf []string `json:"allOf,omitempty"`
	// Types of verifiers, of which any that applies to the image must be satisfied.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Types []VerifierType `json:"types,omitempty"`
	// Expression in CEL that must be true of findings, what all verifiers that apply
	// to the image have proven.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression,omitempty"`
	// AtLeast is how many different signers are needed. Left out it is 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	AtLeast *int32 `json:"atLeast,omitempty"`
}

// ClusterVerificationPolicySpec is a VerificationPolicySpec with what only
// cluster admins may say.
type ClusterVerificationPolicySpec struct {
	VerificationPolicySpec `json:",inline"`

	// Enforcement is Default (for namespaces without a policy of their own) or
	// Floor (for every namespace, besides its own policy).
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`
}

// VerificationPolicy decides for its namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=landwaiter
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VerificationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VerificationPolicySpec `json:"spec"`
	Status Status                 `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (p *VerificationPolicy) GetStatus() *Status { return &p.Status }

// VerificationPolicyList is a list of VerificationPolicies.
// +kubebuilder:object:root=true
type VerificationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VerificationPolicy `json:"items"`
}

// ClusterVerificationPolicy decides for namespaces without a policy of their
// own, or, as a floor, for every namespace besides.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterVerificationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterVerificationPolicySpec `json:"spec"`
	Status Status                        `json:"status,omitempty"`
}

// GetStatus implements [Object].
func (p *ClusterVerificationPolicy) GetStatus() *Status { return &p.Status }

// ClusterVerificationPolicyList is a list of ClusterVerificationPolicies.
// +kubebuilder:object:root=true
type ClusterVerificationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterVerificationPolicy `json:"items"`
}
