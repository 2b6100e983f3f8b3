package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	SourceNodes       Source = "nodes"
	SourceResources   Source = "resources"
	SourceGuardrails  Source = "guardrails"
	SourceDefinitions Source = "definitions"
	SourceRights      Source = "rights"
	SourceLease       Source = "lease"
	SourceOperator    Source = "operator"
	SourceFacts       Source = "facts"
	SourceAnswers     Source = "answers"
	SourceOutages     Source = "outages"
)

// Unread says why a source was not read completely.
type Unread struct {
	// Missing is the missing permission, empty for another cause.
	Missing string
	Why     string
}

// Options configure a check.
type Options struct {
	// Namespace is Landwaiter's namespace.
	Namespace string
	// Within is the namespace whose resources, and those of its home namespace, are read if the caller
	// cannot list resources of the whole cluster; none if it is empty.
	Within string
	// Gatekeeper is its namespace if its webhook does not name a Service.
	Gatekeeper string
	// Exempt are namespaces that may be exempt in addition to the system's.
	Exempt []string
	// ExemptImages are entries of exemptImages that constraints may have.
	ExemptImages []string
	// Only are the IDs of findings to look for; none means all.
	Only []string
	// Asker asks whether the server answers; nil omits that.
	Asker *Asker
	// Outages reads outages of registries from reports; nil omits that.
	Outages Outages
	// Review finds everything that needs a review; nil means one reason for each resource, from its
	// condition.
	Review Review
}

// Inventory is the data that was read from a cluster.
type Inventory struct {
	Options
	Now time.Time
	// Unread are the sources that could not be read. It does not include kinds that the cluster
	// does not have, which have no objects.
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
	Nodes       []corev1.Node
	Resources   []v1beta1.Object
	Policies    []admissionv1.ValidatingAdmissionPolicy
	Bindings    []admissionv1.ValidatingAdmissionPolicyBinding
	Definitions []metav1.PartialObjectMetadata

	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding

	Lease *coordinationv1.Lease
	// OperatorLease is the operator's lease, nil if there is none.
	OperatorLease *coordinationv1.Lease
	// Facts are what the process published, nil if it published nothing.
	Facts *resource.Facts
	// Undecided are the registries that do not answer according to reports.
	Undecided []Outage
	// Answers are of the places where Gatekeeper asks.
	Answers []Answers
}

// The names of the leases of the writing replica and of the operator.
const (
	leaseName         = "landwaiter"
	operatorLeaseName = "landwaiter-operator"
)

var errTooMany = fmt.Errorf("there are more than %d objects", maxObjects)

// Read reads the data for [Examine], with the permissions of c. Data that it may not read is
// in Unread. An error means that the API server did not answer.
func Read(ctx context.Context, c client.Reader, options Options, now time.Time) (*Inventory, error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Options: options, Now: now, Unread: map[Source]Unread{}}}
	i := r.into
	r.list(SourceWebhooks, "validatingwebhookconfigurations.admissionregistration.k8s.io", "",
		&admissionv1.ValidatingWebhookConfigurationList{}, into(&i.Validating))
	r.list(SourceWebhooks, "mutatingwebhookconfigurations.admissionregistration.k8s.io", "", &admissionv1.MutatingWebhookConfigurationList{},
		into(&i.Mutating))
	i.Gatekeeper = newView(i).gatekeeperNamespace()
	r.foreign(SourceProviders, "externaldata.gatekeeper.sh", "v1beta1", "Provider", "providers", &i.Providers)
	r.foreign(SourceTemplates, "templates.gatekeeper.sh", "v1", "ConstraintTemplate", "constrainttemplates", &i.Templates)
	r.foreign(SourceConstraints, "constraints.gatekeeper.sh", "v1beta1", constraintKind, "verifiedimages", &i.Constraints)
	r.foreign(SourceConfigs, "config.gatekeeper.sh", "v1alpha1", "Config", "configs", &i.Configs)
	r.list(SourceGatekeeper, "deployments.apps", i.Gatekeeper, &appsv1.DeploymentList{}, into(&i.Gatekeepers))
	r.list(SourceLandwaiter, "deployments.apps", i.Namespace, &appsv1.DeploymentList{}, into(&i.Landwaiters))
	wait := r.answers()
	r.list(SourceNamespaces, "namespaces", "", &corev1.NamespaceList{}, into(&i.Namespaces))
	r.list(SourceNodes, "nodes", "", &corev1.NodeList{}, into(&i.Nodes))
	r.list(SourceGuardrails, "validatingadmissionpolicies.admissionregistration.k8s.io", "", &admissionv1.ValidatingAdmissionPolicyList{},
		into(&i.Policies))
	r.list(SourceGuardrails, "validatingadmissionpolicybindings.admissionregistration.k8s.io", "",
		&admissionv1.ValidatingAdmissionPolicyBindingList{}, into(&i.Bindings))
	r.list(SourceRights, "clusterroles.rbac.authorization.k8s.io", "", &rbacv1.ClusterRoleList{}, into(&i.ClusterRoles))
	r.list(SourceRights, "clusterrolebindings.rbac.authorization.k8s.io", "", &rbacv1.ClusterRoleBindingList{}, into(&i.ClusterRoleBindings))
	r.list(SourceRights, "roles.rbac.authorization.k8s.io", "", &rbacv1.RoleList{}, into(&i.Roles))
	r.list(SourceRights, "rolebindings.rbac.authorization.k8s.io", "", &rbacv1.RoleBindingList{}, into(&i.RoleBindings))
	r.resources()
	for _, more := range []struct {
		source Source
		read   func()
	}{{SourceDefinitions, r.definitions}, {SourceLease, r.lease}, {SourceOperator, r.operatorLease}, {SourceFacts, r.facts},
		{SourceOutages, r.outages}} {
		if r.failed == nil && i.needs(more.source) {
			more.read()
		}
	}
	wait()
	return i, errors.Join(r.failed, ctx.Err())
}

// reader reads one inventory.
type reader struct {
	client client.Reader
	ctx    context.Context
	into   *Inventory
	failed error
}

// foreign reads all objects of a kind without types in this package.
func (r *reader) foreign(source Source, group, version, kind, resource string, to *[]unstructured.Unstructured) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	r.list(source, resource+"."+group, "", list, into(to))
}

// into returns a function that appends objects of a type to a list.
func into[T any](to *[]T) func(any) {
	return func(object any) {
		if item, ok := object.(*T); ok {
			*to = append(*to, *item)
		}
	}
}

// list reads all objects of a kind, by pages, passes each to keep, and reports whether it may read
// them. After a failure it reads nothing more: every request might take as long as the failed one.
func (r *reader) list(source Source, resource, namespace string, empty client.ObjectList, keep func(any)) (may bool) {
	for total, token := 0, ""; r.failed == nil && r.into.needs(source); {
		page, ok := empty.DeepCopyObject().(client.ObjectList)
		if !ok {
			return true // a copy has the type of what was copied
		}
		err := r.client.List(r.ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(token))
		if err != nil {
			r.not(source, "list "+resource, namespace, err)
			return !apierrors.IsForbidden(err)
		}
		_ = meta.EachListItem(page, func(o runtime.Object) error { // the function returns no error
			keep(o)
			return nil
		})
		if total += meta.LenList(page); total > maxObjects {
			r.not(source, "list "+resource, namespace, errTooMany)
			return true
		}
		if token = page.GetContinue(); token == "" {
			return true
		}
	}
	return true
}

// not records why something was not read. An unknown kind has no objects. Anything but a
// missing permission ends the whole read.
func (r *reader) not(source Source, right, namespace string, err error) {
	if namespace != "" {
		right += " in namespace " + namespace
	}
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), runtime.IsNotRegisteredError(err):
	case apierrors.IsForbidden(err):
		r.into.Unread[source] = Unread{Missing: right, Why: "you cannot " + right}
	case errors.Is(err, errTooMany):
		r.into.Unread[source] = Unread{Why: right + ": " + err.Error()}
	case r.failed == nil: // the others fail alike
		r.failed = fmt.Errorf("%s: %w", right, err)
	}
}

// definitions reads the labels of our CRDs, not their schemas.
func (r *reader) definitions() {
	for _, kind := range v1beta1.Kinds() {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		err := r.client.Get(r.ctx, client.ObjectKey{Name: kind.Plural + "." + v1beta1.Group}, object)
		if err != nil {
			r.not(SourceDefinitions, "get customresourcedefinitions.apiextensions.k8s.io", "", err)
			if r.failed != nil {
				return
			}
			continue
		}
		r.into.Definitions = append(r.into.Definitions, *object)
	}
}

func (r *reader) lease() { r.into.Lease = r.leaseOf(SourceLease, leaseName) }

func (r *reader) operatorLease() { r.into.OperatorLease = r.leaseOf(SourceOperator, operatorLeaseName) }

// leaseOf returns a lease in Landwaiter's namespace, nil if there is none.
func (r *reader) leaseOf(source Source, name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	if err := r.client.Get(r.ctx, client.ObjectKey{Namespace: r.into.Namespace, Name: name}, lease); err != nil {
		r.not(source, "get leases.coordination.k8s.io", r.into.Namespace, err)
		return nil
	}
	return lease
}
