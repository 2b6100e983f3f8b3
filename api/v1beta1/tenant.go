package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of objects that belong to Tenants. They are for selectors and
// guardrails. The spec of a Tenant defines which namespaces belong to the Tenant; among Tenants with equal claims, the
// label of the namespace decides, which only the guardrails keep others from changing.
const (
	// FinalizerOperator keeps a Tenant until the operator has deleted its objects.
	FinalizerOperator = Group + "/operator"
	// LabelTenant contains the name of a Tenant, on its namespaces and objects.
	LabelTenant = Group + "/tenant"
	// LabelHomeNamespace contains the name of a Tenant, on its home namespace if the Tenant also
	// has other namespaces. Such a home namespace contains no workloads.
	LabelHomeNamespace = Group + "/home-namespace"
	// LabelFluxTenant is the label that Flux's own tools set and read.
	LabelFluxTenant = "toolkit.fluxcd.io/tenant"
	// LabelGatekeeperIgnore exempts a namespace from Gatekeeper, whatever its value.
	LabelGatekeeperIgnore = "admission.gatekeeper.sh/ignore"
	// LabelOwner is set to [OwnerPlatform] on objects that teams must not change.
	LabelOwner    = Group + "/owner"
	OwnerPlatform = "platform"
	// LabelPiece marks ClusterRoles. The default role for the accounts of Tenants contains their
	// rules. Only the platform can set this label.
	LabelPiece = Group + "/aggregate-to-reconciler"
	// AnnotationCreated marks a namespace that was created for a Tenant. Only such a namespace can
	// be deleted with its Tenant.
	AnnotationCreated = Group + "/created"
	// AnnotationAdopted marks a namespace that existed before its Tenant.
	AnnotationAdopted = Group + "/adopted"
	// AnnotationForm of a Tenant selects another tool's names for the objects of the Tenant.
	AnnotationForm = Group + "/form"
)

// NamespaceReclaimPolicy selects what happens to the namespaces of a deleted Tenant.
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

// NetworkIsolation selects whether namespaces have a NetworkPolicy that denies by default.
// +kubebuilder:validation:Enum=Deny;Open
type NetworkIsolation string

// The values of NetworkIsolation.
const (
	NetworkIsolationDeny NetworkIsolation = "Deny"
	NetworkIsolationOpen NetworkIsolation = "Open"
)

// PolicyLevel is the nearest level that applies to the namespaces of a Tenant.
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
	// HomeNamespace is the namespace that contains the team's rules, keys, logins and Git account.
	// It belongs to the Tenant even if namespaces does not list it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	HomeNamespace string `json:"homeNamespace"`

	// Namespaces of the team. If several Tenants list a namespace, it belongs to the Tenant that
	// the namespace's label landwaiter.dev/tenant names, or else to the oldest Tenant.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// NamespacePrefix adds every namespace with this prefix to the Tenant. The prefix ends with a
	// dash.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9]*-$`
	NamespacePrefix string `json:"namespacePrefix,omitempty"`

	// Adopt labels and provisions existing namespaces that do not belong to another Tenant.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// NamespaceReclaimPolicy is Retain or DeleteCreated. When the Tenant is deleted, DeleteCreated
	// deletes the namespaces that were created for the Tenant.
	// +optional
	// +kubebuilder:default=Retain
	NamespaceReclaimPolicy NamespaceReclaimPolicy `json:"namespaceReclaimPolicy,omitempty"`

	// Access grants roles in the namespaces of the Tenant.
	// +optional
	Access TenantAccess `json:"access,omitempty"`

	// Contact says whom to ask in the team. In the namespaces of the Tenant, denials by a policy
	// without a contact show it, also those by a policy of the cluster.
	// +optional
	Contact Contact `json:"contact,omitempty"`

	// Reconciler configures the team's GitOps account. If omitted, the team has no such account.
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

// TenantAccess lists the members of a team by role.
type TenantAccess struct {
	// Admins have the role admin in all namespaces of the Tenant, including the home namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Admins []TenantSubject `json:"admins,omitempty"`
	// Developers have the role edit in all namespaces of the Tenant except the home namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Developers []TenantSubject `json:"developers,omitempty"`
	// Viewers have the role view in all namespaces of the Tenant except the home namespace.
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
	// Name of the ServiceAccount, or of the user or group as in the API server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// TenantReconciler configures the account that applies a team's Git repository.
type TenantReconciler struct {
	// ServiceAccount in the home namespace. The default is the name of the Tenant.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != 'default'",message="pods that name no account run as default and would have its permissions; name another"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// ClusterRole that is bound to the account in all namespaces of the Tenant, including the home
	// namespace.
	// +optional
	// +kubebuilder:default=landwaiter-reconciler
	// +kubebuilder:validation:MaxLength=253
	ClusterRole string `json:"clusterRole,omitempty"`
	// CreateNamespaces allows the account to create and delete namespaces with namespacePrefix.
	// +optional
	CreateNamespaces bool `json:"createNamespaces,omitempty"`
	// Source is the repository that Flux applies. If omitted, the operator creates no Flux objects.
	// +optional
	Source *TenantSource `json:"source,omitempty"`
	// Path in the repository.
	// +optional
	// +kubebuilder:default="./"
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
	// Variables that Flux substitutes in manifests. The ConfigMap tenant-vars contains them.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Variables map[string]Variable `json:"variables,omitempty"`
	// VariablesFrom lists Secrets in the home namespace with further variables. If several Secrets
	// contain a variable, the last Secret takes precedence. The field variables takes precedence
	// over all Secrets.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, y.secretRef.name == x.secretRef.name))",message="a Secret is named twice: remove one of the entries"
	VariablesFrom []VariablesSource `json:"variablesFrom,omitempty"`
}

// VariablesSource is a Secret in the home namespace with variables that Flux substitutes.
type VariablesSource struct {
	// SecretRef references the Secret.
	SecretRef Reference `json:"secretRef"`
	// Optional allows Flux to apply the repository if the Secret does not exist.
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https|ssh|oci)://[^@ ]+$') || self.matches('^ssh://[A-Za-z0-9._-]+@[^@ ]+$')",message="begin the URL with https://, ssh:// or oci://, and put credentials into source.secretRef"
	URL string `json:"url"`
	// Branch of a Git repository, or tag of an OCI artifact. The default is main for Git and latest
	// for OCI.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
	// Interval at which Flux checks the source.
	// +optional
	// +kubebuilder:default="1m"
	Interval Duration `json:"interval,omitempty"`
	// SecretRef references a Secret in the home namespace with credentials for the source.
	// +optional
	SecretRef *Reference `json:"secretRef,omitempty"`
	// Exclude contains patterns of files that Flux ignores in the source, one per line as in
	// .gitignore. They replace Flux's default patterns.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Exclude string `json:"exclude,omitempty"`
}

// TenantIsolation restricts what the pods of a team can do.
type TenantIsolation struct {
	// PodSecurity is the enforced level of the Pod Security Standards.
	// +optional
	// +kubebuilder:default=Restricted
	PodSecurity PodSecurity `json:"podSecurity,omitempty"`
	// Network is Deny or Open. Deny allows only DNS and traffic within the team.
	// +optional
	// +kubebuilder:default=Deny
	Network NetworkIsolation `json:"network,omitempty"`
	// Quota for each namespace of the Tenant, as in a ResourceQuota.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Quota map[corev1.ResourceName]resource.Quantity `json:"quota,omitempty"`
	// Registries from which the team can use images, as prefixes that end with a slash. By default,
	// all registries are allowed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9][-a-z0-9.]*(:[0-9]+)?/([-a-z0-9._/]*/)?$`
	Registries []string `json:"registries,omitempty"`
}

// TenantVerification defines which resources apply to a team's images.
type TenantVerification struct {
	// PolicyLevel is the nearest level that applies: Namespace, Tenant (the home namespace) or
	// Cluster. Landwaiter ignores resources at nearer levels.
	// +optional
	// +kubebuilder:default=Namespace
	PolicyLevel PolicyLevel `json:"policyLevel,omitempty"`
}

// NamespaceState is the state of a namespace of a Tenant.
// +kubebuilder:validation:Enum=Home;Active;Conflict;Missing;Terminating
type NamespaceState string

// The states.
const (
	NamespaceHome        NamespaceState = "Home"
	NamespaceActive      NamespaceState = "Active"
	NamespaceConflict    NamespaceState = "Conflict"    // it belongs to another Tenant
	NamespaceMissing     NamespaceState = "Missing"     // it does not exist
	NamespaceTerminating NamespaceState = "Terminating" // it is being deleted
)

// TenantNamespace is one namespace of a Tenant.
type TenantNamespace struct {
	// Name of the namespace.
	Name string `json:"name"`
	// State is Active or Home. If the Tenant cannot use the namespace, State is Conflict (it
	// belongs to another Tenant), Missing or Terminating.
	State NamespaceState `json:"state"`
}

// ConditionProvisioned is True if all objects of a Tenant exist. Only the operator sets it.
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

// Tenant is a team and its namespaces. The resources in the home namespace apply to all of these
// namespaces. The namespaces share one quota.
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
