package cosign

import (
	"fmt"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// timely says no if a trusted authority vouches for a time at which the certificate,
// or the way from it to the root, did not hold. Of several timestamps by one authority
// the library looks at the first only; those of authorities that nobody trusts say
// nothing.
func (k *identities) timely(parsed *bundle.Bundle) error {
	timestamps, err := parsed.Timestamps()
	if err != nil || len(timestamps) < 2 {
		return err
	}
	content, err := parsed.VerificationContent()
	if err != nil {
		return err
	}
	signed, err := parsed.SignatureContent()
	if err != nil {
		return err
	}
	leaf := content.Certificate()
	// crypto/x509 does not know all kinds of names, which the library has read.
	leaf.UnhandledCriticalExtensions = slices.DeleteFunc(leaf.UnhandledCriticalExtensions, cryptoutils.SANOID.Equal)
	for _, timestamp := range timestamps {
		for _, authority := range k.root.TimestampingAuthorities() {
			at, err := authority.Verify(timestamp, signed.Signature())
			if err != nil {
				continue // another's
			}
			if _, err := bundleverify.VerifyLeafCertificate(at.Time, leaf, k.root); err != nil {
				return fmt.Errorf("the certificate does not hold at %s, the time of one of the timestamps: %w", at.Time.UTC().Format(time.RFC3339), err)
			}
		}
	}
	return nil
}
