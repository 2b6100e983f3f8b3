package notation

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// proof is a signature that passed every check. The zero value proves nothing.
type proof struct {
	leaf *x509.Certificate // of the signer
	job  signerJob         // of AWS Signer
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
	if p.job.profile != "" {
		message += " for signing profile " + p.job.profileVersion
	}
	for _, err := range p.permitted {
		message += "; the verifier is permissive: " + err.Error()
	}
	found := policy.Finding{
		Result:  policy.Valid,
		Signer:  identityOf(p.leaf),
		Message: message,
		Extensions: map[string]any{
			"Issuer":         p.leaf.Issuer.String(),
			"SN":             p.leaf.Subject.String(),
			"keyFingerprint": fingerprintOf(p.leaf),
		},
	}
	if p.job.profile != "" {
		// All customers of AWS share one subject, so the profile is the signer.
		found.Signer = p.job.profile
		found.Extensions["signingProfileVersion"], found.Extensions["signingJob"] = p.job.profileVersion, p.job.job
	}
	return found
}

// identityOf names a signer as a trusted identity would: by the attributes of its subject,
// in an order of ours, because notation compares them in any order. A certificate that is
// renewed, or a second one, is the same signer. One without a subject is named by its key.
func identityOf(leaf *x509.Certificate) string {
	if len(leaf.Subject.Names) == 0 {
		return fingerprintOf(leaf)
	}
	var attributes []string
	for _, attribute := range leaf.Subject.Names {
		attributes = append(attributes, pkix.RDNSequence{{attribute}}.String())
	}
	slices.Sort(attributes)
	return subjectPrefix + strings.Join(attributes, ",")
}

// fingerprintOf returns the hash of a certificate's public key.
func fingerprintOf(leaf *x509.Certificate) string {
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
