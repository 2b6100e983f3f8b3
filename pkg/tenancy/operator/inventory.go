package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// Kinds that need special handling.
const (
	kindNamespace          = "Namespace"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindClusterRole        = "ClusterRole"
	kindKustomization      = "Kustomization"
	kindNetworkPolicy      = "NetworkPolicy"
	kindResourceQuota      = "ResourceQuota"
)

// kind is one that a Tenant's objects have.
type kind struct {
	schema.GroupVersionKind
	// optional kinds may be unknown to the API server, or not granted.
	optional bool
	// restricts says that objects of the kind only restrict: they stay in a namespace that
	// leaves its Tenant.
	restricts bool
	// mutation objects come and go with a Tenant's Stores.
	mutation bool
}

// flux reports whether Flux's controllers act on objects of the kind.
func (k kind) flux() bool {
	return strings.HasSuffix(k.Group, ".toolkit.fluxcd.io")
}

// kinds returns the kinds of a Tenant's objects, in the order of removal: first objects that
// apply manifests, while their account still has its permissions, then those that query
// Landwaiter for the Tenant, then permissions.
func kinds() []kind {
	of := func(group, version, name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
	}
	return []kind{
		{GroupVersionKind: of("kustomize.toolkit.fluxcd.io", "v1", kindKustomization), optional: true},
		{GroupVersionKind: of("source.toolkit.fluxcd.io", "v1", "GitRepository"), optional: true},
		{GroupVersionKind: of("source.toolkit.fluxcd.io", "v1", "OCIRepository"), optional: true},
		{GroupVersionKind: of("mutations.gatekeeper.sh", "v1", "Assign"), optional: true, mutation: true},
		{GroupVersionKind: providerKind(), optional: true, mutation: true},
		{GroupVersionKind: of("constraints.gatekeeper.sh", "v1beta1", onboard.KindRegistries), optional: true},
		{GroupVersionKind: of("rbac.authorization.k8s.io", "v1", kindClusterRoleBinding), optional: true},
		{GroupVersionKind: of("rbac.authorization.k8s.io", "v1", kindClusterRole), optional: true},
		{GroupVersionKind: of("rbac.authorization.k8s.io", "v1", kindRoleBinding)},
		{GroupVersionKind: of("", "v1", "ServiceAccount")},
		{GroupVersionKind: of("", "v1", "ConfigMap")},
		{GroupVersionKind: of("", "v1", "ResourceQuota"), restricts: true},
		{GroupVersionKind: of("networking.k8s.io", "v1", kindNetworkPolicy), restricts: true},
	}
}

func providerKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "externaldata.gatekeeper.sh", Version: "v1beta1", Kind: "Provider"}
}

// item is an object of a Tenant, without its content.
type item struct {
	metav1.PartialObjectMetadata
	kind kind
}

// inventory has the objects with a Tenant's labels, except namespaces.
type inventory struct {
	items    []*item // in the order of kinds
	refused  []error // why kinds could not be listed, only for [Engine.Check]
	versions map[policy.ObjectRef]string
}

// version returns the resource version of an object, "" if it is not the Tenant's.
func (i *inventory) version(object client.Object) string { return i.versions[refOf(object)] }

// labelsOf returns the labels of the objects of a Tenant. Anybody may name a Tenant on their
// own objects; guardrails let only the platform set the label that marks an object as the
// platform's.
func labelsOf(tenant string) client.MatchingLabels {
	return client.MatchingLabels{v1beta1.LabelTenant: tenant, v1beta1.LabelOwner: v1beta1.OwnerPlatform}
}

// owned lists the objects with a Tenant's labels, in the given namespaces if any.
func (e *Engine) owned(ctx context.Context, tenant string, only ...string) (*inventory, error) {
	options := []client.ListOption{labelsOf(tenant)}
	if len(only) == 1 {
		options = append(options, client.InNamespace(only[0]))
	}
	found := &inventory{versions: map[policy.ObjectRef]string{}}
	for _, kind := range kinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := e.client.List(ctx, list, options...)
		switch {
		case kind.optional && (meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)):
			continue
		case e.checks && apierrors.IsForbidden(err):
			found.refused = append(found.refused, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("list each %s of Tenant %s: %w", kind.Kind, tenant, err)
		}
		for _, object := range list.Items {
			if len(only) > 0 && !slices.Contains(only, object.Namespace) {
				continue // of the cluster, or of other namespaces
			}
			object.SetGroupVersionKind(kind.GroupVersionKind)
			found.items = append(found.items, &item{PartialObjectMetadata: object, kind: kind})
			found.versions[refOf(&object)] = object.ResourceVersion
		}
	}
	return found, nil
}

// objectsIn returns the resources in a list.
func objectsIn(list client.ObjectList) (all []v1beta1.Object) {
	_ = meta.EachListItem(list, func(o runtime.Object) error { // the function returns no error
		if object, ok := o.(v1beta1.Object); ok {
			all = append(all, object)
		}
		return nil
	})
	return all
}

// metadata returns an object without its content.
func metadata(object client.Object) metav1.PartialObjectMetadata {
	m := meta.AsPartialObjectMetadata(object)
	m.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return *m
}

// Row is one Tenant of a list.
type Row struct {
	Name        string `json:"name"`
	Home        string `json:"homeNamespace"`
	Namespaces  int    `json:"namespaces"` // without the home namespace
	PolicyLevel string `json:"policyLevel"`
	Reconciler  string `json:"reconciler,omitempty"` // namespace/name of its account, "" if it has none
	// Ready and Provisioned are statuses of conditions, with the reason unless True. Provisioned of a
	// Tenant that is being deleted is "deleting".
	Ready       string `json:"ready"`
	Provisioned string `json:"provisioned"`
}

// NamespaceRow is one namespace of some tenant.
type NamespaceRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`             // the Tenant, or flux-multitenant-demo's tenant
	Tenant    string `json:"tenant,omitempty"` // "" if no Tenant has it
	Status    string `json:"status"`
}

// List returns all Tenants, by name.
func (e *Engine) List(ctx context.Context) ([]Row, error) {
	w, _, err := e.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows := []Row{}
	for _, tenant := range w.all {
		row := Row{Name: tenant.Name, Home: tenant.Spec.HomeNamespace, PolicyLevel: string(tenant.Spec.Verification.PolicyLevel),
			Ready: conditionText(tenant, v1beta1.ConditionReady), Provisioned: conditionText(tenant, v1beta1.ConditionProvisioned)}
		others := slices.DeleteFunc(w.tenants.ActiveNamespaces(tenant, w.namespaces), func(n string) bool {
			return n == tenant.Spec.HomeNamespace
		})
		row.Namespaces = len(others)
		if tenant.DeletionTimestamp != nil {
			row.Provisioned = "deleting"
		}
		if account := onboard.Account(tenant); account != "" {
			row.Reconciler = tenant.Spec.HomeNamespace + "/" + account
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return rows, nil
}

func conditionText(tenant *v1beta1.Tenant, kind string) string {
	condition := meta.FindStatusCondition(tenant.Status.Conditions, kind)
	switch {
	case condition == nil:
		return "-"
	case condition.Status == metav1.ConditionTrue:
		return string(condition.Status)
	}
	return string(condition.Status) + ": " + condition.Reason
}

// Namespaces returns the namespaces with a tenant's label, by name.
func (e *Engine) Namespaces(ctx context.Context) ([]NamespaceRow, error) {
	var namespaces corev1.NamespaceList
	if err := e.reader.List(ctx, &namespaces); err != nil {
		return nil, explained("list namespaces", err)
	}
	rows := []NamespaceRow{}
	for i := range namespaces.Items {
		n := &namespaces.Items[i]
		row := NamespaceRow{Namespace: n.Name, Tenant: n.Labels[v1beta1.LabelTenant], Status: string(n.Status.Phase)}
		if row.Name = cmp.Or(n.Labels[onboard.LabelDemo], row.Tenant); row.Name != "" {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b NamespaceRow) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return rows, nil
}
