package notation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	corex509 "github.com/notaryproject/notation-core-go/x509"
	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// examine verifies an envelope. What makes the library panic proves nothing.
func (c *Checker) examine(ctx context.Context, subject verify.Subject, mediaType string, envelope []byte, now time.Time) (finding policy.Finding) {
	defer func() {
		if recover() != nil {
			finding = malformed("the signature envelope cannot be processed")
		}
	}()
	chain, refused := presented(mediaType, envelope)
	if refused.Reason != "" {
		return refused
	}
	if !c.anchors.contain(chain) {
		// Before any cryptography: strangers' signatures cost next to nothing.
		return c.untrustedCertificate()
	}
	stamped := c.stamped != nil && (!c.afterExpiry || outOfTime(chain, now).Reason == policy.ReasonExpiredCertificate)
	library := c.plain
	if stamped {
		library = c.stamped
	}
	outcome, err := library.Verify(ctx, subject.Descriptor, envelope, notationgo.VerifierVerifyOptions{
		ArtifactReference:  subject.Reference.Name() + "@" + subject.Descriptor.Digest.String(),
		SignatureMediaType: mediaType,
	})
	if err != nil || outcome == nil || outcome.EnvelopeContent == nil {
		return c.rejected(outcome, subject, chain, stamped, now)
	}
	finding = c.accept(outcome, subject, stamped, now)
	if finding.Result != policy.Valid || c.revocation == nil {
		return finding
	}
	return c.unlessRevoked(ctx, outcome.EnvelopeContent.SignerInfo.CertificateChain, finding)
}

// accept is the only place that makes a Valid finding. It judges what the
// library has accepted once more, by what it does not look at: other critical
// attributes, and the time that the caller gives. Revocation comes after it.
func (c *Checker) accept(outcome *notationgo.VerificationOutcome, subject verify.Subject, stamped bool, now time.Time) policy.Finding {
	signer := outcome.EnvelopeContent.SignerInfo
	if len(signer.CertificateChain) == 0 {
		return malformed("the signature envelope has no certificates")
	}
	// Signature specification, section "Extended Attributes": a verifier must
	// reject critical attributes that it does not process.
	if slices.ContainsFunc(signer.SignedAttributes.ExtendedAttributes, func(a signature.Attribute) bool { return a.Critical }) {
		return unknownCritical()
	}
	if finding := mismatch(outcome, subject); finding.Reason != "" {
		return finding
	}
	inTime := outOfTime(signer.CertificateChain, now)
	if stamped {
		inTime = timestampFailure(outcome)
	}
	caveat := ""
	for _, check := range []struct {
		finding policy.Finding
		logged  bool
	}{
		{inTime, c.logs.timestamp},
		{expired(signer.SignedAttributes.Expiry, now), c.logs.expiry},
	} {
		switch {
		case check.finding.Reason == "":
		case check.logged:
			caveat += permitted + check.finding.Message
		default:
			return check.finding
		}
	}
	return c.valid(signer.CertificateChain[0], caveat)
}

// mismatch returns the finding that says how the signed artifact is not subject;
// its reason is empty if it is (signature specification, section "Payload").
func mismatch(outcome *notationgo.VerificationOutcome, subject verify.Subject) policy.Finding {
	var payload struct {
		TargetArtifact ocispec.Descriptor `json:"targetArtifact"`
	}
	if err := json.Unmarshal(outcome.EnvelopeContent.Payload.Content, &payload); err != nil {
		return malformed("the signed payload is not well-formed")
	}
	signed, want := payload.TargetArtifact, subject.Descriptor
	if signed.Digest != want.Digest || signed.Size != want.Size || signed.MediaType != want.MediaType {
		return wrongDigest(want.Digest, signed.Digest)
	}
	return policy.Finding{}
}

// rejected says in our words why the library did not accept an envelope. The
// library's own texts repeat what strangers wrote into the envelope.
func (c *Checker) rejected(outcome *notationgo.VerificationOutcome, subject verify.Subject, chain []*x509.Certificate, stamped bool, now time.Time) policy.Finding {
	if outcome == nil {
		return malformed("the signature envelope cannot be verified")
	}
	for _, result := range outcome.VerificationResults {
		if result.Error == nil || result.Action != trustpolicy.ActionEnforce {
			continue
		}
		switch result.Type {
		case trustpolicy.TypeIntegrity:
			return broken(result.Error, chain)
		case trustpolicy.TypeAuthenticity:
			return c.unauthentic(outcome)
		case trustpolicy.TypeExpiry:
			return orElse(expired(outcome.EnvelopeContent.SignerInfo.SignedAttributes.Expiry, now), policy.ReasonExpiredSignature, "the signature has expired")
		case trustpolicy.TypeAuthenticTimestamp:
			if stamped {
				return timestampFailure(outcome)
			}
			return orElse(outOfTime(chain, now), policy.ReasonExpiredCertificate, "a certificate of the signature is not valid now")
		case trustpolicy.TypeRevocation:
		}
		return malformed("the signature envelope cannot be verified")
	}
	if outcome.EnvelopeContent == nil {
		return malformed("the signature envelope cannot be verified")
	}
	for _, header := range verifier.VerificationPluginHeaders {
		if _, err := outcome.EnvelopeContent.SignerInfo.ExtendedAttribute(header); err == nil {
			return pluginRequired()
		}
	}
	return orElse(mismatch(outcome, subject), policy.ReasonMalformed, "the signature envelope cannot be verified")
}

// broken tells apart why an envelope has no integrity.
func broken(err error, chain []*x509.Certificate) policy.Finding {
	var integrity *signature.SignatureIntegrityError
	switch {
	case errors.As(err, &integrity):
		return tampered()
	case corex509.ValidateCodeSigningCertChain(chain, nil) != nil:
		return invalidCertificate()
	}
	return malformed("the signature envelope does not follow the signature specification")
}

// unauthentic tells apart why an envelope whose chain has a trust anchor is not
// authentic.
func (c *Checker) unauthentic(outcome *notationgo.VerificationOutcome) policy.Finding {
	signer := outcome.EnvelopeContent.SignerInfo
	if signer.SignedAttributes.SigningScheme != signature.SigningSchemeX509 {
		return c.unsupportedScheme()
	}
	if !c.anchors.contain(signer.CertificateChain) {
		return c.untrustedCertificate()
	}
	return c.untrustedIdentity(signer.CertificateChain[0])
}

// orElse returns finding, or one with the given reason where finding has none:
// the library's clock and now may differ.
func orElse(finding policy.Finding, reason policy.Reason, message string) policy.Finding {
	if finding.Reason == "" {
		return policy.Finding{Reason: reason, Message: message}
	}
	return finding
}
