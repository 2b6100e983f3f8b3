package check_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// bound returns the findings of the sound installation with one more binding to a ClusterRole.
func bound(t *testing.T, namespace, role string, subjects ...rbacv1.Subject) []resource.Finding {
	t.Helper()
	i := sound(t)
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: role}
	if namespace == "" {
		i.ClusterRoleBindings = append(i.ClusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: named("", "them"), RoleRef: ref, Subjects: subjects})
	} else {
		i.RoleBindings = append(i.RoleBindings, rbacv1.RoleBinding{ObjectMeta: named(namespace, "them"), RoleRef: ref, Subjects: subjects})
	}
	return check.Examine(i, schema.New()).Findings
}

func group(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }

func TestFindsBindingsToRolesThatTheChartNoLongerHas(t *testing.T) {
	const cluster, team = "kubectl delete clusterrolebinding them", "kubectl delete rolebinding them --namespace=team-a"
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "landwaiter", Namespace: "landwaiter-system"}
	here := rbacv1.Subject{Kind: "ServiceAccount", Name: "ci"}
	for name, c := range map[string]struct {
		namespace, role string
		subjects        []rbacv1.Subject
		command         string
	}{
		"what Landwaiter reads": {"team-a", "landwaiter-material", []rbacv1.Subject{account},
			team + " && kubectl create rolebinding them --namespace=team-a --clusterrole=landwaiter-reference-reader --serviceaccount=landwaiter-system:landwaiter"},
		"people and accounts of a namespace": {"team-a", "landwaiter-viewer", []rbacv1.Subject{group("a b"), {Kind: "User", Name: "eve"}, here},
			team + " && kubectl create rolebinding them --namespace=team-a --clusterrole=landwaiter-reader --group='a b' --user=eve --serviceaccount=team-a:ci"},
		"previews of a namespace": {"team-a", "landwaiter-previewer", []rbacv1.Subject{group("a")}, team + " && kubectl create rolebinding them --namespace=team-a --clusterrole=landwaiter-reader --group=a"},
		"previews of the cluster": {"", "landwaiter-previewer", []rbacv1.Subject{group("a")}, cluster + " && kubectl create clusterrolebinding them --clusterrole=landwaiter-reader --group=a" +
			" && kubectl create clusterrolebinding them-landwaiter-cluster-reader --clusterrole=landwaiter-cluster-reader --group=a" +
			" && kubectl create clusterrolebinding them-landwaiter-tenant-reader --clusterrole=landwaiter-tenant-reader --group=a"},
		"the cluster's rules, without Tenants": {"", "landwaiter-cluster-viewer", []rbacv1.Subject{group("a")}, cluster + " && kubectl create clusterrolebinding them --clusterrole=landwaiter-cluster-reader --group=a"},
		"nobody":                               {"", "landwaiter-cluster-viewer", nil, cluster},
		"more than a command should name":      {"", "landwaiter-cluster-viewer", make([]rbacv1.Subject, 11), cluster},
	} {
		t.Run(name, func(t *testing.T) {
			found := bound(t, c.namespace, c.role, c.subjects...)
			require.Len(t, found, 1)
			require.Equal(t, check.RoleMissing, found[0].ID)
			require.Equal(t, c.command, found[0].Command)
		})
	}
}

func TestBindingsToOtherRolesAreNoFinding(t *testing.T) {
	for _, role := range []string{"landwaiter-nonsense", "viewer", "view", "elsewhere-viewer"} {
		require.Empty(t, bound(t, "team-a", role, group("a")), role)
	}
	i := sound(t)
	i.ClusterRoles = append(i.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: named("", "landwaiter-viewer")})
	i.RoleBindings = append(i.RoleBindings, rbacv1.RoleBinding{ObjectMeta: named("team-a", "them"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "landwaiter-viewer"}},
		rbacv1.RoleBinding{ObjectMeta: named("team-a", "own"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "landwaiter-previewer"}})
	require.Empty(t, check.Examine(i, schema.New()).Findings, "the older chart is still installed")
}

// The page on upgrades lists the same roles.
func TestThePageOnUpgradesSaysWhichRolesHaveTheRightsNow(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operate/prerelease.md")
	require.NoError(t, err)
	for _, old := range []string{"team-admin", "viewer", "cluster-viewer", "cluster-previewer", "previewer", "report-viewer", "doctor", "material"} {
		found := bound(t, "", "landwaiter-"+old, group("a"))
		require.Len(t, found, 1, old)
		at := strings.Index(string(page), fmt.Sprintf("| `landwaiter-%s` |", old))
		require.Positive(t, at, old)
		row, _, _ := strings.Cut(string(page)[at:], "\n")
		for _, role := range strings.Split(found[0].Why[strings.LastIndex(found[0].Why, " in ")+4:], ", ") {
			require.Contains(t, row, "`"+role+"`", old)
		}
	}
}
