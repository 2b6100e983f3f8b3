package live

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Governed returns the other namespaces in which the rules of a namespace hold, because it
// is the home namespace of a Tenant in one of the states, and the permissions without which there may be
// more.
func (p *Person) Governed(ctx context.Context, home verify.Namespace, states ...State) ([]verify.Namespace, []Right, error) {
	r := &reading{client: p.client}
	var found []verify.Namespace
	for _, state := range states {
		tenants := tenantsOf(state.Objects)
		tenant := tenants.Holder(string(home))
		if tenant == nil || tenant.Spec.HomeNamespace != string(home) {
			continue
		}
		names := tenant.Spec.Namespaces
		if tenant.Spec.NamespacePrefix != "" {
			var all []corev1.Namespace
			err := r.list(ctx, &corev1.NamespaceList{}, "", func(item runtime.Object) error {
				all = append(all, *item.(*corev1.Namespace)) //nolint:forcetypeassert // of a list of them
				return nil
			})
			switch {
			case apierrors.IsForbidden(err):
				r.lacks(Right{Verb: "list", Resource: corev1.Resource("namespaces")})
			case err != nil:
				return nil, nil, fmt.Errorf("list namespaces: %w", err)
			}
			names = slices.Concat(names, tenants.ActiveNamespaces(tenant, all))
		}
		for _, name := range names {
			if name != string(home) && tenants.Holder(name) == tenant {
				found = append(found, verify.Namespace(name))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), r.rights, nil
}
