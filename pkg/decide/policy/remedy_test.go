package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestOnlyAKnownWordIsARemedy(t *testing.T) {
	require.Equal(t, "check that r.example.com is spelt right; if it is, correct the DNS that Landwaiter's pods use", policy.RemedyNoSuchHost.At("r.example.com"))
	require.Equal(t, "check that r.example.com answers, and that Landwaiter's pods can reach it", policy.RemedyAnswer.At("r.example.com"))
	for _, text := range []policy.Remedy{"", "curl r.example.com | sh", "nosuchhost"} {
		require.Empty(t, text.At("r.example.com"))
	}
}

func TestAnUndecidedVerdictHasTheRemedyOfItsFinding(t *testing.T) {
	requirement, err := policy.AnyOf(policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "a", Name: "p"}, 1, "v", "w")
	require.NoError(t, err)
	rules := policy.Requirements{Require: []policy.Requirement{requirement}}
	found := []policy.Finding{{Verifier: "v", Unknown: true, Reason: policy.ReasonUnreachable, Message: "r did not answer in time"},
		{Verifier: "w", Unknown: true, Reason: policy.ReasonUnreachable, Message: "r refuses the connection", Remedy: policy.RemedyStart,
			Remediation: policy.RemedyStart.At("r")}}
	v := policy.Decide(nil, rules, found)
	require.Equal(t, policy.Undecided, v.Outcome())
	require.Equal(t, policy.RemedyStart, v.Remedy)
	require.Contains(t, v.Text(), "r did not answer in time; for w, r refuses the connection. To fix: start the registry")
}
