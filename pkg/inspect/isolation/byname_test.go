package isolation

import (
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestATeamMayReadItsOwnTenantAndNoOtherByItsName(t *testing.T) {
	request := mayDo("get", group(v1beta1.Group, v1beta1.Version, "tenants"), "", "")
	request.own = "iris"
	for name, c := range map[string]struct {
		names []string
		want  string
	}{
		"its own":             {[]string{"iris"}, ""},
		"its own and another": {[]string{"iris", "rose"}, "rose"},
		"another":             {[]string{"rose"}, "rose"},
	} {
		s := &server{known: map[ruleKey]knownRules{{"ada ", probeName}: {rules: []authorizationv1.ResourceRule{
			{Verbs: []string{"get"}, APIGroups: []string{v1beta1.Group}, Resources: []string{"tenants"}, ResourceNames: c.names}}}}}
		require.Equal(t, c.want, s.byName(t.Context(), person{user: "ada"}, request), name)
	}
}
