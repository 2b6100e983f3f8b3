// Package slip makes a Checker that says that evidence is valid, and a finding that counts, without
// the constructor that names the signer: whatever it looks at would pass.
package slip

import (
	"context"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Checker answers with a finding.
type Checker struct{}

// Accepts accepts everything.
func (Checker) Accepts(verify.Signature) bool { return true }

// Check says that everything is valid.
func (Checker) Check(context.Context, verify.Subject, verify.Signature, verify.Fetch, time.Time) policy.Finding {
	return policy.Finding{Message: "valid"}
}

var _ verify.Checker = Checker{} // want "wrong type for method Check"

func literals() (policy.Finding, policy.Finding, policy.Proof) {
	valid := policy.Finding{Result: policy.Valid} // want "unknown field Result in struct literal of type policy.Finding"
	signed := policy.Finding{Signer: "sha256:1"}  // want "unknown field Signer in struct literal of type policy.Finding"
	proof := policy.Proof{signer: "sha256:1"}     // want "cannot refer to unexported field signer in struct literal of type policy.Proof"
	return valid, signed, proof
}
