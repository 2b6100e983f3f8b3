package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Source is one kind of object that is read.
type Source string

// The sources.
const (
	SourceWebhooks    Source = "webhooks"
	SourceProviders   Source = "providers"
	SourceTemplates   Source = "templates"
	SourceConstraints Source = "constraints"
	SourceConfigs     Source = "configs"
	SourceGatekeeper  Source = "gatekeeper"
	SourceLandwaiter  Source = "landwaiter"
	SourceNamespaces  Source = "namespaces"
	SourceResources   Source = "resources"
	SourceGuardrails  Source = "guardrails"
	SourceDefinitions Source = "definitions"
	SourceRights      Source = "rights"
	SourceLease       Source = "lease"
	SourceFacts       Source = "facts"
)

// Unread says why a source was not read, or not all of it.
type Unread struct {
	// Missing is the permission that is missing, empty if it was something else.
	Missing string
	Why     string
}

// Options say where to look.
type Options struct {
	// Namespace is Landwaiter's.
	Namespace string
	// Gatekeeper is its namespace if its webhook does not name a Service.
	Gatekeeper string
	// Exempt are namespaces that may be exempt besides those of the system.
	Exempt []string
}

// Inventory is what was read of a cluster.
type Inventory struct {
	Options
	Now time.Time
	// Unread are the sources that could not be read. A kind that the cluster does not have
	// is not among them: there are no such objects.
	Unread map[Source]Unread

	Validating  []admissionv1.ValidatingWebhookConfiguration
	Mutating    []admissionv1.MutatingWebhookConfiguration
	Providers   []unstructured.Unstructured
	Templates   []unstructured.Unstructured
	Constraints []unstructured.Unstructured
	Configs     []unstructured.Unstructured
	// Gatekeepers and Landwaiters are the Deployments in their namespaces.
	Gatekeepers []appsv1.Deployment
	Landwaiters []appsv1.Deployment
	Namespaces  []corev1.Namespace
	Resources   []v1beta1.Object
	Policies    []admissionv1.ValidatingAdmissionPolicy
	Bindings    []admissionv1.ValidatingAdmissionPolicyBinding
	Definitions []metav1.PartialObjectMetadata

	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding

	Lease *coordinationv1.Lease
	// Facts are what the process published, nil if it published nothing.
	Facts *resource.Facts
}
