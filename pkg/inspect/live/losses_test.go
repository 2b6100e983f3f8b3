package live

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// requiring returns a rule that requires a Verifier for images.
func requiring(verifier string, images ...string) v1beta1.PolicyRule {
	return v1beta1.PolicyRule{Images: images, Require: []v1beta1.Requirement{{AnyOf: []string{verifier}}}}
}

// compiled returns the rules of a cluster with objects.
func compiled(t *testing.T, objects ...v1beta1.Object) *resolve.Snapshot {
	t.Helper()
	s, _, err := service.Open(context.Background(), resource.Objects{Resources: objects}, service.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s.Set().Snapshot()
}

func TestARuleThatNoLongerJudgesAnImageIsToldAlthoughNoVerdictChanges(t *testing.T) {
	mandatory := func(action v1beta1.EnforcementAction, rules ...v1beta1.PolicyRule) v1beta1.Object {
		p := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "platform-too"}}
		p.Spec.Scope, p.Spec.DefaultAction, p.Spec.EnforcementAction, p.Spec.Rules = v1beta1.PolicyScopeMandatory, v1beta1.DefaultActionAllow, action, rules
		return p
	}
	team := func(rules ...v1beta1.PolicyRule) v1beta1.Object {
		p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "own"}}
		p.Spec.DefaultAction, p.Spec.Rules = v1beta1.DefaultActionAllow, rules
		return p
	}
	deny, warn := v1beta1.EnforcementActionDeny, v1beta1.EnforcementActionWarn
	red, rde, all := "r.example.com/red/**", "r.example.com/rde/**", "**"
	for name, c := range map[string]struct {
		before, after []v1beta1.Object
		says          []string
	}{
		"a typo in a mandatory policy": {[]v1beta1.Object{mandatory(deny, requiring("x", red))}, []v1beta1.Object{mandatory(deny, requiring("x", rde))},
			[]string{"5 images are no longer judged by rule 1 of ClusterVerificationPolicy platform-too, which matched them: red r.example.com/red/a, red " +
				"r.example.com/red/b, red r.example.com/red/c and 2 more"}},
		"a typo in a team's policy": {[]v1beta1.Object{team(requiring("y", rde), requiring("x", red))},
			[]v1beta1.Object{team(requiring("y", rde), requiring("x", rde))},
			[]string{"5 images are no longer judged by rule 2 of VerificationPolicy red/own, which matched them: red r.example.com/red/a, red r.example.com/red/b, " +
				"red r.example.com/red/c and 2 more"}},
		"a typo that leaves them to a weaker rule": {[]v1beta1.Object{team(requiring("y", red), requiring("x", all))},
			[]v1beta1.Object{team(requiring("y", rde), requiring("x", all))},
			[]string{"5 images are no longer judged by rule 1 of VerificationPolicy red/own, and would match its rule 2, which requires something else: red " +
				"r.example.com/red/a, red r.example.com/red/b, red r.example.com/red/c and 2 more"}},
		"a policy that would only warn": {[]v1beta1.Object{mandatory(deny, requiring("x", "r.example.com/red/a"))},
			[]v1beta1.Object{mandatory(warn, requiring("x", "r.example.com/red/a"))},
			[]string{"1 image is no longer denied by rule 1 of ClusterVerificationPolicy platform-too, which would only warn about it: red r.example.com/red/a"}},
		"a policy that is deleted": {[]v1beta1.Object{mandatory(warn, requiring("x", "r.example.com/red/a"))}, nil,
			[]string{"1 image is no longer judged by rule 1 of ClusterVerificationPolicy platform-too, which matched it: red r.example.com/red/a"}},
		"a rule with another number":    {[]v1beta1.Object{team(requiring("x", red))}, []v1beta1.Object{team(requiring("y", rde), requiring("x", red))}, nil},
		"a rule with other demands":     {[]v1beta1.Object{team(requiring("x", red))}, []v1beta1.Object{team(requiring("y", red))}, nil},
		"a policy that no longer warns": {[]v1beta1.Object{mandatory(warn, requiring("x", red))}, []v1beta1.Object{mandatory(deny, requiring("x", red))}, nil},
		"a rule more":                   {nil, []v1beta1.Object{mandatory(deny, requiring("x", red))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []Row
			for _, image := range []string{"a", "b", "c", "d", "e"} {
				allowed := verify.Result{Verdict: judged.As(policy.Allowed, policy.Verdict{})}
				rows = append(rows, Row{Use: Use{Namespace: "red", Image: "r.example.com/red/" + image}, Before: allowed, After: allowed})
			}
			Lose(rows, compiled(t, c.before...), compiled(t, c.after...))
			losses, more := Losses(rows)
			var says []string
			for _, loss := range losses {
				says = append(says, loss.String())
			}
			require.Equal(t, c.says, says)
			require.Zero(t, more)
		})
	}
}

func TestManyLossesAreBoundedAndCounted(t *testing.T) {
	var rows []Row
	for i := range maxLosses + 3 {
		rows = append(rows, Row{Lost: []Loss{{Rule: i + 1}}})
	}
	losses, more := Losses(rows)
	require.Len(t, losses, maxLosses)
	require.Equal(t, 3, more)
}
