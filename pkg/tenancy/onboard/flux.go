package onboard

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// fluxRole is the role that Flux's own command binds. Bound in a namespace, it lets the
// account relabel and delete that namespace, so [Objects] binds another.
const fluxRole = "cluster-admin"

// FluxOptions are the flags of Flux's command that a Tenant has no field for.
type FluxOptions struct {
	// SkipNamespace leaves out the Namespaces.
	SkipNamespace bool
	// Labels are set besides Flux's own, which they cannot replace.
	Labels map[string]string
}

// Flux returns the bytes of
// `flux create tenant NAME --with-namespace=… --export` for the home namespace and the listed
// namespaces. The role is cluster-admin unless the Tenant names another.
func Flux(tenant *v1beta1.Tenant, o FluxOptions) ([]byte, error) {
	if _, err := Complete(tenant); err != nil {
		return nil, err
	}
	account, role := tenant.Name, fluxRole
	if reconciler := tenant.Spec.Reconciler; reconciler != nil {
		account, role = Account(tenant), cmp.Or(reconciler.ClusterRole, fluxRole)
	}
	for name, value := range o.Labels {
		if len(validation.IsQualifiedName(name)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return nil, fmt.Errorf("%s=%s is not a label; use NAME=VALUE of letters, digits, dashes, underscores and dots", name, value)
		}
	}
	labels := texts(o.Labels)
	labels[v1beta1.LabelFluxTenant] = tenant.Name
	var documents []map[string]any
	others := slices.DeleteFunc(slices.Clone(tenant.Spec.Namespaces), func(n string) bool { return n == tenant.Spec.HomeNamespace })
	for _, namespace := range append([]string{tenant.Spec.HomeNamespace}, others...) {
		meta := func(name string) map[string]any {
			return map[string]any{"name": name, "namespace": namespace, "labels": labels}
		}
		if !o.SkipNamespace {
			documents = append(documents, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace, "labels": labels}})
		}
		documents = append(documents,
			map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(account)},
			map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": meta(tenant.Name + "-reconciler"),
				"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
				"subjects": []any{
					map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": "gotk:" + namespace + ":reconciler"},
					map[string]any{"kind": rbacv1.ServiceAccountKind, "name": account, "namespace": namespace},
				}})
	}
	return YAML(documents...)
}
