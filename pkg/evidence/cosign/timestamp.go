package cosign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// checkTimestamps fails if any trusted timestamp falls outside the validity of the
// certificate chain. sigstore-go checks only the first timestamp of each authority.
// Timestamps of authorities that are not trusted are ignored.
func (k *identities) checkTimestamps(ctx context.Context, parsed *bundle.Bundle) error {
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
	// crypto/x509 does not support every kind of subject alternative name. The library
	// has read them.
	leaf.UnhandledCriticalExtensions = slices.DeleteFunc(leaf.UnhandledCriticalExtensions, cryptoutils.SANOID.Equal)
	for _, timestamp := range timestamps {
		for _, authority := range k.root.TimestampingAuthorities() {
			if err := verify.Step(ctx); err != nil {
				return err
			}
			at, err := authority.Verify(timestamp, signed.Signature())
			if err != nil {
				continue // of another authority
			}
			if _, err := bundleverify.VerifyLeafCertificate(at.Time, leaf, k.root); err != nil {
				return fmt.Errorf("the certificate does not hold at %s, the time of one of the timestamps: %w", at.Time.UTC().Format(time.RFC3339), err)
			}
		}
	}
	return nil
}
