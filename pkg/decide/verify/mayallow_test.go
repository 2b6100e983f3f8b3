package verify

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestMayAllowNeedsARuleOrAVerifier(t *testing.T) {
	pattern, err := image.ParsePattern("registry.example.com/**")
	require.NoError(t, err)
	ours, err := image.Parse("registry.example.com/app")
	require.NoError(t, err)
	other, err := image.Parse("ghcr.io/other/app")
	require.NoError(t, err)
	images := []image.Pattern{pattern}
	signed := &Verifier{Source: policy.ObjectRef{Kind: "ClusterVerifier", Name: "signed"}, Type: "Cosign", Images: images}
	broken := &Verifier{Source: policy.ObjectRef{Kind: "ClusterVerifier", Name: "broken"}, Type: "Cosign", Images: images,
		Broken: errors.New("Secret keys does not exist")}
	rules := func(action Action, require ...Requirement) []Rule {
		return []Rule{{Images: images, Action: action, Require: require}}
	}
	for name, c := range map[string]struct {
		tiers            []Tier
		any, ours, other bool
	}{
		"nothing":                   {nil, false, false, false},
		"a tier of nothing":         {[]Tier{{}}, false, false, false},
		"only what warns":           {[]Tier{{Warns: true, Judge: ByRules(nil, DefaultAllow)}}, false, false, false},
		"policies that only warn":   {[]Tier{{Judge: OnlyWarnings()}}, true, true, true},
		"no policy and no Verifier": {[]Tier{{Judge: ByVerifiers()}}, false, false, false},
		"no policy, but a Verifier": {[]Tier{{Judge: ByVerifiers(), Verifiers: []*Verifier{signed}}}, true, true, false},
		"a default that allows":     {[]Tier{{Judge: ByRules(nil, DefaultAllow)}}, true, true, true},
		"a rule that allows":        {[]Tier{{Judge: ByRules(rules(Allow), DefaultDeny)}}, true, true, false},
		"a rule that denies":        {[]Tier{{Judge: ByRules(rules(Deny), DefaultDeny)}}, false, false, false},
		"a rule that denies some":   {[]Tier{{Judge: ByRules(rules(Deny), DefaultAllow)}}, true, false, true},
		"a requirement of nothing":  {[]Tier{{Judge: ByRules(rules(Require), DefaultDeny)}}, false, false, false},
		"a Verifier by name": {
			[]Tier{{Judge: ByRules(rules(Require, Requirement{AnyOf: []string{"gone", "signed"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{signed}}},
			true, true, false},
		"a Verifier that " +
			"is not there": {[]Tier{{Judge: ByRules(rules(Require, Requirement{AnyOf: []string{"gone"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{signed}}},
			false, false, false},
		"one of all": {
			[]Tier{{Judge: ByRules(rules(Require, Requirement{AllOf: []string{"gone", "signed"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{signed}}},
			false, false, false},
		"a type": {
			[]Tier{{Judge: ByRules(rules(Require, Requirement{Types: []string{"Cosign"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{signed}}},
			true, true, false},
		"another type": {
			[]Tier{{Judge: ByRules(rules(Require, Requirement{Types: []string{"Notation"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{signed}}},
			false, false, false},
		"a Verifier without its key": {
			[]Tier{{Judge: ByRules(rules(Require, Requirement{AnyOf: []string{"broken"}, AtLeast: 1}), DefaultDeny), Verifiers: []*Verifier{broken}}},
			true, true, false},
		"a broken policy":    {[]Tier{{Judge: ByRules(nil, DefaultAllow).Refusing(errors.New("it is invalid"))}}, false, false, false},
		"the next level":     {[]Tier{{Judge: ByRules(rules(Deny), DefaultInherit), Next: &Tier{Judge: ByRules(nil, DefaultAllow)}}}, true, false, true},
		"no next level":      {[]Tier{{Judge: ByRules(nil, DefaultInherit)}}, false, false, false},
		"a mandatory policy": {[]Tier{{Judge: ByRules(nil, DefaultAllow)}, {Judge: ByRules(rules(Deny), DefaultDeny)}}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{Tiers: c.tiers}
			require.Equal(t, c.any, config.MayAllow(image.Reference{}), "any image")
			require.Equal(t, c.ours, config.MayAllow(ours))
			require.Equal(t, c.other, config.MayAllow(other))
		})
	}
}
