package notation

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// proof is a signature that passed every check. The zero value proves nothing.
type proof struct {
	leaf *x509.Certificate // of the signer
	// permitted holds the failures of checks that the verifier does not enforce.
	permitted []error
}

// valid makes the finding of a proof. It is the only maker of Valid findings, and
// refuses a proof without a signer.
func valid(p proof) policy.Finding {
	if p.leaf == nil {
		return verify.FindingOf(nil)
	}
	message := fmt.Sprintf("signature verified by certificate %q", shown(p.leaf.Subject.String()))
	for _, err := range p.permitted {
		message += "; the verifier is permissive: " + err.Error()
	}
	sum := sha256.Sum256(p.leaf.RawSubjectPublicKeyInfo)
	return policy.Finding{
		Result:  policy.Valid,
		Signer:  "sha256:" + hex.EncodeToString(sum[:]),
		Message: message,
		Extensions: map[string]any{
			"Issuer": p.leaf.Issuer.String(),
			"SN":     p.leaf.Subject.String(),
		},
	}
}
