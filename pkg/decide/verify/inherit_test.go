package verify

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestOnlyTheLastLayerOfAChainAllowsByDefault(t *testing.T) {
	ref, err := image.Parse("r.example.com/app:v1")
	require.NoError(t, err)
	lax := &Tier{Judge: ByRules(nil, DefaultAllow)}
	for name, c := range map[string]struct {
		tier Tier
		want policy.Outcome
		says string
	}{
		"nothing to inherit": {Tier{Judge: ByRules(nil, DefaultInherit)}, policy.Denied,
			"its defaultAction is Inherit, but no further level has a policy, or a Verifier for it"},
		"to a level without anything": {Tier{Judge: ByRules(nil, DefaultInherit), Next: &Tier{Judge: ByVerifiers()}}, policy.Denied,
			"no further level has a policy, or a Verifier for it"},
		"a next tier without the word": {Tier{Next: lax}, policy.Denied, "its defaultAction is Deny"},
		"a lax next tier":              {Tier{Judge: ByRules(nil, DefaultInherit), Next: lax}, policy.Allowed, "its defaultAction is Allow"},
		"a broken next tier": {Tier{Judge: ByRules(nil, DefaultInherit), Next: &Tier{Judge: ByRules(nil, DefaultAllow).Refusing(errors.New("broken"))}},
			policy.Denied, "broken"},
		"a tier broken for no reason": {Tier{Judge: ByRules(nil, DefaultAllow).Refusing(nil)}, policy.Denied, "it cannot be used"},
		"a broken tier":               {Tier{Judge: ByRules(nil, DefaultInherit).Refusing(errors.New("broken")), Next: lax}, policy.Denied, "broken"},
		"the zero next tier":          {Tier{Judge: ByRules(nil, DefaultInherit), Next: &Tier{}}, policy.Denied, "its defaultAction is Deny"},
		"two steps": {Tier{Judge: ByRules(nil, DefaultInherit), Next: &Tier{Judge: ByRules(nil, DefaultInherit), Next: lax}}, policy.Allowed,
			"its defaultAction is Allow"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.tier.plan(ref)
			require.True(t, got.known)
			require.Equal(t, c.want, got.verdict.Outcome())
			require.Contains(t, got.verdict.Reason, c.says)
		})
	}
}
