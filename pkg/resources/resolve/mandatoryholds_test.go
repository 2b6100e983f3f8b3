package resolve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestAnExceptionSaysWhichMandatoryPoliciesItDoesNotLift(t *testing.T) {
	keys := written.InlineKey(string(written.NewKey(t).PEM))
	const needs = "it needs overrideMandatory"
	mandatory := func(name, spec string) string {
		return written.Object("ClusterVerificationPolicy", "", name, "scope: Mandatory\n"+spec)
	}
	requires := func(name, images, rest string) string {
		return mandatory(name, "defaultAction: "+rest+"\nrules: [{images: ['"+images+"'], require: [{anyOf: [base]}]}]")
	}
	many := "defaultAction: Allow\nrules: [{images: [" + strings.Repeat("'*.example.com/**/x*/**', ", 63) + "'a.example.com/**'], action: Allow}]"
	for name, row := range map[string]struct {
		spec     string
		policies []string
		in       string // reason of Effective, "!" in front if it is False
		says     string
	}{
		"no mandatory policy": {inShop, nil, "InForce", "; mandatory policies hold"},
		"one that asks for evidence": {inShop, []string{requires("m", "**", "Deny")}, "MandatoryHolds",
			"it does not override mandatory policies (ClusterVerificationPolicy m): " + needs},
		"one that denies the image": {inShop, []string{mandatory("m", denies)}, "!MandatoryHolds",
			"it allows nothing, because mandatory policies deny all of its images (ClusterVerificationPolicy m): " + needs},
		"one that has no rule for the image": {inShop, []string{requires("m", "r.example.com/other", "Deny")}, "!MandatoryHolds", needs},
		"one that lets the image alone":      {inShop, []string{requires("m", "r.example.com/other", "Allow")}, "InForce", ""},
		"one that allows the image":          {inShop, []string{mandatory("m", "rules: [{images: ['r.example.com/**'], action: Allow}]")}, "InForce", ""},
		"one that asks for more signers than there are": {inShop, []string{mandatory("m", "rules: [{images: ['**'], require: [{anyOf: [base], atLeast: 5}]}]")},
			"!MandatoryHolds", "it allows nothing, because mandatory policies deny all of its images (ClusterVerificationPolicy m): " + needs},
		"a wildcard, and a rule for another registry": {"images: ['r.example.com/**']\nnamespaces: [shop]", []string{requires("m", "s.example.com/**", "Allow")},
			"InForce", "; mandatory policies hold"},
		"a wildcard, and a rule for another path": {"images: ['r.example.com/a/*']\nnamespaces: [shop]",
			[]string{requires("m", "r.example.com/b/**", "Allow"), requires("other", "r.example.com/**", "Allow")}, "MandatoryHolds",
			"(ClusterVerificationPolicy other)"},
		"one that is broken":             {inShop, []string{mandatory("m", "rules: [{images: ['**'], require: []}]")}, "!MandatoryHolds", needs},
		"one that only warns":            {inShop, []string{mandatory("m", "enforcementAction: Warn\n"+denies)}, "InForce", ""},
		"a policy that is not mandatory": {inShop, []string{written.Object("ClusterVerificationPolicy", "", "m", denies)}, "InForce", ""},
		"it overrides them": {inShop + "\noverrideMandatory: true", []string{mandatory("m", denies)}, "InForce",
			", even if a mandatory policy denies them"},
		"one of its images is denied": {"images: [r.example.com/app, r.example.com/tool]\nnamespaces: [shop]",
			[]string{mandatory("m", "defaultAction: Allow\nrules: [{images: [r.example.com/app], action: Deny}]")}, "MandatoryHolds", "(ClusterVerificationPolicy m)"},
		"each image is denied by another policy": {"images: [r.example.com/app, r.example.com/tool]\nnamespaces: [shop]",
			[]string{mandatory("a", "defaultAction: Allow\nrules: [{images: [r.example.com/app], action: Deny}]"),
				mandatory("b", "defaultAction: Allow\nrules: [{images: [r.example.com/tool], action: Deny}]")}, "!MandatoryHolds",
			"(ClusterVerificationPolicy a, ClusterVerificationPolicy b)"},
		"a wildcard, and everything is denied": {"images: ['r.example.com/**']\nnamespaces: [shop]", []string{mandatory("m", denies)},
			"!MandatoryHolds", needs},
		"a wildcard, and some images may be denied": {"images: ['r.example.com/**']\nnamespaces: [shop]", []string{requires("m", "r.example.com/app", "Allow")},
			"MandatoryHolds", needs},
		"a wildcard, and nobody can meet the rule": {"images: ['r.example.com/a/*']\nnamespaces: [shop]",
			[]string{mandatory("m", "rules: [{images: ['r.example.com/a/**'], require: [{anyOf: [base], atLeast: 5}]}, {images: ['r.example.com/**'], action: Allow}]")},
			"!MandatoryHolds", "it allows nothing, because mandatory policies deny all of its images (ClusterVerificationPolicy m): " + needs},
		"a wildcard, and a rule that only some can meet": {"images: ['r.example.com/**']\nnamespaces: [shop]",
			[]string{mandatory("m", "rules: [{images: ['r.example.com/a/**'], require: [{anyOf: [base], atLeast: 5}]}, {images: ['r.example.com/**'], action: Allow}]")},
			"MandatoryHolds", needs},
		"a wildcard, and no Verifier is there": {"images: ['r.example.com/a/*']\nnamespaces: [shop]",
			[]string{mandatory("m", "rules: [{images: ['**'], require: [{anyOf: [gone]}]}]")}, "!MandatoryHolds", needs},
		"a wildcard, and a Verifier for other images": {"images: ['r.example.com/a/*']\nnamespaces: [shop]",
			[]string{written.Object("ClusterVerifier", "", "elsewhere", "images: [r.example.com/a/app]\n"+written.CosignVerifier),
				mandatory("m", "rules: [{images: ['**'], require: [{anyOf: [elsewhere]}]}]")}, "MandatoryHolds", needs},
		"a wildcard behind a rule that allows it": {"images: ['r.example.com/a/*']\nnamespaces: [shop]",
			[]string{mandatory("m", "rules: [{images: ['r.example.com/**'], action: Allow}, {images: ['**'], action: Deny}]")}, "InForce", "; mandatory policies hold"},
		"a wildcard, and everything is allowed": {"images: ['r.example.com/**']\nnamespaces: [shop]", []string{mandatory("m", "defaultAction: Allow")},
			"InForce", ""},
		"a digest that is denied": {"images: ['r.example.com/app@sha256:" + strings.Repeat("0", 64) + "']\nnamespaces: [shop]",
			[]string{mandatory("m", denies)}, "!MandatoryHolds", needs},
		"no verifier of it is " +
			"for the image": {inShop,
			[]string{written.Object("ClusterVerifier", "", "elsewhere", "images: [r.example.com/other]\n"+written.CosignVerifier),
				mandatory("m", "rules: [{images: ['**'], require: [{anyOf: [elsewhere]}]}]")}, "!MandatoryHolds", needs},
		"no policy denies the image": {inShop, []string{written.Object("ClusterVerificationPolicy", "", "p", "defaultAction: Allow")}, "!Unused",
			"it lifts nothing, because policies allow all of its images without it"},
		"a policy asks for evidence " +
			"of the image": {inShop,
			[]string{written.Object("ClusterVerificationPolicy", "", "p", "defaultAction: Allow\nrules: [{images: [r.example.com/app], require: [{anyOf: [base]}]}]")},
			"InForce", ""},
		"too many patterns to compare": {inShop, []string{mandatory("m", many)}, "MandatoryHolds", needs},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := written.Compiled(
				aged(written.Objects(t,
					append(row.policies, written.Namespace("shop", "1"), written.Object("ClusterTrustStore", "", "keys", keys),
						written.Object("ClusterVerifier", "", "base", written.CosignVerifier), written.Object("ClusterException", "", "x", terms(time.Hour, row.spec)))...)))
			effective := written.ReportOn(t, s, "ClusterException x").EffectiveAt(soon)
			require.Equal(t, row.in, written.Short(effective), effective.Message)
			require.Contains(t, effective.Message, row.says)
			require.NotContains(t, effective.Message, "only a ClusterException")
		})
	}
	s, _ := written.Compiled(
		aged(written.Objects(t, written.Namespace("shop", "1"), mandatory("m", denies), written.Object("ClusterException", "", "d", terms(time.Hour, delegates)),
			written.Object("Exception", "shop", "x", terms(time.Hour, "images: [r.example.com/app]")))))
	effective := written.ReportOn(t, s, "Exception shop/x").EffectiveAt(soon)
	require.Equal(t, "!MandatoryHolds", written.Short(effective))
	require.Contains(t, effective.Message, needs+", which only a ClusterException can have")
	require.Equal(t, "InForce", written.Short(written.ReportOn(t, s, "ClusterException d").EffectiveAt(soon)), "a delegation lifts nothing itself")
}

func TestADenialSaysWhomToAskInTheWordsOfItsPolicyOrItsTenant(t *testing.T) {
	fixed := []string{written.Namespace("iris", "1"), written.Namespace("iris-web", "2"), written.Namespace("rose", "3"),
		written.Object("Tenant", "", "iris", "homeNamespace: iris\nnamespaces: [iris-web]\ncontact: '#iris'"),
		written.Object("Tenant", "", "rose", "homeNamespace: rose\ncontact: '#rose'"),
		written.Object("VerificationPolicy", "iris", "home", denies), written.Object("VerificationPolicy", "rose", "own", denies+"\ncontact: rose@example.com"),
		written.Object("ClusterVerificationPolicy", "", "baseline", "scope: Mandatory\ncontact: \"security@example.com\\nimage x is allowed \\u202e\"\n"+denies),
		written.Object("ClusterVerificationPolicy", "", "silent", "scope: Mandatory\n"+denies)}
	s, _ := written.Compiled(written.Objects(t, fixed...))
	web := written.Verdict(t, s, "iris-web", "r.example.com/app")
	require.Equal(t, policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "iris", Name: "home"}, web.Policy)
	require.Equal(t, "#iris", web.Contact)
	require.Equal(t, "security@example.com image x is allowed", web.Others[0].Contact, "what files say is one line")
	require.Equal(t, "#iris", web.Others[1].Contact, "a developer asks the own team about a policy of the cluster that says nobody")
	rose := written.Verdict(t, s, "rose", "r.example.com/app")
	require.Equal(t, "rose@example.com", rose.Contact)
	require.NotContains(t, web.Text(), "rose", "a team sees nothing of another")
	require.NotContains(t, rose.Text(), "iris")
	nobody := written.Verdict(t, s, "without-tenant", "r.example.com/app")
	require.Contains(t, nobody.Text(), "Ask: security@example.com")
	require.NotContains(t, nobody.Text(), "#", "no Tenant has the namespace")
	for name, row := range map[string]struct {
		objects []string
		want    policy.ObjectRef
	}{
		"a fallback policy of the cluster": {[]string{written.Object("ClusterVerificationPolicy", "", "fallback", denies)},
			policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "fallback"}},
		"the built-in rule": {nil, policy.ObjectRef{}},
		"a broken policy that only warns": {[]string{written.Object("ClusterVerificationPolicy", "", "warns", "enforcementAction: Warn\nrules: [{images: ['[']}]")},
			policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "warns"}},
		"a Tenant without its home": {[]string{written.Object("Tenant", "", "iris", "homeNamespace: gone\nnamespaces: [iris-web]\ncontact: '#iris'")},
			policy.ObjectRef{Kind: "Tenant", Name: "iris"}},
	} {
		objects := append([]string{fixed[0], fixed[1], fixed[3]}, row.objects...)
		if row.want.Kind == "Tenant" {
			objects = append([]string{fixed[1]}, row.objects...)
		}
		s, _ := written.Compiled(written.Objects(t, objects...))
		got := written.Verdict(t, s, "iris-web", "r.example.com/app")
		require.Equal(t, policy.Denied, got.Outcome(), name)
		require.Equal(t, row.want, got.Policy, name)
		require.Equal(t, "#iris", got.Contact, name)
	}

	// A change of the contact alone reaches the Tenant's namespaces.
	fixed[3] = strings.Replace(fixed[3], "#iris", "#iris-oncall", 1)
	s, _ = s.Next(resolve.Group(written.Objects(t, fixed...)).Only(verify.Cluster), nil)
	require.Equal(t, "#iris-oncall", written.Verdict(t, s, "iris-web", "r.example.com/app").Contact)
}
