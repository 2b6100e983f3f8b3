package verify

import (
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
	broken := &Verifier{Source: policy.ObjectRef{Kind: "ClusterVerifier", Name: "broken"}, Type: "Cosign", Images: images, Broken: "Secret keys does not exist"}
	rules := func(action Action, require ...Requirement) []Rule {
		return []Rule{{Images: images, Action: action, Require: require}}
	}
	for name, c := range map[string]struct {
		layers           []Layer
		any, ours, other bool
	}{
		"nothing":                      {nil, false, false, false},
		"a layer of nothing":           {[]Layer{{}}, false, false, false},
		"only what warns":              {[]Layer{{Warns: true, Default: policy.Allowed}}, false, false, false},
		"policies that only warn":      {[]Layer{{OnlyWarnings: true}}, true, true, true},
		"no policy and no Verifier":    {[]Layer{{RequireMatching: true}}, false, false, false},
		"no policy, but a Verifier":    {[]Layer{{RequireMatching: true, Verifiers: []*Verifier{signed}}}, true, true, false},
		"a default that allows":        {[]Layer{{Default: policy.Allowed}}, true, true, true},
		"a rule that allows":           {[]Layer{{Rules: rules(Allow)}}, true, true, false},
		"a rule that denies":           {[]Layer{{Rules: rules(Deny)}}, false, false, false},
		"a rule that denies some":      {[]Layer{{Rules: rules(Deny), Default: policy.Allowed}}, true, false, true},
		"a requirement of nothing":     {[]Layer{{Rules: rules(Require)}}, false, false, false},
		"a Verifier by name":           {[]Layer{{Rules: rules(Require, Requirement{AnyOf: []string{"gone", "signed"}}), Verifiers: []*Verifier{signed}}}, true, true, false},
		"a Verifier that is not there": {[]Layer{{Rules: rules(Require, Requirement{AnyOf: []string{"gone"}}), Verifiers: []*Verifier{signed}}}, false, false, false},
		"one of all":                   {[]Layer{{Rules: rules(Require, Requirement{AllOf: []string{"gone", "signed"}}), Verifiers: []*Verifier{signed}}}, false, false, false},
		"a type":                       {[]Layer{{Rules: rules(Require, Requirement{Types: []string{"Cosign"}}), Verifiers: []*Verifier{signed}}}, true, true, false},
		"another type":                 {[]Layer{{Rules: rules(Require, Requirement{Types: []string{"Notation"}}), Verifiers: []*Verifier{signed}}}, false, false, false},
		"a Verifier without its key":   {[]Layer{{Rules: rules(Require, Requirement{AnyOf: []string{"broken"}}), Verifiers: []*Verifier{broken}}}, true, true, false},
		"a broken policy":              {[]Layer{{Broken: "it is invalid", Default: policy.Allowed}}, false, false, false},
		"the next level":               {[]Layer{{Rules: rules(Deny), Inherits: true, Next: &Layer{Default: policy.Allowed}}}, true, false, true},
		"no next level":                {[]Layer{{Inherits: true}}, false, false, false},
		"a mandatory policy":           {[]Layer{{Default: policy.Allowed}, {Rules: rules(Deny), Default: policy.Denied}}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{Layers: c.layers}
			require.Equal(t, c.any, config.MayAllow(image.Reference{}), "any image")
			require.Equal(t, c.ours, config.MayAllow(ours))
			require.Equal(t, c.other, config.MayAllow(other))
		})
	}
}
