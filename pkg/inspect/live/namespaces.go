package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// namespaces reads some namespaces, and the home namespaces of their Tenants before or after a
// change.
func (r *reading) namespaces(ctx context.Context, wanted []verify.Namespace, change Change) error {
	r.scope = slices.Compact(slices.Sorted(slices.Values(wanted)))
	if err := r.each(ctx, r.scope); err != nil {
		return err
	}
	if err := r.ownTenants(ctx); err != nil {
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
	if err := r.each(ctx, slices.Sorted(maps.Keys(homes))); err != nil {
		return err
	}
	known := tenantsOf(r.objects)
	if !slices.ContainsFunc(r.scope, func(n verify.Namespace) bool { return n != verify.Cluster && !known.Certain(string(n)) }) {
		r.rights = slices.DeleteFunc(r.rights, func(right Right) bool { return right.Resource.Resource == tenantsPlural })
	}
	return nil
}

const tenantsPlural = "tenants"

// ownTenants reads the Tenants in the labels of the namespaces, one by one, if the person cannot list Tenants: a team
// can read its own.
func (r *reading) ownTenants(ctx context.Context) error {
	i := slices.IndexFunc(r.objects.Unreadable, func(u resource.Unreadable) bool { return u.Source.Kind == v1beta1.KindTenant })
	if i < 0 {
		return nil
	}
	names := map[string]bool{}
	for _, name := range resource.LabelsOf(r.objects.Namespaces) {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var own v1beta1.Tenant
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, &own)
		switch {
		case apierrors.IsForbidden(err):
			right := Right{Verb: "get", Resource: v1beta1.GroupVersion.WithResource(tenantsPlural).GroupResource(), Name: name}
			r.objects.Unreadable[i].Why = r.lacks(right)
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get Tenant %s: %w", name, err)
		default:
			if err := resource.Keep(&own); err != nil {
				return fmt.Errorf("get Tenant %s: %w", name, err)
			}
			r.objects.Resources = append(r.objects.Resources, r.checked(ctx, &own))
		}
	}
	return nil
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
