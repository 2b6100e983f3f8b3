//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/suite"
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
	args := []string{"--set",
		"reports.enabled=true,guardrails.enabled=true,operator.enabled=true,operator.flux=true,operator.mutation=true,mutation.enabled=true,warmUp.enabled=true," +
			"provider.ratify=true"}
	for _, role := range as[rbacv1.ClusterRole](t, render(t, args...), "ClusterRole") {
		found[rbac.RowOf(role.Name)] = role.Annotations["kubernetes.io/description"]
	}
	require.Equal(t, want, found)
	for _, binding := range as[rbacv1.ClusterRoleBinding](t, render(t, args...), "ClusterRoleBinding") {
		require.Contains(t, []string{"landwaiter", "landwaiter-operator", "landwaiter-operated-tenants", "landwaiter-PATH-provider"},
			rbac.RowOf(binding.RoleRef.Name), "the chart binds no role for people")
	}
}

// The chart renders the pieces that it is told, as they lie in config, and the operator may bind the roles
// that it is told, by name in both its role and its guardrail.
func TestPiecesAndTheRolesThatTheOperatorMayBindAreThoseOfTheValues(t *testing.T) {
	piecesOf := func(args ...string) (names []string) {
		for _, role := range as[rbacv1.ClusterRole](t, render(t, args...), "ClusterRole") {
			if role.Labels["landwaiter.dev/aggregate-to-reconciler"] == "true" {
				names = append(names, role.Name)
				if role.Name != "landwaiter-reconciler-base" {
					text, err := os.ReadFile(filepath.Join(suite.Root, "config/pieces", strings.TrimPrefix(role.Name, "landwaiter-reconciler-")+".yaml"))
					require.NoError(t, err)
					var want rbacv1.ClusterRole
					require.NoError(t, yaml.UnmarshalStrict(text, &want))
					require.Equal(t, want.Rules, role.Rules)
					require.Equal(t, want.Annotations, role.Annotations)
				}
			}
			if role.Name == "landwaiter-reconciler" {
				require.Empty(t, role.Rules, "whoever applied them would take those of pieces away")
				require.Equal(t, map[string]string{"landwaiter.dev/aggregate-to-reconciler": "true"}, role.AggregationRule.ClusterRoleSelectors[0].MatchLabels)
			}
		}
		return names
	}
	require.Equal(t, []string{"landwaiter-reconciler-base"}, piecesOf())
	require.ElementsMatch(t, []string{"landwaiter-reconciler-base", "landwaiter-reconciler-monitors", "landwaiter-reconciler-flux-images"},
		piecesOf("--set", "reconciler.pieces={flux-images,monitors}"))

	objects := render(t, "--set", "guardrails.enabled=true,operator.enabled=true,operator.clusterRoles={team.role,admin}")
	want := []string{"admin", "edit", "view", "landwaiter-reconciler", "landwaiter-reference-reader", "team.role"}
	for _, role := range as[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "bind") {
				require.Equal(t, want, rule.ResourceNames)
				require.Equal(t, []string{"bind"}, rule.Verbs)
			}
		}
	}
	found := false
	for _, p := range as[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy") {
		for _, v := range p.Spec.Validations {
			found = found || strings.Contains(v.Expression, "object.roleRef.name in ['"+strings.Join(want, "', '")+"']") &&
				strings.Contains(v.MessageExpression, "landwaiter-reference-reader and team.role'")
		}
	}
	require.True(t, found)
}
