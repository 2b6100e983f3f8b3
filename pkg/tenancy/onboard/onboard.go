// Package onboard renders the objects of a Tenant: namespaces, accounts, role bindings,
// quotas, network policies, Flux objects and mutation objects. It is pure: the same Tenant
// and Options give the same objects, in the same order, with every field that an API server
// would default. It never reads a cluster, and renders nothing for another Tenant's
// namespaces: the caller selects the namespaces to provision.
//
// The operator guardrails, charts/landwaiter/templates/operator-guardrail.yaml, say the same in
// CEL: they refuse a field that is not rendered here, so change both.
package onboard

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Names of objects that are the same for every Tenant.
const (
	// RoleReconciler is the default ClusterRole of a Tenant's account.
	RoleReconciler = "landwaiter-reconciler"
	// RoleReferenceReader lets Landwaiter read the Secrets and ConfigMaps of a namespace.
	RoleReferenceReader = "landwaiter-reference-reader"
	// RoleNamespaceMaker lets an account create and delete namespaces; a guardrail limits it to
	// the prefix of its Tenant.
	RoleNamespaceMaker = "landwaiter-namespace-maker"
	// VariablesName is the ConfigMap of the variables that Flux substitutes.
	VariablesName = "tenant-vars"
	// SummaryName is the ConfigMap in the home namespace that describes the Tenant to its team.
	SummaryName = "landwaiter-tenant"
	// QuotaName is the ResourceQuota of each namespace, including the home namespace.
	QuotaName = "tenant"
	// KindRegistries is the kind of the constraint that limits a team's registries. The template
	// tenant-allowed-registries of the library defines it.
	KindRegistries = "TenantAllowedRegistries"
)

// Options are the input of a Tenant's objects in addition to the Tenant. The zero value
// renders objects that only need Kubernetes, and Flux if the Tenant has a source.
type Options struct {
	// Namespaces are the namespaces to provision, from resource.Tenants.ActiveNamespaces. Nil means
	// the home namespace and the listed ones, for callers without a cluster.
	Namespaces []string
	// Landwaiter is the ServiceAccount that reads the Secrets of the home namespace; the default is
	// landwaiter-system/landwaiter.
	Landwaiter types.NamespacedName
	// ClusterRights renders permissions in the cluster: to read the own Tenant, and the
	// ClusterRoleBinding of spec.reconciler.createNamespaces. The operator may not create either,
	// and reports a missing one.
	ClusterRights bool
	// Constraints renders the constraint TenantAllowedRegistries of
	// spec.isolation.registries, which needs its template in the cluster.
	Constraints bool
}

// Objects returns all objects of a Tenant, in the order in which to apply them: namespaces,
// their restrictions, permissions in them, and last the objects that start Flux. The error
// names the Tenant, the field and the fix.
func Objects(tenant *v1beta1.Tenant, o Options) ([]*unstructured.Unstructured, error) {
	complete, err := Complete(tenant)
	if err != nil {
		return nil, err
	}
	r := &rendering{Tenant: complete, namespaces: Namespaces(complete, o.Namespaces),
		landwaiter: cmp.Or(o.Landwaiter, types.NamespacedName{Namespace: "landwaiter-system", Name: "landwaiter"})}
	for _, step := range []func(namespace string){r.namespace, r.networkPolicies, r.quota, r.variables} {
		for _, namespace := range r.namespaces {
			step(namespace)
		}
	}
	r.summary()
	if o.Constraints {
		r.registries()
	}
	r.account()
	for _, namespace := range r.namespaces {
		r.bindings(namespace)
	}
	if o.ClusterRights {
		r.tenantReader()
		r.namespaceMaker()
	}
	r.sync()
	return r.objects, r.err
}

// rendering collects the objects of one Tenant.
type rendering struct {
	*v1beta1.Tenant
	landwaiter types.NamespacedName
	namespaces []string // the home namespace first, then by name
	objects    []*unstructured.Unstructured
	err        error
}

// Namespaces returns the home namespace, then the other namespaces by name: those given, or those that the
// Tenant lists if nil is given.
func Namespaces(tenant *v1beta1.Tenant, existing []string) []string {
	if existing == nil {
		existing = tenant.Spec.Namespaces
	}
	others := slices.DeleteFunc(slices.Sorted(slices.Values(existing)), func(n string) bool { return n == tenant.Spec.HomeNamespace })
	return append([]string{tenant.Spec.HomeNamespace}, slices.Compact(others)...)
}

// alone reports whether the home namespace is the only namespace that the Tenant can have.
func alone(tenant *v1beta1.Tenant) bool {
	return tenant.Spec.NamespacePrefix == "" && len(Namespaces(tenant, nil)) == 1
}

// labels of a Tenant's objects, with additional ones.
func (r *rendering) labels(others map[string]string) map[string]string {
	labels := map[string]string{v1beta1.LabelTenant: r.Name}
	maps.Copy(labels, others)
	return labels
}

// owned are the labels of objects that the team must not change.
func (r *rendering) owned() map[string]string {
	return r.labels(map[string]string{v1beta1.LabelOwner: v1beta1.OwnerPlatform})
}

// Account returns the name of a Tenant's account in the home namespace: the given one, or the
// Tenant's name, "" if it has none.
func Account(tenant *v1beta1.Tenant) string {
	if tenant.Spec.Reconciler == nil {
		return ""
	}
	return cmp.Or(tenant.Spec.Reconciler.ServiceAccount, tenant.Name)
}
