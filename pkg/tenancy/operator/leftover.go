package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// clusterReader is the suffix of the chart's ClusterRole with which a team's admins read the cluster's rules. The
// pages bind it as NAME-cluster-reader.
const clusterReader = "-cluster-reader"

// LeftOver returns the ClusterRoleBindings that stay after a Tenant, because a cluster admin created them by hand for
// the team's people: those that let them read the cluster's rules, and their Tenant. It leaves out bindings of people
// who are also in another Tenant, which still needs them. It returns none if the engine's account may not list them.
func (e *Engine) LeftOver(ctx context.Context, tenant *v1beta1.Tenant) ([]string, error) {
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
		theirs := len(binding.Subjects) > 0 && !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return !slices.Contains(people, s) })
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
