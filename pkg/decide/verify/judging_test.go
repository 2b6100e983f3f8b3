package verify

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestTheRulesThatRequireSomethingOfAnImageAreThoseThatDecideAboutIt(t *testing.T) {
	ours, err := image.Parse("registry.example.com/app")
	require.NoError(t, err)
	team, platform := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "a", Name: "team"},
		policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "platform"}
	rule := func(source policy.ObjectRef, action Action, pattern string) Rule {
		p, err := image.ParsePattern(pattern)
		require.NoError(t, err)
		return Rule{Source: source, Images: []image.Pattern{p}, Action: action, Require: []Requirement{{AnyOf: []string{"release"}, AtLeast: 1}}}
	}
	second := ByRules([]Rule{rule(team, Require, "**"), rule(platform, Allow, "other.example.com/**"), rule(platform, Require, "registry.example.com/**"),
		rule(platform, Deny, "**")}[1:], DefaultDeny)
	for name, c := range map[string]struct {
		tiers []Tier
		want  []Judging
	}{
		"the first that matches, counted in its policy": {[]Tier{{Judge: second}}, []Judging{{Policy: platform, Rule: 2}}},
		"one that denies":                 {[]Tier{{Judge: ByRules([]Rule{rule(team, Deny, "**")}, DefaultAllow)}}, []Judging{{Policy: team, Rule: 1}}},
		"none, after one that allows":     {[]Tier{{Judge: ByRules([]Rule{rule(team, Allow, "**"), rule(team, Require, "**")}, DefaultAllow)}}, nil},
		"none of a default":               {[]Tier{{Judge: ByRules(nil, DefaultDeny)}}, nil},
		"none of a policy that is broken": {[]Tier{{Judge: second.Refusing(errors.New("broken"))}}, nil},
		"that of a further level":         {[]Tier{{Judge: ByRules(nil, DefaultInherit), Next: &Tier{Judge: second}}}, []Judging{{Policy: platform, Rule: 2}}},
		"those of all tiers, also to warn": {[]Tier{{Judge: second}, {Judge: ByRules([]Rule{rule(team, Require, "**")}, DefaultAllow), Warns: true}},
			[]Judging{{Policy: platform, Rule: 2}, {Policy: team, Rule: 1, Warns: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			found := (&Config{Tiers: c.tiers}).Judging(ours)
			for i := range found {
				found[i].demands = ""
			}
			require.Equal(t, c.want, found)
		})
	}
}
