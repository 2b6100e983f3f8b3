package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFindsBindingsThatReachFurtherThanTheirNamespace(t *testing.T) {
	all := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	account := func(namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	for name, c := range map[string]struct {
		rules    []rbacv1.PolicyRule
		subjects []rbacv1.Subject
		want     []string
	}{
		"cluster-admin": {[]rbacv1.PolicyRule{all}, nil, []string{"NamespaceReach"}},
		"said twice":    {[]rbacv1.PolicyRule{all, all}, nil, []string{"NamespaceReach"}},
		"may patch namespaces": {[]rbacv1.PolicyRule{{Verbs: []string{"get", "patch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}}, nil,
			[]string{"NamespaceReach"}},
		"may read namespaces":              {[]rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}}, nil, nil},
		"may do all with Deployments":      {[]rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}}}, nil, nil},
		"the default account":              {nil, account("web", "default"), []string{"DefaultAccount"}},
		"the default account of its own":   {nil, account("", "default"), []string{"DefaultAccount"}},
		"another account":                  {nil, account("web", "ci"), nil},
		"the default account of elsewhere": {nil, account("ci", "default"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var reaches []string
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "ops"}, RoleRef: rbacv1.RoleRef{Name: "r"}, Subjects: c.subjects}
			for _, found := range reachOf(binding, c.rules) {
				reaches = append(reaches, found.ID)
				require.NotEmpty(t, found.Fix)
				require.Equal(t, "web", found.Object.Namespace)
			}
			require.Equal(t, c.want, reaches)
		})
	}
}
