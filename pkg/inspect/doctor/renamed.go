package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RoleMissing is the finding about a binding to a ClusterRole that the chart had once.
const RoleMissing ID = "RoleMissing"

// successors returns the ClusterRoles that have the rights of one that the chart had once, all
// without the release's name, and false for any other. No binding in a namespace grants what
// is the cluster's.
func successors(role, namespace string) ([]string, bool) {
	reader, cluster := []string{"reader"}, []string{"cluster-reader", "tenant-reader"}
	switch role {
	case "team-admin":
		return []string{"rules-writer"}, true
	case "viewer":
		return reader, true
	case "cluster-viewer":
		return cluster[:1], true
	case "cluster-previewer":
		return cluster, true
	case "previewer":
		if namespace != "" {
			return reader, true
		}
		return slices.Concat(reader, cluster), true
	case "report-viewer":
		return []string{"report-reader"}, true
	case "material":
		return []string{"reference-reader"}, true
	}
	return nil, false
}

// renamed finds bindings to ClusterRoles that the chart no longer has. They grant nothing, and
// whoever creates a ClusterRole of that name decides what they grant.
func renamed(v *view) []Finding {
	release := "landwaiter"
	if v.serve != nil {
		release = strings.TrimSuffix(v.serve.last("reference-reader-role", release+"-reference-reader"), "-reference-reader")
	}
	exist := map[string]bool{}
	for _, r := range v.ClusterRoles {
		exist[r.Name] = true
	}
	var found []Finding
	for _, g := range slices.Concat(slices.Collect(maps.Values(v.grants()))...) {
		old, ours := strings.CutPrefix(g.role.Name, release+"-")
		roles, was := successors(old, g.namespace)
		if g.role.Kind != "ClusterRole" || exist[g.role.Name] || !ours || !was {
			continue
		}
		for i := range roles {
			roles[i] = release + "-" + roles[i]
		}
		found = append(found, Finding{ID: RoleMissing, Severity: Warning, Object: g.ref(),
			What: "it names ClusterRole " + g.role.Name + ", which no longer exists", Why: "it grants nothing: what it granted is now in " + strings.Join(roles, ", "),
			Command: rebound(g.target, roles, g.subjects)})
	}
	return found
}

// rebound returns the command that deletes a binding, because no binding can change its role,
// and binds its subjects to roles. It only deletes one with more subjects than maxNamed.
func rebound(of target, roles []string, subjects []rbacv1.Subject) string {
	command := "kubectl delete " + of.String()
	if len(subjects) == 0 || len(subjects) > maxNamed {
		return command
	}
	who := ""
	for _, s := range subjects {
		flag, name := "user", s.Name
		switch s.Kind {
		case rbacv1.GroupKind:
			flag = "group"
		case rbacv1.ServiceAccountKind:
			flag, name = "serviceaccount", cmp.Or(s.Namespace, of.namespace)+":"+s.Name
		}
		who += fmt.Sprintf(" --%s=%s", flag, word(name))
	}
	for i, role := range roles {
		again := of
		if i > 0 {
			again.name += "-" + role
		}
		command += " && kubectl create " + again.String() + " --clusterrole=" + word(role) + who
	}
	return command
}
