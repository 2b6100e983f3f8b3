package check

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Bindable returns the names of the ClusterRoles that the operator of a release may bind.
func Bindable(roles []rbacv1.ClusterRole, release string) []string {
	for i := range roles {
		if roles[i].Name != release+"-operator" {
			continue
		}
		for _, rule := range roles[i].Rules {
			if slices.Equal(rule.Verbs, []string{"bind"}) && slices.Equal(rule.Resources, []string{"clusterroles"}) {
				return rule.ResourceNames
			}
		}
	}
	return nil
}

// bindable replaces, in the rules of this version, the roles that the operator may bind by the
// installation's. No setting of the chart can name roles of Kubernetes with more permissions.
func (g Guardrails) bindable(text string) string {
	usual := []string{"admin", "edit", "view", ShippedRelease + "-reconciler", ShippedRelease + "-reference-reader"}
	if len(g.Bindable) <= len(usual) || !slices.Equal(g.Bindable[:len(usual)], usual) ||
		slices.ContainsFunc(g.Bindable[len(usual):], func(name string) bool {
			return name == "cluster-admin" || len(validation.IsDNS1123Subdomain(name)) > 0
		}) {
		return text
	}
	listed := func(roles []string) string { return "['" + strings.Join(roles, "', '") + "']" }
	said := func(roles []string) string {
		return "ClusterRoles " + strings.Join(roles[:len(roles)-1], ", ") + " and " + roles[len(roles)-1] + "'"
	}
	return strings.NewReplacer(listed(usual), listed(g.Bindable), said(usual), said(g.Bindable)).Replace(text)
}
