package verify_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// demanding is a tier of a cluster policy that wants evidence of one verifier.
func demanding(t *testing.T, r verify.Registry, name, signer string) verify.Tier {
	t.Helper()
	v := verifier(t, name, signer)
	v.Source, v.Command = policy.ObjectRef{Kind: "ClusterVerifier", Name: name}, "cosign sign --key KEY"
	l := tier(t, r, verify.Requirement{AnyOf: []string{name}, AtLeast: 1}, v)
	l.Source = policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: name}
	rule := l.Judge.Rules()[0]
	rule.Source = l.Source
	l.Judge = verify.ByRules([]verify.Rule{rule}, verify.DefaultDeny)
	return l
}

func policiesOf(v policy.Verdict) (names []string) {
	for _, d := range v.Objections() {
		names = append(names, d.Policy.String())
	}
	return names
}

func TestEveryPolicyThatDeniesIsNamedWithoutARequestMore(t *testing.T) {
	app := "r.example.com/app@" + appDigest.String()
	requests := func(tiers ...verify.Tier) (policy.Verdict, map[string]int) {
		r := newRegistry()
		r.manifest(t, true, "stranger:"+appDigest.String())
		for i := range tiers {
			tiers[i].Registry = r
		}
		cache := newCache()
		e := engine(cache, verify.Options{})
		c := withMandatory(config(tiers[0]), tiers[1:]...)
		first := e.Verify(t.Context(), c, ref(t, app)).Verdict
		known, ok := e.Recall(c, ref(t, app))
		require.True(t, ok)
		require.Equal(t, first, known.Verdict, "memory has all of it")
		return first, r.calls
	}
	own := tier(t, nil, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev"))
	one, alone := requests(own)
	require.Equal(t, []string{"VerificationPolicy team-a/strict"}, policiesOf(one))
	all, together := requests(own, demanding(t, nil, "baseline", "platform"), demanding(t, nil, "fulfilled", "stranger"), demanding(t, nil, "scanned", "scanner"))
	require.Equal(t, []string{"VerificationPolicy team-a/strict", "ClusterVerificationPolicy baseline", "ClusterVerificationPolicy scanned"}, policiesOf(all))
	require.Equal(t, alone, together, "no request more")
	require.Contains(t, all.Others[1].Reason, "mandatory ClusterVerificationPolicy scanned requires a valid signature for scanned")
}

func TestAPolicyThatNeedsEvidenceIsNotAskedOnceAnotherDenies(t *testing.T) {
	r := newRegistry()
	c := withMandatory(config(denying(t, "ClusterVerificationPolicy", "own")), demanding(t, r, "baseline", "platform"),
		denying(t, "ClusterVerificationPolicy", "frozen"))
	got := engine(newCache(), verify.Options{}).Verify(t.Context(), c, ref(t, "r.example.com/app@"+appDigest.String()))
	require.Equal(t, []string{"ClusterVerificationPolicy own", "ClusterVerificationPolicy frozen"}, policiesOf(got.Verdict))
	require.Empty(t, r.calls)
}

// A mandatory policy is for a cluster admin to change: nothing in the namespace helps.
func TestAnAnswerThatDoesNotAllowSaysWhichPoliciesAreMandatory(t *testing.T) {
	app := ref(t, "r.example.com/app@"+appDigest.String())
	broken := denying(t, "ClusterVerificationPolicy", "broken")
	broken.Judge = broken.Judge.Refusing(errors.New("ClusterVerificationPolicy broken cannot be used: no field"))
	c := withMandatory(config(denying(t, "ClusterVerificationPolicy", "own")), denying(t, "ClusterVerificationPolicy", "strict"), broken)
	got := engine(newCache(), verify.Options{}).Verify(t.Context(), c, app).Verdict
	require.Equal(t, "a rule of ClusterVerificationPolicy own denies r.example.com/app", got.Reason)
	var others []string
	for _, d := range got.Others {
		others = append(others, d.Reason)
	}
	require.Equal(t,
		[]string{"a rule of mandatory ClusterVerificationPolicy strict denies r.example.com/app",
			"mandatory ClusterVerificationPolicy broken cannot be used: no field"}, others)
	source := broken.Source
	require.Equal(t, "mandatory ClusterVerificationPolicy broken could not be evaluated: no answer",
		policy.NotDecided(source, source.String()+" could not be evaluated: no answer").Mandatory(source).Mandatory(source).Reason)
}

func TestADenialSaysWhomToAskAboutEachPolicy(t *testing.T) {
	r := newRegistry()
	own, baseline, silent := tier(t, r, verify.Requirement{AnyOf: []string{"release"}, AtLeast: 1}, verifier(t, "release", "dev")),
		demanding(t, r, "baseline", "platform"), demanding(t, r, "silent", "x")
	own.Contact, baseline.Contact, silent.Contact = "#team-a", "#team-a", "#team-a"
	baseline.Contacts = []verify.Contact{{Policy: baseline.Source, Text: "security@example.com"}}
	c := withMandatory(config(own), baseline, silent)
	app := ref(t, "r.example.com/app@"+appDigest.String())
	got := engine(newCache(), verify.Options{}).Verify(t.Context(), c, app).Verdict
	require.Equal(t, "#team-a", got.Contact, "of the Tenant, because the policy names nobody")
	require.Equal(t, "security@example.com", got.Others[0].Contact)
	require.Equal(t, "#team-a", got.Others[1].Contact, "the team is asked about a policy of the cluster that says nobody")
	require.Equal(t,
		[]verify.Contact{{Policy: own.Source, Text: "#team-a"}, {Policy: baseline.Source, Text: "security@example.com"}, {Policy: silent.Source, Text: "#team-a"}},
		c.Contacts())

	own.Contacts = []verify.Contact{{Policy: own.Source, Text: "#release"}}
	got = engine(newCache(), verify.Options{}).Verify(t.Context(), withMandatory(config(own)), app).Verdict
	require.Equal(t, "#release", got.Contact, "the policy's own comes first")

	// A policy that judges what another leaves is asked about itself.
	rest := denying(t, "ClusterVerificationPolicy", "rest")
	rest.Contacts = []verify.Contact{{Policy: rest.Source, Text: "platform@example.com"}}
	own.Judge, own.Next = verify.ByRules(nil, verify.DefaultInherit), &rest
	got = engine(newCache(), verify.Options{}).Verify(t.Context(), config(own), app).Verdict
	require.Equal(t, rest.Source, got.Policy)
	require.Equal(t, "platform@example.com", got.Contact)
	require.Contains(t, config(own).Contacts(), verify.Contact{Policy: rest.Source, Text: "platform@example.com"})
}

func TestAWarningSaysWhomToAsk(t *testing.T) {
	warns := denying(t, "ClusterVerificationPolicy", "rehearsed")
	warns.Warns, warns.Contacts = true, []verify.Contact{{Policy: warns.Source, Text: "security@example.com"}}
	got := engine(newCache(), verify.Options{}).Verify(t.Context(), config(verify.Tier{Judge: verify.OnlyWarnings()}, warns),
		ref(t, "r.example.com/app@"+appDigest.String())).Verdict
	require.Equal(t, policy.Allowed, got.Outcome())
	require.Contains(t, got.Warning, ". Ask: security@example.com. To fix: ")
	require.Empty(t, got.Others)
}

func TestAnExceptionThatLiftsNothingSaysWhatItLacks(t *testing.T) {
	const covers = " is for this image, but does not override mandatory policies: it needs overrideMandatory"
	elsewhere, err := image.ParsePattern("other.example.com/**")
	require.NoError(t, err)
	mandatory, other := denying(t, "ClusterVerificationPolicy", "baseline"), denying(t, "ClusterVerificationPolicy", "second")
	allows, denies := denying(t, "VerificationPolicy", "own", elsewhere), denying(t, "VerificationPolicy", "own")
	team := exception(t, "mine", "r.example.com/app")
	team.Source = policy.ObjectRef{Kind: "Exception", Namespace: "team-a", Name: "mine"}
	for name, row := range map[string]struct {
		config     *verify.Config
		exception  verify.Exception
		breakGlass *verify.Exception
		want       string // at the end of the reason
		policies   int
		fix        string
	}{
		"only the mandatory policy denies": {withMandatory(config(allows), mandatory), exception(t, "x", "r.example.com/app"), nil,
			"ClusterException x" + covers, 1, "ClusterException x covers the image, but it needs overrideMandatory: ask a cluster admin to set it"},
		"the namespace's policy denies, too": {withMandatory(config(denies), mandatory), exception(t, "x", "r.example.com/app"), nil,
			"ClusterException x" + covers, 1, "ClusterException x covers the image, but it needs overrideMandatory: ask a cluster admin to set it"},
		"several mandatory policies deny": {withMandatory(config(denies), mandatory, other), exception(t, "x", "r.example.com/app"), nil,
			"ClusterException x" + covers, 2, "ClusterException x covers the image, but it needs overrideMandatory: ask a cluster admin to set it"},
		"a team's own exception may never": {withMandatory(config(denies), mandatory), team, nil,
			"Exception team-a/mine" + covers + ", which only a ClusterException can have", 1,
			"Exception team-a/mine covers the image, but it needs overrideMandatory, which only a ClusterExcept"},
		"break-glass": {withMandatory(config(denies), mandatory), verify.Exception{}, breakGlass(false),
			"break-glass of Namespace team-a does not override mandatory policies: it needs the annotation landwaiter.dev/break-glass-override-mandatory", 1,
			"break-glass is open, but it needs the annotation landwaiter.dev/break-glass-override-mandatory"},
		"an exception for another image": {withMandatory(config(allows), mandatory), exception(t, "x", "r.example.com/elsewhere"), nil,
			"a rule of mandatory ClusterVerificationPolicy baseline denies r.example.com/app", 1, ""},
		"an exception that has ended is silent": {withMandatory(config(allows), mandatory), verify.Exception{}, nil,
			"a rule of mandatory ClusterVerificationPolicy baseline denies r.example.com/app", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			row.config.Exceptions, row.config.BreakGlass = []verify.Exception{row.exception}, row.breakGlass
			e, app := at(newCache(), &clock{noon}), ref(t, "r.example.com/app@"+appDigest.String())
			got := e.Verify(t.Context(), row.config, app)
			require.Equal(t, policy.Denied, got.Verdict.Outcome())
			require.Equal(t, mandatory.Source, got.Verdict.Policy)
			require.Regexp(t, "^a rule of mandatory ClusterVerificationPolicy baseline denies", got.Verdict.Reason, "the first sentence names what decided")
			require.True(t, len(got.Verdict.Reason) >= len(row.want) && got.Verdict.Reason[len(got.Verdict.Reason)-len(row.want):] == row.want, got.Verdict.Reason)
			if strings.Contains(row.want, "it needs ") {
				require.Contains(t, got.Verdict.TextWithin(200), ". To fix, if your build made it: "+row.fix, "where the reason is cut")
				require.True(t, strings.HasPrefix(got.Verdict.Remediation, row.fix), got.Verdict.Remediation)
			}
			require.Len(t, got.Verdict.Objections(), row.policies, "what the exception lifts does not block")
			recalled, known := e.Recall(row.config, app)
			require.True(t, known)
			require.Equal(t, got.Verdict, recalled.Verdict)
		})
	}
}

// Signatures are not looked at if a denial needs none. What else denies then is not known, and the denial says so.
func TestADenialWithoutALookAtSignaturesSaysThatMoreCanFollow(t *testing.T) {
	const more = "; signatures were not checked yet, so more can follow"
	asks := func(v *verify.Verifier) verify.Tier {
		return tier(t, newRegistry(), verify.Requirement{AnyOf: []string{"a"}, AtLeast: 1}, v)
	}
	broken := verifier(t, "a", "k1")
	broken.Broken = errors.New("Verifier team-a/a cannot be used: there is no Secret")
	warns := asks(verifier(t, "a", "k1"))
	warns.Warns = true
	denies := denying(t, "ClusterVerificationPolicy", "baseline")
	for name, row := range map[string]struct {
		config *verify.Config
		more   bool
	}{
		"another policy asks for evidence":      {withMandatory(config(asks(verifier(t, "a", "k1"))), denies), true},
		"another policy only warns":             {withMandatory(config(denying(t, "VerificationPolicy", "own"), warns)), false},
		"no policy asks for evidence":           {withMandatory(config(denying(t, "VerificationPolicy", "own")), denies), false},
		"a Verifier that asks for it is broken": {config(asks(broken)), true},
		"signatures were looked at":             {config(asks(verifier(t, "a", "k1"))), false},
	} {
		got := engine(newCache(), verify.Options{}).Verify(t.Context(), row.config, ref(t, "r.example.com/app@"+appDigest.String())).Verdict
		require.Equal(t, policy.Denied, got.Outcome(), name)
		require.Equal(t, row.more, strings.HasSuffix(got.Reason, more), "%s: %s", name, got.Reason)
	}
}
