package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

var strict = policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "strict"}

func finding(verifier string, result policy.Result, signer, message string) policy.Finding {
	f := policy.Finding{Verifier: verifier, Message: message, Unknown: result == policy.Unknown,
		Source: policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: verifier}}
	if result != policy.Valid {
		return f
	}
	return judged.Proven(signer, f)
}

func anyOf(t *testing.T, atLeast int, names ...string) policy.Requirement {
	t.Helper()
	r, err := policy.AnyOf(strict, atLeast, names...)
	require.NoError(t, err)
	return r
}

func allOf(t *testing.T, atLeast int, names ...string) policy.Requirement {
	t.Helper()
	r, err := policy.AllOf(strict, atLeast, names...)
	require.NoError(t, err)
	return r
}

func TestDecide(t *testing.T) {
	valid := func(verifier, signer string) policy.Finding { return finding(verifier, policy.Valid, signer, "ok") }
	invalid := func(verifier, why string) policy.Finding { return finding(verifier, policy.Invalid, "", why) }
	unknown := func(verifier string) policy.Finding {
		return finding(verifier, policy.Unknown, "", "registry answered 503")
	}
	cases := map[string]struct {
		require  []policy.Requirement
		findings []policy.Finding
		outcome  policy.Outcome
		reason   string
	}{
		"no requirement denies":            {nil, []policy.Finding{valid("a", "k1")}, policy.Denied, "requires nothing"},
		"nothing found denies":             {[]policy.Requirement{anyOf(t, 1, "a")}, nil, policy.Denied, "no signature was found"},
		"the zero requirement never holds": {[]policy.Requirement{{}}, []policy.Finding{valid("a", "k1"), unknown("a")}, policy.Denied, ""},
		"one valid signature allows": {[]policy.Requirement{anyOf(t, 1, "a")}, []policy.Finding{valid("a", "k1")}, policy.Allowed,
			"Verifier team-a/a"},
		"a bad signature does not spoil a good one": {[]policy.Requirement{anyOf(t, 1, "a")},
			[]policy.Finding{invalid("a", "wrong key"), valid("a", "k1"), unknown("a")}, policy.Allowed, ""},
		"another verifier's signature is no help": {[]policy.Requirement{anyOf(t, 1, "a")}, []policy.Finding{valid("b", "k1")}, policy.Denied,
			"requires a valid signature for a"},
		"any of two": {[]policy.Requirement{anyOf(t, 1, "a", "b")}, []policy.Finding{valid("b", "k1")}, policy.Allowed, ""},
		"all of two with one missing": {[]policy.Requirement{allOf(t, 1, "a", "b")}, []policy.Finding{valid("b", "k1")}, policy.Denied,
			"requires a valid signature for a and for b: there is one for b; no other signature was found"},
		"all of two": {[]policy.Requirement{allOf(t, 1, "a", "b")}, []policy.Finding{valid("b", "k1"), valid("a", "k1")}, policy.Allowed, ""},
		"two signatures of one signer count once": {[]policy.Requirement{anyOf(t, 2, "a")}, []policy.Finding{valid("a", "k1"), valid("a", "k1")}, policy.Denied,
			"by each of 2 different signers"},
		"one signer seen by two verifiers is one": {[]policy.Requirement{anyOf(t, 2, "a", "b")}, []policy.Finding{valid("a", "k1"), valid("b", "k1")}, policy.Denied,
			"by each of 2 different signers"},
		"two signers": {[]policy.Requirement{anyOf(t, 2, "a")}, []policy.Finding{valid("a", "k1"), valid("a", "k2")},
			policy.Allowed, ""},
		"all of with too few signers": {[]policy.Requirement{allOf(t, 2, "a", "b")}, []policy.Finding{valid("a", "k1"), valid("b", "k1")},
			policy.Denied, "by each of 2 different signers"},
		"a valid finding without signer is no proof": {[]policy.Requirement{anyOf(t, 1, "a")}, []policy.Finding{valid("a", "")}, policy.Denied, ""},
		"unreadable evidence leaves it undecided": {[]policy.Requirement{anyOf(t, 1, "a")}, []policy.Finding{unknown("a"), invalid("a", "wrong key")},
			policy.Undecided, "registry answered 503"},
		"unreadable evidence of others does not": {[]policy.Requirement{anyOf(t, 1, "a")}, []policy.Finding{unknown("b")}, policy.Denied, ""},
		"all of, one unreadable, one missing":    {[]policy.Requirement{allOf(t, 1, "a", "b")}, []policy.Finding{unknown("a")}, policy.Denied, ""},
		"a denial outweighs a doubt": {[]policy.Requirement{anyOf(t, 1, "a"), anyOf(t, 1, "b")},
			[]policy.Finding{unknown("a"), invalid("b", "wrong key")}, policy.Denied, "wrong key"},
		"a doubt outweighs a proof": {[]policy.Requirement{anyOf(t, 1, "a"), anyOf(t, 1, "b")}, []policy.Finding{valid("a", "k1"), unknown("b")},
			policy.Undecided, ""},
		"every requirement is met": {[]policy.Requirement{anyOf(t, 1, "a"), anyOf(t, 1, "b")}, []policy.Finding{valid("a", "k1"), valid("b", "k1")},
			policy.Allowed, "Verifier team-a/b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rules := policy.Requirements{Source: strict, Require: c.require}
			verdict := policy.Decide(nil, rules, c.findings)
			require.Equal(t, c.outcome.String(), verdict.Outcome().String(), verdict.Reason)
			require.Contains(t, verdict.Reason, c.reason)
			require.Equal(t, c.outcome == policy.Allowed, settled(rules, c.findings))
		})
	}
}

// settled reports whether a search that has these findings may stop.
func settled(rules policy.Requirements, findings []policy.Finding) bool {
	tally := rules.Tally()
	for _, f := range findings {
		tally.Add(f)
	}
	return tally.Settled()
}

// The search must not stop before the rules are met, nor run on after that.
func TestASearchStopsExactlyWhenTheRulesAreMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4)
		rules := policy.Requirements{Source: strict}
		for range rapid.IntRange(0, 3).Draw(t, "requirements") {
			construct := rapid.SampledFrom([]func(policy.ObjectRef, int, ...string) (policy.Requirement, error){policy.AnyOf, policy.AllOf}).Draw(t, "kind")
			requirement, err := construct(strict, rapid.IntRange(1, 3).Draw(t, "at least"), names.Draw(t, "verifiers")...)
			if err != nil {
				t.Fatal(err)
			}
			rules.Require = append(rules.Require, requirement)
		}
		tally, findings := rules.Tally(), []policy.Finding(nil)
		for range rapid.IntRange(0, 12).Draw(t, "findings") {
			f := finding(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "verifier"),
				rapid.SampledFrom([]policy.Result{policy.Valid, policy.Invalid, policy.Unknown}).Draw(t, "result"),
				rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(t, "signer"), "")
			tally.Add(f)
			findings = append(findings, f)
			if allowed := policy.Decide(nil, rules, findings).Outcome() == policy.Allowed; allowed != tally.Settled() {
				t.Fatalf("allowed %v, settled %v: %+v", allowed, tally.Settled(), findings)
			}
		}
	})
}

func TestZeroValuesDeny(t *testing.T) {
	require.Equal(t, policy.Denied, policy.Decide(nil, policy.Requirements{}, nil).Outcome())
	require.Equal(t, policy.Denied, policy.Verdict{}.Outcome())
	var outcome policy.Outcome
	require.Equal(t, "denied", outcome.String())
	var result policy.Result
	require.Equal(t, policy.Invalid, result)
	require.Equal(t, "denied", policy.Outcome(77).String())
	require.Equal(t, "invalid", policy.Result(77).String())
}

func TestRequirementsThatWouldAlwaysHoldDoNotConstruct(t *testing.T) {
	for _, make := range []func(policy.ObjectRef, int, ...string) (policy.Requirement, error){policy.AnyOf, policy.AllOf} {
		_, err := make(strict, 1)
		require.ErrorContains(t, err, "without verifiers")
		for _, n := range []int{0, -1} {
			_, err = make(strict, n, "a")
			require.ErrorContains(t, err, "must be 1 or more")
		}
	}
}

func TestReasonsNameTheResourceAndStayShort(t *testing.T) {
	var findings []policy.Finding
	for i := range 30 {
		findings = append(findings, finding("a", policy.Invalid, "", fmt.Sprintf("signature %d is by an unknown key", i)))
	}
	verdict := policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{anyOf(t, 1, "a")}}, findings)
	require.Contains(t, verdict.Reason, "VerificationPolicy team-a/strict requires a valid signature for a")
	require.Contains(t, verdict.Reason, "and 27 more")
	require.Equal(t, strict, verdict.Policy)
}

func TestDenialsSayWhatIsMissingAndWhatToDo(t *testing.T) {
	absent := func(verifier string) policy.Finding {
		f := finding(verifier, policy.Invalid, "", "no cosign signature was found")
		f.Remediation = "run cosign sign for " + verifier
		return f
	}
	wrong := func(verifier, remediation string) policy.Finding {
		f := finding(verifier, policy.Invalid, "", "no key of TrustStore team-a/"+verifier+" verifies the signature")
		f.Remediation = remediation
		return f
	}
	attested := func(result policy.Result, signer, message string) policy.Finding {
		f := finding("sbom", result, signer, message)
		f.Type = "Attestation"
		return f
	}
	a1, b1 := finding("a", policy.Valid, "k1", "ok"), finding("b", policy.Valid, "k1", "ok")
	const starts = "VerificationPolicy team-a/strict requires "
	cases := map[string]struct {
		require  policy.Requirement
		findings []policy.Finding
		want     string
	}{
		"nothing found": {anyOf(t, 1, "a"), []policy.Finding{absent("a")},
			"a valid signature for a: no cosign signature was found. To fix: run cosign sign for a"},
		"nothing found for any of two": {anyOf(t, 1, "a", "b"), []policy.Finding{absent("a"), absent("b")},
			"a valid signature for a or b: no cosign signature was found. To fix: run cosign sign for a"},
		"another cause for each of two": {anyOf(t, 1, "a", "b"), []policy.Finding{absent("a"), wrong("b", "add the key")},
			"a valid signature for a or b: for a, no cosign signature was found; for b, no key of TrustStore team-a/b verifies the signature. To fix: run cosign sign " +
				"for a; or add the key"},
		"one of all": {allOf(t, 1, "a", "b"), []policy.Finding{a1, wrong("a", "never said"), absent("b")},
			"a valid signature for a and for b: there is one for a; for b, no cosign signature was found. To fix: run cosign sign for b"},
		"both of all": {allOf(t, 1, "a", "b"), []policy.Finding{absent("a"), wrong("b", "add the key")},
			"a valid signature for a and for b: for a, no cosign signature was found; for b, no key of TrustStore team-a/b verifies the signature. To fix: run cosign " +
				"sign for a; and add the key"},
		"one signer of two": {anyOf(t, 2, "a"), []policy.Finding{a1},
			"a valid signature by each of 2 different signers, for a: only 1 signer was found, for a; no other signature was found. To fix: have 1 more trusted " +
				"signer sign the image"},
		"one signer of three, for two verifiers": {anyOf(t, 3, "a", "b"), []policy.Finding{a1, b1},
			"a valid signature by each of 3 different signers, for a or b: only 1 signer was found, for a and b; no other signature was found. To fix: have 2 more " +
				"trusted signers sign the image"},
		"one signer of two, and a wrong key": {anyOf(t, 2, "a"), []policy.Finding{a1, wrong("a", "add the key")},
			"a valid signature by each of 2 different signers, for a: only 1 signer was found, for a; no key of TrustStore team-a/a verifies the signature. To " +
				"fix: add the key"},
		"an attestation": {anyOf(t, 1, "sbom"), []policy.Finding{attested(policy.Invalid, "", "no attestation was found")},
			"a valid attestation for sbom: no attestation was found"},
		"an attestation and a signature": {allOf(t, 1, "a", "sbom"), []policy.Finding{a1, attested(policy.Invalid, "", "no attestation was found")},
			"a valid signature or attestation for a and for sbom: there is one for a; for sbom, no attestation was found"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict := policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{c.require}}, c.findings)
			require.Equal(t, policy.Denied, verdict.Outcome())
			require.Equal(t, starts+c.want, verdict.Text())
		})
	}
}

func TestDenialsListFewVerifiers(t *testing.T) {
	var names []string
	var findings []policy.Finding
	for i := range 50 {
		names = append(names, fmt.Sprintf("v%02d%s", i, strings.Repeat("x", 50)))
		f := finding(names[i], policy.Invalid, "", fmt.Sprintf("cause %d", i%2))
		f.Remediation = "fix " + names[i]
		findings = append(findings, f)
	}
	for _, requirement := range []policy.Requirement{anyOf(t, 1, names...), allOf(t, 2, names...)} {
		verdict := policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{requirement}}, findings)
		require.Contains(t, verdict.Reason, "45 more")
		require.Contains(t, verdict.Reason, "20 more, cause 1")
		require.Less(t, len(verdict.Text()), 1500)
	}
}

func TestTextKeepsTheRemediationWithinItsLimit(t *testing.T) {
	long := strings.Repeat("ü", 1000)
	for name, c := range map[string]struct {
		verdict policy.Verdict
		ends    string
	}{
		"a long reason leaves room for what to do":   {policy.Verdict{Reason: long, Remediation: "sign it"}, "…. To fix, if your build made it: sign it"},
		"a long remediation is cut":                  {policy.Verdict{Reason: "unsigned", Remediation: long}, "ü…"},
		"both are long":                              {policy.Verdict{Reason: long, Remediation: long}, "ü…"},
		"a long reason has all of it if it is alone": {policy.Verdict{Reason: long}, "ü…"},
		"both are short": {policy.Verdict{Reason: "unsigned", Remediation: "sign it"},
			"unsigned. To fix, if your build made it: sign it"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.verdict.TextWithin(200)
			require.True(t, strings.HasSuffix(text, c.ends), text)
			require.LessOrEqual(t, len(text), 200)
			require.True(t, utf8.ValidString(text))
			require.Equal(t, c.verdict.Remediation != "", strings.Contains(text, "To fix"), text)
		})
	}
}

// Evidence only ever adds: taking findings away never turns a deny into a pass,
// and an allowed verdict needs a valid finding for some required verifier.
func TestDecideIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		result := rapid.SampledFrom([]policy.Result{policy.Valid, policy.Invalid, policy.Unknown})
		signer := rapid.SampledFrom([]string{"", "k1", "k2", "k3"})
		var findings []policy.Finding
		for range rapid.IntRange(0, 6).Draw(t, "findings") {
			findings = append(findings, finding(name.Draw(t, "verifier"), result.Draw(t, "result"), signer.Draw(t, "signer"), "m"))
		}
		names := rapid.SliceOfNDistinct(name, 1, 3, rapid.ID).Draw(t, "required")
		construct := rapid.SampledFrom([]func(policy.ObjectRef, int, ...string) (policy.Requirement, error){policy.AnyOf, policy.AllOf}).Draw(t, "mode")
		requirement, err := construct(strict, rapid.IntRange(1, 3).Draw(t, "at least"), names...)
		if err != nil {
			t.Fatal(err)
		}
		rules := policy.Requirements{Source: strict, Require: []policy.Requirement{requirement}}
		if policy.Decide(nil, rules, findings).Outcome() == policy.Allowed {
			return
		}
		for i := range findings {
			fewer := append(append([]policy.Finding{}, findings[:i]...), findings[i+1:]...)
			if policy.Decide(nil, rules, fewer).Outcome() == policy.Allowed {
				t.Fatalf("allowed without finding %d, not with it", i)
			}
		}
	})
}

// Anyone who can push can attach anything, and images have evidence for others: none of it shapes the first sentence.
func TestADenialBeginsWithTheEvidenceThatNearlyCounted(t *testing.T) {
	of := func(reason policy.Reason, message string) policy.Finding {
		f := finding("a", policy.Invalid, "", message)
		f.Reason = reason
		return f
	}
	for name, c := range map[string]struct {
		findings []policy.Finding
		why      string
	}{
		"an attestation before a signature": {[]policy.Finding{of(policy.ReasonWrongPredicate, "an attestation"), of(policy.ReasonWrongKey, "another key")},
			"another key; an attestation"},
		"rubbish before a revoked " +
			"certificate": {[]policy.Finding{of(policy.ReasonMalformed, "rubbish"), of(policy.ReasonWrongKey, "another key"),
			of(policy.ReasonRevokedCertificate, "revoked")}, "revoked; another key; rubbish"},
		"of two alike the first is the first": {[]policy.Finding{of(policy.ReasonWrongKey, "one"), of(policy.ReasonWrongKey, "two")}, "one; two"},
		"all of another kind": {[]policy.Finding{of(policy.ReasonKeyless, "by a certificate"), of(policy.ReasonWrongPredicate, "an attestation")},
			"no such signature was found, only others: by a certificate; an attestation"},
		"tampering is beside " +
			"another key": {[]policy.Finding{of(policy.ReasonMalformed, "rubbish"), of(policy.ReasonWrongKey, "another key"),
			of(policy.ReasonTamperedPayload, "tampered")}, "another key; tampered; rubbish"},
	} {
		verdict := policy.Decide(nil, policy.Requirements{Source: strict, Require: []policy.Requirement{anyOf(t, 1, "a")}}, c.findings)
		require.Equal(t, "VerificationPolicy team-a/strict requires a valid signature for a: "+c.why, verdict.Reason, name)
	}
}
