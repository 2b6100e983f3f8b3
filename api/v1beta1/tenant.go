package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of objects that belong to Tenants. They are output, for
// selectors and guardrails: membership comes from Tenants alone.
const (
	// LabelTenant is set to a Tenant's name on its namespaces and objects.
	LabelTenant = Group + "/tenant"
	// LabelHomeNamespace is set to a Tenant's name on a home namespace whose Tenant has others: it keeps no
	// workloads.
	LabelHomeNamespace = Group + "/home-namespace"
	// LabelFluxTenant is the label that Flux's own tools set and read.
	LabelFluxTenant = "toolkit.fluxcd.io/tenant"
	// LabelOwner is set to [OwnerPlatform] on objects that teams must not change.
	LabelOwner    = Group + "/owner"
	OwnerPlatform = "platform"
	// LabelPiece is on ClusterRoles whose rules every account of a Tenant gets by the default role.
	// Only the platform may set it.
	LabelPiece = Group + "/aggregate-to-reconciler"
	// AnnotationCreated marks a namespace that was made for a Tenant: only such a
	// namespace is ever deleted with its Tenant.
	AnnotationCreated = Group + "/created"
	// AnnotationAdopted marks a namespace that existed before its Tenant.
	AnnotationAdopted = Group + "/adopted"
	// AnnotationForm of a Tenant names its objects as another tool does.
	AnnotationForm = Group + "/form"
)

// NamespaceReclaimPolicy says what happens to the namespaces of a deleted Tenant.
// +kubebuilder:validation:Enum=Retain;DeleteCreated
type NamespaceReclaimPolicy string

// The values of NamespaceReclaimPolicy.
const (
	NamespaceReclaimPolicyRetain        NamespaceReclaimPolicy = "Retain"
	NamespaceReclaimPolicyDeleteCreated NamespaceReclaimPolicy = "DeleteCreated"
)

// PodSecurity is a level of the Pod Security Standards.
// +kubebuilder:validation:Enum=Restricted;Baseline;Privileged
type PodSecurity string

// The levels.
const (
	PodSecurityRestricted PodSecurity = "Restricted"
	PodSecurityBaseline   PodSecurity = "Baseline"
	PodSecurityPrivileged PodSecurity = "Privileged"
)

// NetworkIsolation says whether namespaces begin with a default-deny.
// +kubebuilder:validation:Enum=Deny;Open
type NetworkIsolation string

// The values of NetworkIsolation.
const (
	NetworkIsolationDeny NetworkIsolation = "Deny"
	NetworkIsolationOpen NetworkIsolation = "Open"
)

// PolicyLevel is the nearest level whose resources count for a Tenant's namespaces.
// +kubebuilder:validation:Enum=Namespace;Tenant;Cluster
type PolicyLevel string

// The levels that can decide.
const (
	PolicyLevelNamespace PolicyLevel = "Namespace"
	PolicyLevelTenant    PolicyLevel = "Tenant"
	PolicyLevelCluster   PolicyLevel = "Cluster"
)

// SubjectKind is the kind of a person or group of a Tenant.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type SubjectKind string

// The kinds of subjects.
const (
	SubjectUser           SubjectKind = "User"
	SubjectGroup          SubjectKind = "Group"
	SubjectServiceAccount SubjectKind = "ServiceAccount"
)

// TenantSpec describes a team.
// +kubebuilder:validation:XValidation:rule="self.homeNamespace == oldSelf.homeNamespace",message="spec.homeNamespace cannot be changed: make another Tenant, and release the namespaces of this one first"
// +kubebuilder:validation:XValidation:rule="!self.homeNamespace.startsWith('kube-') && !(self.homeNamespace in ['default', 'flux-system', 'gatekeeper-system'])",message="spec.homeNamespace is a namespace of the system; name one of the team"
// +kubebuilder:validation:XValidation:rule="!has(self.namespaces) || self.namespaces.all(n, !n.startsWith('kube-') && !(n in ['default', 'flux-system', 'gatekeeper-system']))",message="spec.namespaces lists a namespace of the system; list those of the team"
// +kubebuilder:validation:XValidation:rule="!has(self.namespacePrefix) || (!self.namespacePrefix.startsWith('kube-') && ['kube-system', 'flux-system', 'gatekeeper-system'].all(n, !n.startsWith(self.namespacePrefix)))",message="spec.namespacePrefix covers namespaces of the system; choose one of the team"
// +kubebuilder:validation:XValidation:rule="!has(self.reconciler) || !has(self.reconciler.createNamespaces) || !self.reconciler.createNamespaces || has(self.namespacePrefix)",message="spec.reconciler.createNamespaces needs spec.namespacePrefix: without it there is no namespace that the account could make"
type TenantSpec struct {
	// HomeNamespace is the namespace of the team's rules, keys, logins and Git account. It is
	// one of the Tenant's namespaces without being listed.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	HomeNamespace string `json:"homeNamespace"`

	// Namespaces of the team. If several Tenants list a namespace, the oldest Tenant has
	// it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// NamespacePrefix gives the Tenant every namespace whose name begins with it. It ends
	// with a dash.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9]*-$`
	NamespacePrefix string `json:"namespacePrefix,omitempty"`

	// Adopt labels and provisions namespaces that exist and that no Tenant has.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// NamespaceReclaimPolicy is Retain, or DeleteCreated, which deletes the namespaces that
	// were created for the Tenant.
	// +optional
	// +kubebuilder:default=Retain
	NamespaceReclaimPolicy NamespaceReclaimPolicy `json:"namespaceReclaimPolicy,omitempty"`

	// Access gives people roles in the namespaces of the Tenant.
	// +optional
	Access TenantAccess `json:"access,omitempty"`

	// Reconciler configures the team's GitOps account. Without it, the team has none.
	// +optional
	Reconciler *TenantReconciler `json:"reconciler,omitempty"`

	// Isolation of the team's namespaces.
	// +optional
	// +kubebuilder:default={}
	Isolation TenantIsolation `json:"isolation,omitempty"`

	// Verification of the team's images.
	// +optional
	// +kubebuilder:default={}
	Verification TenantVerification `json:"verification,omitempty"`
}

// TenantAccess lists who works in a team.
type TenantAccess struct {
	// Admins have the role admin in the home namespace and in all others of the Tenant.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Admins []TenantSubject `json:"admins,omitempty"`
	// Developers have the role edit in the Tenant's namespaces, never in the home namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Developers []TenantSubject `json:"developers,omitempty"`
	// Viewers have the role view in the Tenant's namespaces, never in the home namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Viewers []TenantSubject `json:"viewers,omitempty"`
}

// TenantSubject is a user, a group or a ServiceAccount.
// +kubebuilder:validation:XValidation:rule="!self.name.startsWith('system:')",message="names that begin with system: belong to the system; name users and groups of the team"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == has(self.__namespace__)",message="set namespace for a ServiceAccount, and remove it for a User or a Group"
type TenantSubject struct {
	// Kind is User, Group or ServiceAccount.
	Kind SubjectKind `json:"kind"`
	// Name of the user or group as the API server knows it, or of the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// TenantReconciler is the account that applies a team's Git repository.
type TenantReconciler struct {
	// ServiceAccount in the home namespace; the default is the Tenant's name.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 'default'",message="pods that name no account run as default and would have its permissions; name another"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// ClusterRole that is bound to the account in the home namespace and in all others of the Tenant.
	// +optional
	// +kubebuilder:default=landwaiter-reconciler
	// +kubebuilder:validation:MaxLength=253
	ClusterRole string `json:"clusterRole,omitempty"`
	// CreateNamespaces lets the account create and delete namespaces with the prefix.
	// +optional
	CreateNamespaces bool `json:"createNamespaces,omitempty"`
	// Source is the repository that Flux applies. Without it, the operator creates no Flux
	// object.
	// +optional
	Source *TenantSource `json:"source,omitempty"`
	// Path in the repository.
	// +optional
	// +kubebuilder:default="./"
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
	// Variables that Flux substitutes, from the ConfigMap tenant-vars.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Variables map[string]Variable `json:"variables,omitempty"`
	// VariablesFrom lists Secrets in the home namespace whose keys Flux also substitutes. If
	// several have a key, the last one wins; Variables win over all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, y.secretRef.name == x.secretRef.name))",message="a Secret is named twice: remove one of the entries"
	VariablesFrom []VariablesSource `json:"variablesFrom,omitempty"`
}

// VariablesSource is a Secret in the home namespace with values that Flux substitutes.
type VariablesSource struct {
	// SecretRef names the Secret.
	SecretRef Reference `json:"secretRef"`
	// Optional lets Flux apply the repository while the Secret does not exist.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Variable is a value that Flux substitutes in manifests.
// +kubebuilder:validation:MaxLength=1024
type Variable string

// TenantSource is a Git repository or an OCI artifact.
type TenantSource struct {
	// URL begins with https, ssh or oci.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https|ssh|oci)://[^@ ]+$') || self.matches('^ssh://git@[^@ ]+$')",message="begin the URL with https://, ssh:// or oci://, and put credentials into source.secretRef"
	URL string `json:"url"`
	// Branch of a Git repository, or tag of an OCI artifact; the default is main for Git
	// and latest for OCI.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
	// Interval at which Flux checks the source.
	// +optional
	// +kubebuilder:default="1m"
	Interval Duration `json:"interval,omitempty"`
	// SecretRef names a Secret in the home namespace with credentials for the source.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// Exclude has patterns, one a line as in .gitignore, of files that Flux leaves out of what it
	// fetches. They replace those that Flux leaves out by default.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Exclude string `json:"exclude,omitempty"`
}

// TenantIsolation bounds what pods of a team can do.
type TenantIsolation struct {
	// PodSecurity is the level of the Pod Security Standards that is enforced.
	// +optional
	// +kubebuilder:default=Restricted
	PodSecurity PodSecurity `json:"podSecurity,omitempty"`
	// Network is Deny, which denies traffic other than DNS and that within the team, or
	// Open.
	// +optional
	// +kubebuilder:default=Deny
	Network NetworkIsolation `json:"network,omitempty"`
	// Quota of each of the Tenant's namespaces, as in a ResourceQuota.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Quota map[corev1.ResourceName]resource.Quantity `json:"quota,omitempty"`
	// Registries whose images the team may use, as prefixes that end with a slash. The
	// default is no limit.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9][-a-z0-9.]*(:[0-9]+)?/([-a-z0-9._/]*/)?$`
	Registries []string `json:"registries,omitempty"`
}

// TenantVerification says whose resources decide about a team's images.
type TenantVerification struct {
	// PolicyLevel is the nearest level whose resources count: Namespace, Tenant (those in
	// the home namespace) or Cluster.
	// +optional
	// +kubebuilder:default=Namespace
	PolicyLevel PolicyLevel `json:"policyLevel,omitempty"`
}

// NamespaceState says what a namespace is to a Tenant.
// +kubebuilder:validation:Enum=Home;Active;Conflict;Missing;Terminating
type NamespaceState string

// The states.
const (
	NamespaceHome        NamespaceState = "Home"
	NamespaceActive      NamespaceState = "Active"
	NamespaceConflict    NamespaceState = "Conflict"    // another Tenant has it
	NamespaceMissing     NamespaceState = "Missing"     // it does not exist
	NamespaceTerminating NamespaceState = "Terminating" // it is being deleted
)

// TenantNamespace is one namespace of a Tenant.
type TenantNamespace struct {
	// Name of the namespace.
	Name string `json:"name"`
	// State is Active or Home, or why not: Conflict (another Tenant has it), Missing or Terminating.
	State NamespaceState `json:"state"`
}

// ConditionProvisioned is True if everything that a Tenant stands for exists. Only the
// operator writes it.
const ConditionProvisioned = "Provisioned"

// TenantStatus is the observed state of a Tenant.
type TenantStatus struct {
	Status `json:",inline"`

	// Namespaces of the Tenant, at most 256.
	// +optional
	// +listType=map
	// +listMapKey=name
	Namespaces []TenantNamespace `json:"namespaces,omitempty"`
}

// Tenant is a team with namespaces. The resources in its home namespace apply in all of
// them, and it is one quota owner.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=landwaiter-cluster,shortName=lwt
// +kubebuilder:printcolumn:name="Home Namespace",type=string,JSONPath=`.spec.homeNamespace`
// +kubebuilder:printcolumn:name="Policy Level",type=string,JSONPath=`.spec.verification.policyLevel`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Effective",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].status`
// +kubebuilder:printcolumn:name="Provisioned",type=string,JSONPath=`.status.conditions[?(@.type=="Provisioned")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`
// +kubebuilder:printcolumn:name="Ready Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name a Tenant by at most 40 lower-case letters, digits and dashes: the name is a label value and begins the names of objects"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TenantSpec `json:"spec"`
	// +kubebuilder:default={}
	Status TenantStatus `json:"status,omitempty"`
}

// CommonStatus implements [Object].
func (t *Tenant) CommonStatus() *Status { return &t.Status.Status }

// TenantList is a list of Tenants.
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
