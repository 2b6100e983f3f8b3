package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/rbac"
)

// installedRoles are the ClusterRoles that the chart renders with its default values.
func installedRoles(t *testing.T) (roles []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range documentsOf(read(t, defaults)) {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		if object.GetKind() == "ClusterRole" {
			roles = append(roles, object)
		}
	}
	return roles
}

// Every role, every kind that any role grants or that is worth an attack, and every verb: where
// the binding holds, and where it does not.
func TestEachRoleGrantsWhatTheTableSaysAndNothingElse(t *testing.T) {
	roles, err := rbac.Of(installedRoles(t)...)
	require.NoError(t, err)
	table, bound, granted := rbac.Table(), map[string]bool{}, map[string]bool{}
	for _, cell := range table {
		if !bound[cell.Role] {
			bound[cell.Role] = true
			roles.Bind("", cell.Role, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "everywhere " + cell.Role})
			roles.Bind("own", cell.Role, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "there " + cell.Role})
		}
		for _, where := range []string{"", "own", "other"} {
			asked := cell.Asked
			asked.Namespace = where
			require.Equal(t, cell.Want, roles.May("everywhere "+cell.Role, nil, asked), "%s: %+v", cell.Role, asked)
			require.Equal(t, cell.Want && where == "own", roles.May("there "+cell.Role, nil, asked), "%s: %+v", cell.Role, asked)
		}
		if cell.Want {
			granted[cellName(cell.Role, cell.Asked)] = true
		}
	}
	for _, role := range installedRoles(t) {
		if bound[role.GetName()] {
			for _, one := range single(t, role) {
				require.True(t, granted[cellName(role.GetName(), one)], "the table does not ask about %s: %+v", role.GetName(), one)
			}
		} else {
			require.Regexp(t, `^landwaiter(-\w+-provider)?$`, role.GetName(), "the table of test/kit/rbac lacks it")
		}
	}
	t.Logf("%d cells of %d roles", len(table), len(bound))
}

func cellName(role string, asked authorizationv1.ResourceAttributes) string {
	return fmt.Sprint(role, " ", asked.Verb, " ", asked.Group, "/", asked.Resource, "/", asked.Subresource, ":", asked.Name)
}

// single returns everything that a role grants, one by one.
func single(t *testing.T, object *unstructured.Unstructured) (all []authorizationv1.ResourceAttributes) {
	t.Helper()
	for _, rule := range roleOf(t, object).Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, kind := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						resource, sub, _ := strings.Cut(kind, "/")
						all = append(all, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name})
					}
				}
			}
		}
	}
	return all
}

func roleOf(t *testing.T, object *unstructured.Unstructured) rbacv1.ClusterRole {
	t.Helper()
	var role rbacv1.ClusterRole
	text, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &role))
	return role
}

// The table lists the roles that the chart renders, and each says the same of itself. A test of
// the chart looks at all options.
func TestTheTableOfRolesIsWhatTheChartRenders(t *testing.T) {
	rows, found := rbac.Described(read(t, "charts/landwaiter/README.md")), map[string]bool{}
	for _, role := range installedRoles(t) {
		name := rbac.RowOf(role.GetName())
		found[name] = true
		sentence := role.GetAnnotations()["kubernetes.io/description"]
		require.Equal(t, rows[name].Gets, sentence, name)
		require.Regexp(t, `^[A-Z].*\.$`, sentence, name)
		require.NotContains(t, sentence, ". ", "%s: one sentence", name)
	}
	for name, row := range rows {
		require.Equal(t, !regexp.MustCompile("with `\\w+\\.enabled`").MatchString(row.Who), found[name], name)
	}
	require.Len(t, rows, 15)
}

// Roles that the built-in ones get decide what every admin, editor and viewer may do.
func TestOnlyTheRulesWriterIsAggregated(t *testing.T) {
	var aggregated []string
	for _, role := range installedRoles(t) {
		for label, value := range role.GetLabels() {
			if strings.HasPrefix(label, "rbac.authorization.k8s.io/") {
				aggregated = append(aggregated, role.GetName()+" "+label+"="+value)
			}
		}
	}
	slices.Sort(aggregated)
	require.Equal(t, []string{"landwaiter-rules-writer rbac.authorization.k8s.io/aggregate-to-admin=true"}, aggregated)
}
