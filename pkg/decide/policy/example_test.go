package policy_test

import (
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func ExampleDecide() {
	source := policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "signed"}
	signed, err := policy.AnyOf(source, 1, "release")
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := policy.Requirements{Source: source, Require: []policy.Requirement{signed}}

	// Whoever verified a signature has a proof; a finding that is written down proves nothing.
	proven := policy.NewProof("sha256:1f2e3d", "signature verified", nil).Finding()
	proven.Verifier, proven.Source = "release", policy.ObjectRef{Kind: "Verifier", Namespace: "team-a", Name: "release"}
	claimed := policy.Finding{Verifier: "release", Reason: policy.ReasonWrongKey, Message: "no trusted key verifies the signature"}

	for _, found := range []policy.Finding{proven, claimed} {
		verdict := policy.Decide(nil, rules, []policy.Finding{found})
		fmt.Println(verdict.Outcome(), verdict.Reason)
	}
	// Output:
	// allowed VerificationPolicy team-a/signed is satisfied: signature verified by Verifier team-a/release
	// denied VerificationPolicy team-a/signed requires a valid signature for release: no trusted key verifies the signature
}
