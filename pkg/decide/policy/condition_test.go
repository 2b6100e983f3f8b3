package policy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestConditionsSeeWhatIsProvenAndNothingElse(t *testing.T) {
	valid := func(verifier, signer string) policy.Finding { return finding(verifier, policy.Valid, signer, "ok") }
	unread := finding("b", policy.Invalid, "", "only the first 32 signatures are tried")
	unread.Incomplete = true
	absent := func(_ func() error, proven []policy.Finding) (bool, error) { return len(proven) < 2, nil }
	invalid, unknown := finding("a", policy.Invalid, "", "wrong key"), finding("a", policy.Unknown, "", "registry answered 503")
	always := func(func() error, []policy.Finding) (bool, error) { return true, nil }
	never := func(func() error, []policy.Finding) (bool, error) { return false, nil }
	fails := func(func() error, []policy.Finding) (bool, error) { return true, errors.New("no such key") }
	late := func(func() error, []policy.Finding) (bool, error) {
		return true, fmt.Errorf("evaluate: %w", context.DeadlineExceeded)
	}
	two := func(_ func() error, proven []policy.Finding) (bool, error) { return len(proven) == 2, nil }
	for name, c := range map[string]struct {
		condition policy.Condition
		atLeast   int
		findings  []policy.Finding
		outcome   policy.Outcome
		reason    string
	}{
		"it holds":                       {always, 1, []policy.Finding{valid("a", "k1")}, policy.Allowed, "is satisfied"},
		"nothing is proven":              {always, 1, nil, policy.Denied, "no signature was found"},
		"nothing valid is proven":        {always, 1, []policy.Finding{invalid}, policy.Denied, "wrong key"},
		"a valid finding without signer": {always, 1, []policy.Finding{valid("a", "")}, policy.Denied, ""},
		"another verifier's finding":     {always, 1, []policy.Finding{valid("z", "k1")}, policy.Denied, ""},
		"it does not hold": {never, 1, []policy.Finding{valid("a", "k1")}, policy.Denied,
			"the expression of VerificationPolicy team-a/strict does not hold for what was found: a valid signature for a"},
		"it does not hold, and something nearly counted": {never, 1, []policy.Finding{valid("a", "k1"), finding("b", policy.Invalid, "", "another builder")},
			policy.Denied, "a valid signature for a; for b, another builder"},
		"it fails, and says true":               {fails, 1, []policy.Finding{valid("a", "k1")}, policy.Denied, "no such key"},
		"only the valid are seen":               {two, 1, []policy.Finding{valid("a", "k1"), invalid, valid("b", "k2"), valid("z", "k3")}, policy.Allowed, ""},
		"it had no time":                        {late, 1, []policy.Finding{valid("a", "k1")}, policy.Undecided, "was not evaluated in time"},
		"two signers where two are needed":      {always, 2, []policy.Finding{valid("a", "k1"), valid("b", "k2")}, policy.Allowed, ""},
		"one signer where two are needed":       {always, 2, []policy.Finding{valid("a", "k1"), valid("b", "k1")}, policy.Denied, "2 different signers"},
		"something is unknown":                  {always, 1, []policy.Finding{valid("a", "k1"), unknown}, policy.Undecided, "503"},
		"evidence was left unread":              {absent, 1, []policy.Finding{valid("a", "k1"), unread}, policy.Denied, "only the first 32 signatures"},
		"evidence of others was left unread":    {absent, 1, []policy.Finding{valid("a", "k1"), {Verifier: "z", Incomplete: true}}, policy.Allowed, ""},
		"something is unknown, and it is false": {never, 1, []policy.Finding{valid("a", "k1"), unknown}, policy.Undecided, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			requirement, err := policy.Matching(strict, c.atLeast, c.condition, "a", "b")
			require.NoError(t, err)
			rules := policy.Requirements{Source: strict, Require: []policy.Requirement{requirement}}
			verdict := policy.Decide(nil, rules, c.findings)
			require.Equal(t, c.outcome.String(), verdict.Outcome().String(), verdict.Reason)
			require.Contains(t, verdict.Reason, c.reason)
			require.NotEmpty(t, verdict.Reason)
			require.False(t, settled(rules, c.findings), "more may be found")
		})
	}
	_, err := policy.Matching(strict, 1, nil, "a")
	require.Error(t, err)
	_, err = policy.Matching(strict, 1, always)
	require.Error(t, err)
	_, err = policy.Matching(strict, 0, always, "a")
	require.Error(t, err)
}

func TestWarningsAllowAndSayWhy(t *testing.T) {
	denied := policy.Verdict{Policy: strict, Reason: "not signed"}
	warned := denied.Warn()
	require.Equal(t, judged.As(policy.Allowed, policy.Verdict{Policy: strict, Warning: "not signed", Unverified: true,
		Reason: "VerificationPolicy team-a/strict only warns: not signed"}), warned)
	require.Equal(t, warned, warned.Warn())
	undecided := judged.As(policy.Undecided, policy.Verdict{Policy: strict, Reason: "503"})
	require.True(t, undecided.Warn().Doubtful)
	allowed := judged.As(policy.Allowed, policy.Verdict{Policy: strict, Reason: "signed"})
	require.Equal(t, allowed, allowed.Warn())
}

func TestExpressionsSeeTheFactsOfAFinding(t *testing.T) {
	f := finding("a", policy.Valid, "k1", "ok")
	f.Type, f.Digest, f.ArtifactType = "Cosign", "sha256:1", "t"
	f.Extensions = map[string]any{"SN": "CN=x", "signatures": []map[string]any{{"issuer": "i"}}}
	require.Equal(t, map[string]any{"verifier": "a", "type": "Cosign", "signer": "k1", "digest": "sha256:1", "artifactType": "t",
		"facts": map[string]any{"SN": "CN=x", "issuer": "i"}}, f.Facts())
	require.Equal(t, map[string]any{}, policy.Finding{}.Facts()["facts"])
}
