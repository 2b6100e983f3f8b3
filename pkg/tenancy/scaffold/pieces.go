package scaffold

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// pieces finds ClusterRoles that give all Tenants' accounts permissions that no piece may have: the
// guardrail would refuse them. People's roles may have more, but nothing that makes everyone an admin.
func (c *checker) pieces(all *closure) {
	release := strings.TrimSuffix(onboard.RoleReconciler, "-reconciler") // with the tree's name
	for _, o := range all.objects {
		role := &rbacv1.ClusterRole{}
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "ClusterRole" ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role) != nil {
			continue
		}
		if excess := resource.PieceExcess(role, release); len(excess) > 0 {
			c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "ClusterRole %s is a piece of the role of every Git account and has %s: take it "+
				"out, or name a role with it in spec.reconciler.clusterRole of single Tenants",
				role.Name, strings.Join(excess, ", "))
		}
		for _, of := range []string{"admin", "edit", "view"} {
			if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+of] == "true" && mightyRules(role.Rules) {
				c.find("ReachTooFar", c.of(o.folder, o.Unstructured), "ClusterRole %s is a part of the role %s, so everyone who has that in a "+
					"namespace may do everything there: name kinds and verbs, without bind, escalate and impersonate, or remove the label", role.Name, of)
			}
		}
	}
}
