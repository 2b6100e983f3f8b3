package operator

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// CheckOwn returns what is wrong in a namespace of a Tenant and in its home namespace, as far as the
// permissions of somebody in the team reach, and which checks need more.
func (e *Engine) CheckOwn(ctx context.Context, tenant *v1beta1.Tenant, namespace string) (found []Finding, skipped []string, err error) {
	c := &checker{Engine: e, world: &world{all: []*v1beta1.Tenant{tenant}, tenants: resource.NewTenants([]*v1beta1.Tenant{tenant})}, roles: map[rbacv1.RoleRef][]rbacv1.PolicyRule{}}
	skipped = []string{"guardrails, conflicts with other Tenants, namespaces without a Tenant, and differences from what the Tenant says: they need permission to list Tenants and namespaces"}
	namespaces := []string{tenant.Spec.HomeNamespace}
	if namespace != tenant.Spec.HomeNamespace {
		namespaces = append(namespaces, namespace)
	}
	for _, namespace := range namespaces {
		for _, check := range []struct {
			name string
			run  func(context.Context, *v1beta1.Tenant, string) error
		}{{"trust that developers can change", c.trust}, {"roles and default accounts", c.bindings}, {"pods in a home namespace", c.pods}, {"objects of Flux", c.flux}, {"default-deny", c.network}} {
			switch err := check.run(ctx, tenant, namespace); {
			case apierrors.IsForbidden(err):
				skipped = append(skipped, fmt.Sprintf("%s of namespace %s: %v", check.name, namespace, err))
			case err != nil:
				return nil, nil, fmt.Errorf("check Tenant %s: %w", tenant.Name, err)
			}
		}
	}
	c.sort()
	return c.found, skipped, nil
}
