package live

import (
	"context"
	"maps"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// namespaces reads some namespaces, and the home namespaces of the Tenants that hold them before or
// after a change.
func (r *reading) namespaces(ctx context.Context, wanted []verify.Namespace, change Change) error {
	r.scope = slices.Compact(slices.Sorted(slices.Values(wanted)))
	if err := r.each(ctx, r.scope); err != nil {
		return err
	}
	homes := map[verify.Namespace]bool{}
	for _, tenants := range []*resource.Tenants{tenantsOf(r.objects), tenantsOf(change.applied(r.objects))} { // labels of the scope count
		for _, namespace := range r.scope {
			if holder := tenants.Holder(string(namespace)); holder != nil && !slices.Contains(r.scope, verify.Namespace(holder.Spec.HomeNamespace)) {
				homes[verify.Namespace(holder.Spec.HomeNamespace)] = true
			}
		}
	}
	return r.each(ctx, slices.Sorted(maps.Keys(homes)))
}

// each reads some namespaces.
func (r *reading) each(ctx context.Context, namespaces []verify.Namespace) error {
	for _, namespace := range namespaces {
		if namespace == verify.Cluster {
			continue
		}
		if err := r.namespace(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

func tenantsOf(o resource.Objects) *resource.Tenants {
	var all []*v1beta1.Tenant
	for _, object := range o.Resources {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			all = append(all, tenant)
		}
	}
	return resource.NewTenants(all).Labelled(resource.LabelsOf(o.Namespaces))
}
