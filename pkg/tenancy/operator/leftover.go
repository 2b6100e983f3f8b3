package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// clusterReader is the suffix of the chart's ClusterRole with which a team's admins read the cluster's rules. The
// pages bind it as NAME-cluster-reader.
const clusterReader = "-cluster-reader"

// LeftOver is what stays of a Tenant, although nothing else names it any more.
type LeftOver struct {
	// Bindings are the ClusterRoleBindings that a cluster admin created by hand for the team's people.
	Bindings []string
	// Rules are the resources of the home namespace. They stay in force there.
	Rules []policy.ObjectRef
	// Names are the ClusterExceptions and ClusterQuotas that name the Tenant. They apply to a later Tenant of that name.
	Names []policy.ObjectRef
}

// LeftOver returns what stays of a Tenant, as far as the engine's account may list it.
func (e *Engine) LeftOver(ctx context.Context, tenant *v1beta1.Tenant) (left LeftOver, err error) {
	if left.Bindings, err = e.bindingsLeft(ctx, tenant); err != nil {
		return left, err
	}
	if left.Rules, err = e.rulesIn(ctx, tenant.Spec.HomeNamespace); err != nil {
		return left, err
	}
	left.Names, err = e.naming(ctx, tenant.Name)
	return left, err
}

// naming returns the cluster resources that name a Tenant, as far as the engine's account may list them.
func (e *Engine) naming(ctx context.Context, tenant string) (all []policy.ObjectRef, err error) {
	for _, list := range namingLists() {
		if err := e.client.List(ctx, list); err != nil {
			if apierrors.IsForbidden(err) {
				continue
			}
			return nil, fmt.Errorf("list what names Tenant %s: %w", tenant, err)
		}
		for _, object := range objectsIn(list) {
			if slices.Contains(tenantsIn(object), tenant) {
				all = append(all, resource.RefOf(object))
			}
		}
	}
	return all, nil
}

// namingLists are empty lists of the kinds that name Tenants.
func namingLists() []client.ObjectList {
	return []client.ObjectList{&v1beta1.ClusterExceptionList{}, &v1beta1.ClusterQuotaList{}}
}

// tenantsIn returns the Tenants that a ClusterException or ClusterQuota names.
func tenantsIn(object v1beta1.Object) []string {
	switch o := object.(type) {
	case *v1beta1.ClusterException:
		if o.Spec.Delegate != nil {
			return o.Spec.Delegate.Tenants
		}
	case *v1beta1.ClusterQuota:
		return o.Spec.Tenants
	}
	return nil
}

// rulesIn returns the resources of a namespace, none if it is "".
func (e *Engine) rulesIn(ctx context.Context, namespace string) (all []policy.ObjectRef, err error) {
	if namespace == "" {
		return nil, nil
	}
	for _, kind := range v1beta1.Kinds() {
		if !kind.Namespaced {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind.Name + "List"))
		if err := e.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			if apierrors.IsForbidden(err) {
				continue
			}
			return nil, fmt.Errorf("list %s of namespace %s: %w", kind.Plural, namespace, err)
		}
		for i := range list.Items {
			all = append(all, policy.ObjectRef{Kind: kind.Name, Namespace: namespace, Name: list.Items[i].Name})
		}
	}
	return all, nil
}

// bindingsLeft returns the ClusterRoleBindings that stay after a Tenant, because a cluster admin created them by hand for
// the team's people: those that let them read the cluster's rules, and their Tenant. It leaves out bindings of people
// who are also in another Tenant, which still needs them. It returns none if the engine's account may not list them.
func (e *Engine) bindingsLeft(ctx context.Context, tenant *v1beta1.Tenant) ([]string, error) {
	var bindings rbacv1.ClusterRoleBindingList
	if err := e.client.List(ctx, &bindings); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	var tenants v1beta1.TenantList
	if err := e.client.List(ctx, &tenants); err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	people := onboard.People(tenant)
	for i := range tenants.Items {
		if other := &tenants.Items[i]; other.Name != tenant.Name {
			people = slices.DeleteFunc(people, func(s rbacv1.Subject) bool { return slices.Contains(onboard.People(other), s) })
		}
	}
	var names []string
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		theirs := len(binding.Subjects) > 0 &&
			!slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return !slices.Contains(people, s) })
		switch {
		case binding.Labels[v1beta1.LabelOwner] == v1beta1.OwnerPlatform: // it is deleted with the Tenant
		case binding.Name == onboard.TenantReader(tenant.Name),
			strings.HasSuffix(binding.RoleRef.Name, clusterReader) && (theirs || binding.Name == tenant.Name+clusterReader):
			names = append(names, binding.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
