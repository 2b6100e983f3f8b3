package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestARuleThatMatchesNothingThatRunsIsTold(t *testing.T) {
	cluster := func(rules ...v1beta1.PolicyRule) v1beta1.Object {
		p := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "guard"}}
		p.Spec.Rules = rules
		return p
	}
	team := func(namespace string, rules ...v1beta1.PolicyRule) v1beta1.Object {
		p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
		p.Spec.Rules = rules
		return p
	}
	red := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "red"}, Spec: v1beta1.TenantSpec{HomeNamespace: "red", Namespaces: []string{"red-web"}}}
	const guard = " of ClusterVerificationPolicy guard"
	for name, c := range map[string]struct {
		before, change []v1beta1.Object
		says           []string
	}{
		"a step with two letters swapped": {nil, []v1beta1.Object{cluster(requiring("x", "r.example.com/platfrom/**"))},
			[]string{"rule 1" + guard + " matches none of the images that run there; is the name right? r.example.com/platfrom/** is nearly " +
				"r.example.com/platform/agent, which runs"}},
		"another port": {nil, []v1beta1.Object{cluster(requiring("x", "r.example.com:37304/web"))},
			[]string{"rule 1" + guard + " matches none of the images that run there; is the name right? r.example.com:37304/web is nearly " +
				"r.example.com:37303/web, which runs"}},
		"a registry of which others run": {nil, []v1beta1.Object{cluster(requiring("x", "r.example.com/wholly-new/**"), requiring("x", "**"))},
			[]string{"rule 1" + guard + " matches none of the images that run there; of r.example.com run r.example.com/platform/agent"}},
		"registries of which nothing runs": {nil, []v1beta1.Object{cluster(requiring("x", "quay.io/**"), requiring("x", "ghcr.io/**"))},
			[]string{"rules 1, 2" + guard + " match none of the images that run there"}},
		"a team's typo": {nil, []v1beta1.Object{team("red", requiring("x", "r.example.com:37303/wbe"))},
			[]string{"rule 1 of VerificationPolicy red/own matches none of the images that run there; is the name right? r.example.com:37303/wbe is nearly " +
				"r.example.com:37303/web, which runs"}},
		"images of another team are no hint": {nil, []v1beta1.Object{team("blue", requiring("x", "r.example.com:37303/wbe"))}, nil},
		"one of two patterns matches":        {nil, []v1beta1.Object{cluster(requiring("x", "new.example.com/**", "r.example.com/platform/**"))}, nil},
		"a rule that the cluster has already": {[]v1beta1.Object{cluster(requiring("x", "new.example.com/**"))},
			[]v1beta1.Object{cluster(requiring("y", "new.example.com/**"))}, nil},
		"a pattern that has an error of its own": {nil, []v1beta1.Object{cluster(requiring("x", "platfrom"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			uses := []Use{{Namespace: "infra", Image: "r.example.com/platform/agent:v1", Pods: 1},
				{Namespace: "red-web", Image: "r.example.com:37303/web:v1", Owners: []string{"Deployment/web"}},
				{Namespace: "infra", Image: "new.example.com/a:v1", Named: true}}
			change := Change{Objects: resource.Objects{Resources: c.change}}
			before := State{Namespaces: []verify.Namespace{"infra"}, Objects: resource.Objects{Resources: append([]v1beta1.Object{red}, c.before...)}}
			require.Equal(t, c.says, change.Unmatched(uses, before, before))
		})
	}
	require.Empty(t, Change{Objects: resource.Objects{Resources: []v1beta1.Object{cluster(requiring("x", "a.example.com/**"))}}}.Unmatched(nil, State{}, State{}),
		"nothing runs, so nothing is missed")
}
