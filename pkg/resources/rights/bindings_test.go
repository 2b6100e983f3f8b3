package rights_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/rights"
)

func TestFindsBindingsThatReachFurtherThanTheirNamespace(t *testing.T) {
	ref := policy.ObjectRef{Kind: "RoleBinding", Namespace: "web", Name: "ops"}
	all := rights.Rule{Verbs: []string{"*"}, Groups: []string{"*"}, Resources: []string{"*"}}
	for name, c := range map[string]struct {
		rules    []rights.Rule
		accounts []rights.Account
		want     []rights.Reach
	}{
		"cluster-admin":                    {[]rights.Rule{all}, nil, []rights.Reach{rights.NamespaceReach}},
		"said twice":                       {[]rights.Rule{all, all}, nil, []rights.Reach{rights.NamespaceReach}},
		"may patch namespaces":             {[]rights.Rule{{Verbs: []string{"get", "patch"}, Groups: []string{""}, Resources: []string{"namespaces"}}}, nil, []rights.Reach{rights.NamespaceReach}},
		"may read namespaces":              {[]rights.Rule{{Verbs: []string{"get"}, Groups: []string{""}, Resources: []string{"namespaces"}}}, nil, nil},
		"may do all with Deployments":      {[]rights.Rule{{Verbs: []string{"*"}, Groups: []string{"apps"}, Resources: []string{"*"}}}, nil, nil},
		"the default account":              {nil, []rights.Account{{Namespace: "web", Name: "default"}}, []rights.Reach{rights.DefaultAccount}},
		"another account":                  {nil, []rights.Account{{Namespace: "web", Name: "ci"}}, nil},
		"the default account of elsewhere": {nil, []rights.Account{{Namespace: "ci", Name: "default"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var reaches []rights.Reach
			for _, found := range rights.OfBinding(rights.Binding{Ref: ref, Role: "r", Rules: c.rules, Accounts: c.accounts}) {
				reaches = append(reaches, found.Reach)
				require.NotEmpty(t, found.Fix)
				require.Equal(t, "web", found.Where.Namespace)
			}
			require.Equal(t, c.want, reaches)
		})
	}
}
