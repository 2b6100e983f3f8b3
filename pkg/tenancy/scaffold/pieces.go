package scaffold

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// pieces finds ClusterRoles that give the accounts of all Tenants what no piece may have: the guardrail
// would refuse them.
func (c *checker) pieces(all *closure) {
	release := strings.TrimSuffix(onboard.RoleReconciler, "-reconciler") // as the tree calls it
	for _, o := range all.objects {
		role := &rbacv1.ClusterRole{}
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "ClusterRole" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role) != nil {
			continue
		}
		if excess := resource.PieceExcess(role, release); len(excess) > 0 {
			c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "ClusterRole %s is a piece of the role of every Git account and has %s: take it out, or name a role with it in spec.reconciler.clusterRole of single Tenants",
				role.Name, strings.Join(excess, ", "))
		}
	}
}
