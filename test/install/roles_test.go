//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/landwaiter/landwaiter/test/kit/rbac"
)

// With all options on, the chart renders the ClusterRoles of the table in its README and no
// others, and each says what the table says.
func TestTheChartRendersTheRolesOfItsTable(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	require.NoError(t, err)
	want, found := map[string]string{}, map[string]string{}
	for name, row := range rbac.Described(string(readme)) {
		want[name] = row.Gets
	}
	args := []string{"--set", "reports.enabled=true,guardrails.enabled=true,operator.enabled=true,operator.flux=true,operator.mutation=true,mutation.enabled=true,warmUp.enabled=true,provider.ratify=true"}
	for _, role := range as[rbacv1.ClusterRole](t, render(t, args...), "ClusterRole") {
		found[rbac.RowOf(role.Name)] = role.Annotations["kubernetes.io/description"]
	}
	require.Equal(t, want, found)
	for _, binding := range as[rbacv1.ClusterRoleBinding](t, render(t, args...), "ClusterRoleBinding") {
		require.Contains(t, []string{"landwaiter", "landwaiter-operator", "landwaiter-operated-tenants", "landwaiter-PATH-provider"}, rbac.RowOf(binding.RoleRef.Name), "the chart binds no role for people")
	}
}
