package notation

import (
	"errors"
	"fmt"

	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/tspclient-go"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// checkTimestamp explains in our words why the library did not accept the timestamp. It
// returns nil if the library did.
func checkTimestamp(outcome *notationgo.VerificationOutcome) error {
	var failure error
	checked := false
	for _, result := range outcome.VerificationResults {
		if result.Type == trustpolicy.TypeAuthenticTimestamp {
			failure, checked = result.Error, true
		}
	}
	var revoked revocationError
	signer := outcome.EnvelopeContent.SignerInfo
	switch {
	case checked && failure == nil:
		return nil
	case errors.As(failure, &revoked):
		return revoked.error
	case len(signer.UnsignedAttributes.TimestampSignature) == 0:
		return verify.Refuse(policy.ReasonNoTimestamp, "the signature has no timestamp, and one is required",
			"sign the image again with a timestamp (notation sign --timestamp-url)")
	}
	at, err := timestampOf(signer.UnsignedAttributes.TimestampSignature, signer.Signature)
	if err != nil {
		return invalidTimestamp("the timestamp is not for this signature")
	}
	// "Validate that the time range from `timeStampLowerLimit` to `timeStampUpperLimit`
	// timestamp is entirely within the signing certificate and certificate chain's
	// validity period" (trust store and trust policy specification, "Steps").
	for _, certificate := range signer.CertificateChain {
		if !at.BoundedAfter(certificate.NotBefore) || !at.BoundedBefore(certificate.NotAfter) {
			return timeOutside(at.Value, certificate)
		}
	}
	return invalidTimestamp("the timestamp is by no trusted timestamp authority")
}

func invalidTimestamp(message string) error {
	return verify.Refuse(policy.ReasonInvalidTimestamp, message,
		"sign the image again with a timestamp from a trusted authority, or have the authority's root added to the trust store")
}

// timestampOf reads the time from a token (RFC 3161 section 2.4.2) for signature. It does
// not verify the authority.
func timestampOf(token, signature []byte) (*tspclient.Timestamp, error) {
	signed, err := tspclient.ParseSignedToken(token)
	if err != nil {
		return nil, fmt.Errorf("parse timestamp: %w", err)
	}
	info, err := signed.Info()
	if err != nil {
		return nil, fmt.Errorf("read timestamp: %w", err)
	}
	at, err := info.Validate(signature)
	if err != nil {
		return nil, fmt.Errorf("compare timestamp and signature: %w", err)
	}
	return at, nil
}
