package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// namespaceCheck looks at one namespace of a Tenant.
type namespaceCheck struct {
	ids []string
	run func(context.Context, *v1beta1.Tenant, string) error
}

// ofNamespaces returns the checks of all namespaces of a Tenant. Those in which network isolation is provisioned
// are checked for it, too.
func (c *checker) ofNamespaces() []namespaceCheck {
	return []namespaceCheck{
		{[]string{findingTrustWithinReach}, c.trust},
		{[]string{findingNamespaceReach, findingDefaultAccount, findingNoPermissions}, c.bindings},
		{[]string{findingHomeNamespaceHasPods}, c.pods},
		{[]string{findingSharedSource, findingOtherAccount}, c.flux},
	}
}

// attempt records a missing permission as a check that was not possible, and returns every other error. Namespace
// is where the permission is missing, "" if that does not matter: many namespaces then make one entry.
func (c *checker) attempt(ids []string, namespace string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	why := fmt.Sprintf("in namespace %s: %v", namespace, err)
	missing := missingRight(err)
	if namespace == "" {
		why = "you cannot " + cmp.Or(missing, "read this: "+err.Error())
	}
	at := slices.IndexFunc(c.skipped, func(u resource.Unchecked) bool { return u.Why == why })
	if at < 0 {
		c.skipped, at = append(c.skipped, resource.Unchecked{Missing: missing, Why: why}), len(c.skipped)
	}
	for _, id := range ids {
		if !slices.Contains(c.skipped[at].IDs, id) {
			c.skipped[at].IDs = append(c.skipped[at].IDs, id)
		}
	}
	return nil
}

// CheckOwn returns what is wrong in a namespace of a Tenant and in its home namespace, as far as the
// permissions of a team member allow, and which checks need more.
func (e *Engine) CheckOwn(ctx context.Context, tenant *v1beta1.Tenant,
	namespace string) (found []resource.Finding, unchecked []resource.Unchecked, err error) {
	c := &checker{Engine: e, world: &world{all: []*v1beta1.Tenant{tenant}, tenants: resource.NewTenants([]*v1beta1.Tenant{tenant})},
		roles: map[rbacv1.RoleRef][]rbacv1.PolicyRule{}, empty: map[rbacv1.RoleRef]bool{}}
	c.skipped = []resource.Unchecked{{IDs: []string{findingConflict, findingDrift, findingLeftoverBinding, findingNoTenant},
		Missing: "list tenants.landwaiter.dev and namespaces", Why: "you cannot list Tenants and namespaces"}}
	namespaces := []string{tenant.Spec.HomeNamespace}
	if namespace != tenant.Spec.HomeNamespace {
		namespaces = append(namespaces, namespace)
	}
	for _, namespace := range namespaces {
		for _, check := range append(c.ofNamespaces(), namespaceCheck{[]string{findingNoDefaultDeny}, c.network}) {
			if err := c.attempt(check.ids, namespace, check.run(ctx, tenant, namespace)); err != nil {
				return nil, nil, fmt.Errorf("check Tenant %s: %w", tenant.Name, err)
			}
		}
	}
	c.sort()
	return c.found, c.skipped, nil
}
