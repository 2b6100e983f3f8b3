package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestARequirementForMoreSignersThanAreTrustedSendsNobodyToSign(t *testing.T) {
	trusting := func(name string, signers ...string) *verify.Verifier {
		v := verifier(t, name, "k1")
		v.Signers, v.Command = signers, "cosign sign --key KEY"
		return v
	}
	five := verify.Requirement{AnyOf: []string{"a"}, AtLeast: 5}
	for name, c := range map[string]struct {
		demand    verify.Requirement
		verifiers []*verify.Verifier
		beyond    bool
	}{
		"one key": {five, []*verify.Verifier{trusting("a", "k1")}, true},
		"one key twice": {verify.Requirement{AnyOf: []string{"a", "b"}, AtLeast: 2},
			[]*verify.Verifier{trusting("a", "k1"), trusting("b", "k1")}, true},
		"two keys": {verify.Requirement{AnyOf: []string{"a", "b"}, AtLeast: 2},
			[]*verify.Verifier{trusting("a", "k1"), trusting("b", "k2")}, false},
		"an unbounded number":         {five, []*verify.Verifier{trusting("a")}, false},
		"an unbounded one among them": {verify.Requirement{AllOf: []string{"a", "b"}, AtLeast: 5}, []*verify.Verifier{trusting("a", "k1"), trusting("b")}, false},
		"a type":                      {verify.Requirement{Types: []string{"Cosign"}, AtLeast: 2}, []*verify.Verifier{trusting("a", "k1")}, true},
		"an expression": {verify.Requirement{Condition: func(func() error, []policy.Finding) (bool, error) { return true, nil }, AtLeast: 2},
			[]*verify.Verifier{trusting("a", "k1")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry()
			of := config(tier(t, r, c.demand, c.verifiers...))
			image := ref(t, "r.example.com/app@"+appDigest.String())
			outcome, known := of.Foreseen(image)
			require.Equal(t, c.beyond, known && outcome == policy.Denied)
			verdict := engine(newCache(), verify.Options{}).Verify(t.Context(), of, image).Verdict
			require.Equal(t, policy.Denied, verdict.Outcome())
			if !c.beyond {
				require.NotContains(t, verdict.Reason, "can never be met")
				return
			}
			require.Contains(t, verdict.Reason, "that can never be met, because only 1 signer is trusted for it")
			require.Contains(t, verdict.Remediation, "lower atLeast of that rule")
			require.Contains(t, verdict.Remediation, "no further signature of the image helps")
			require.Empty(t, verdict.Command)
		})
	}
}
