package scaffold

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// teamsOf returns the namespaces of teams, each with an object that shows it: a Namespace with the label of
// flux create tenant, or a Kustomization there that uses an account of the namespace, unless the namespace is
// the platform's own. A repository that Landwaiter does not manage has none.
func (c *checker) teamsOf(all *closure) map[string]applied {
	teams := map[string]applied{}
	if c.settings == nil {
		return teams
	}
	for _, o := range all.objects {
		account, _, _ := unstructured.NestedString(o.Object, "spec", "serviceAccountName")
		switch {
		case o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" && o.GetLabels()[v1beta1.LabelFluxTenant] != "":
			teams[o.GetName()] = o
		case isFlux(o.Unstructured, "Kustomization") && account != "" && o.GetNamespace() != all.source.namespace &&
			!slices.Contains(c.settings.InfrastructureNamespaces, o.GetNamespace()):
			if _, known := teams[o.GetNamespace()]; !known {
				teams[o.GetNamespace()] = o
			}
		}
	}
	return teams
}

// untenanted reports whether an object adds a team to a cluster that may have no Tenant.
func (all *closure) untenanted(o *unstructured.Unstructured) bool {
	for _, shown := range all.teams {
		if shown.Unstructured == o {
			return true
		}
	}
	return false
}

// isTenant reports whether an object is a Tenant.
func isTenant(o *unstructured.Unstructured) bool {
	return isResource(o) && o.GetKind() == v1beta1.KindTenant
}

// withoutTenant finds namespaces of teams without a Tenant: nothing limits such a team.
func (c *checker) withoutTenant(all *closure, holders *resource.Tenants) {
	for namespace, shown := range all.teams {
		if holders.Holder(namespace) == nil {
			team := cmp.Or(shown.GetLabels()[v1beta1.LabelFluxTenant], namespace)
			if isFlux(shown.Unstructured, "Kustomization") {
				team = shown.GetName()
			}
			c.find("TenantMissing", c.of(shown.folder, shown.Unstructured),
				"namespace %s is a team's, as %s says, and no Tenant has it, so no guardrail, quota or policy of teams applies there: run landwaiter "+
					"platform scaffold DIR %s --set homeNamespace=%s, and remove what was there before",
				namespace, identity(shown.Unstructured), team, namespace)
		}
	}
}
