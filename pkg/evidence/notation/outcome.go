package notation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/signature"
	corex509 "github.com/notaryproject/notation-core-go/x509"
	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// verified is a signature that passed every check. The zero value proves nothing.
type verified struct {
	leaf *x509.Certificate // of the signer
	job  signerJob         // of AWS Signer
	// permitted holds the failures of checks that the verifier does not enforce.
	permitted []error
	until     time.Time // when a check of the time may start to fail; zero is never
}

// examine verifies an envelope. An envelope that makes the library panic is malformed.
func (c *Checker) examine(ctx context.Context, subject verify.Subject, mediaType string, envelope []byte,
	now time.Time) (found verified, err error) {
	defer func() {
		if recover() != nil {
			found, err = verified{}, malformed("the signature envelope cannot be processed")
		}
	}()
	if err := verify.Step(ctx); err != nil {
		return verified{}, err
	}
	chain, timestamp, err := presented(mediaType, envelope)
	if err != nil {
		return verified{}, err
	}
	if !c.anchors.contain(chain) && !c.signing.contain(chain) {
		// This check precedes any cryptography, so that untrusted signatures are cheap.
		return verified{}, c.untrustedCertificate()
	}
	stamped := c.stamped != nil && (!c.afterExpiry || verify.HasReason(checkValidity(chain, now), policy.ReasonExpiredCertificate))
	library := c.plain
	var unread error // why the timestamp is not read
	if stamped {
		if unread = checkToken(timestamp); unread != nil {
			stamped = false
		} else {
			library = c.stamped
		}
	}
	if unread != nil && !c.logs.timestamp && len(c.signing) == 0 {
		return verified{}, unread
	}
	stamps := &resting{}
	outcome, err := library.Verify(context.WithValue(ctx, restingKey{}, stamps), subject.Descriptor, envelope,
		notationgo.VerifierVerifyOptions{
			ArtifactReference:  subject.Reference.Name() + "@" + subject.Descriptor.Digest.String(),
			SignatureMediaType: mediaType,
		})
	if ctx.Err() != nil {
		return verified{}, ctx.Err()
	}
	if err != nil || outcome == nil || outcome.EnvelopeContent == nil {
		return verified{}, orElse(c.rejection(outcome, subject, chain, stamped, now), policy.ReasonMalformed, unverifiable)
	}
	if found, err = c.accept(outcome, subject, stamped, now); err != nil {
		return verified{}, err
	}
	found.until = policy.Sooner(found.until, stamps.until)
	signer := outcome.EnvelopeContent.SignerInfo
	if signer.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority {
		unread = nil // only the authority's own time counts
	}
	if found, err = found.unless(unread, c.logs.timestamp); err != nil {
		return verified{}, err
	}
	return c.unlessRevoked(ctx, found, signer, authenticTime(outcome, stamped, now))
}

// authenticTime returns when a signature was made at the latest, if a signing authority or a timestamp vouches for
// it, else the zero time: "authentic signing time" (trust store and trust policy specification, "Certificate
// Revocation Evaluation"). notation-go only uses the time of a signing authority.
func authenticTime(outcome *notationgo.VerificationOutcome, stamped bool, now time.Time) time.Time {
	signer := outcome.EnvelopeContent.SignerInfo
	authority := signer.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority
	if !authority && !stamped || inTime(outcome, stamped, now) != nil {
		return time.Time{}
	}
	if authority {
		return signer.SignedAttributes.SigningTime
	}
	at, err := timestampOf(signer.UnsignedAttributes.TimestampSignature, signer.Signature)
	if err != nil {
		return time.Time{}
	}
	return at.Value.Add(at.Accuracy)
}

// unlessRevoked returns p unless a certificate, or the signature itself, is revoked.
func (c *Checker) unlessRevoked(ctx context.Context, p verified, signer signature.SignerInfo, at time.Time) (_ verified, err error) {
	if c.revocation != nil {
		until, failure := c.checkRevocation(ctx, signer.CertificateChain, at, purpose.CodeSigning)
		if p, err = p.unless(failure, c.logs.revocation); err != nil {
			return verified{}, err
		}
		if !c.logs.revocation {
			p.until = policy.Sooner(p.until, until)
		}
	}
	if c.revoked != nil {
		return p.unless(c.checkAWSRevocation(ctx, p.job, signer), c.logs.revocation)
	}
	return p, nil
}

// accept does the checks that the library does not: attributes, the signed artifact, and the
// caller's time. Revocation is checked afterwards.
func (c *Checker) accept(outcome *notationgo.VerificationOutcome, subject verify.Subject, stamped bool, now time.Time) (verified, error) {
	signer := outcome.EnvelopeContent.SignerInfo
	if len(signer.CertificateChain) == 0 {
		return verified{}, malformed("the signature envelope has no certificates")
	}
	job, err := c.checkAttributes(signer)
	if err != nil {
		return verified{}, err
	}
	if err := checkArtifact(outcome, subject); err != nil {
		return verified{}, err
	}
	proven, err := verified{leaf: signer.CertificateChain[0], job: job}.unless(inTime(outcome, stamped, now), c.logs.timestamp)
	if err != nil {
		return verified{}, err
	}
	if proven, err = proven.unless(checkExpiry(signer.SignedAttributes.Expiry, now), c.logs.expiry); err != nil {
		return verified{}, err
	}
	proven.until = c.until(signer, stamped)
	return proven, nil
}

// until returns when the caller's time ends the validity of the signature and, if nobody vouches for the time of
// signing, of its certificates.
func (c *Checker) until(signer signature.SignerInfo, stamped bool) (end time.Time) {
	if !c.logs.expiry {
		end = signer.SignedAttributes.Expiry
	}
	if stamped || c.logs.timestamp || signer.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority {
		return end
	}
	for _, certificate := range signer.CertificateChain {
		end = policy.Sooner(end, certificate.NotAfter)
	}
	return end
}

// inTime checks the time of signing: the time that the authority states, the timestamp, or
// now.
func inTime(outcome *notationgo.VerificationOutcome, stamped bool, now time.Time) error {
	signer := outcome.EnvelopeContent.SignerInfo
	switch {
	case signer.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority:
		return checkStatedTime(signer.CertificateChain, signer.SignedAttributes.SigningTime, now)
	case stamped:
		return checkTimestamp(outcome)
	}
	return checkValidity(signer.CertificateChain, now)
}

// unless returns p if a check did not fail, or if its failure is only logged. Then p
// records the failure.
func (p verified) unless(failure error, logged bool) (verified, error) {
	switch {
	case failure == nil:
		return p, nil
	case logged:
		p.permitted = append(slices.Clone(p.permitted), failure)
		return p, nil
	}
	return verified{}, failure
}

// proof is the last step of every check: it returns the proof of v's signer.
func (v verified) proof() policy.Proof {
	if v.leaf == nil {
		return policy.Proof{}
	}
	message := fmt.Sprintf("signature verified by certificate %q", shown(v.leaf.Subject.String()))
	extensions := map[string]any{"Issuer": v.leaf.Issuer.String(), "SN": v.leaf.Subject.String(), "keyFingerprint": fingerprintOf(v.leaf)}
	signer := identityOf(v.leaf)
	if v.job.profile != "" {
		// All customers of AWS share one subject, so the profile is the signer.
		signer = v.job.profile
		extensions["signingProfileVersion"], extensions["signingJob"] = v.job.profileVersion, v.job.job
		message += " for signing profile " + v.job.profileVersion
	}
	for _, err := range v.permitted {
		message += "; the verifier is permissive: " + err.Error()
	}
	return policy.NewProof(signer, message, extensions).Until(v.until)
}

// checkArtifact refuses an envelope whose signed artifact is not subject. "Descriptor
// MUST contain `mediaType`, `digest`, and `size` fields" (signature specification,
// "Payload"), so all three are compared.
func checkArtifact(outcome *notationgo.VerificationOutcome, subject verify.Subject) error {
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
	return nil
}

// unverifiable is the message for an envelope that the library rejects without a reason.
const unverifiable = "the signature envelope cannot be verified"

// rejection explains in our words why the library did not accept an envelope. The library's
// own messages quote content of the envelope.
func (c *Checker) rejection(outcome *notationgo.VerificationOutcome, subject verify.Subject, chain []*x509.Certificate, stamped bool,
	now time.Time) error {
	if outcome == nil {
		return malformed(unverifiable)
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
			return orElse(checkExpiry(outcome.EnvelopeContent.SignerInfo.SignedAttributes.Expiry, now), policy.ReasonExpiredSignature,
				"the signature has expired")
		case trustpolicy.TypeAuthenticTimestamp:
			return orElse(inTime(outcome, stamped, now), policy.ReasonInvalidTimestamp, "the time of the signature cannot be verified")
		case trustpolicy.TypeRevocation:
		}
		return malformed(unverifiable)
	}
	if outcome.EnvelopeContent == nil {
		return malformed(unverifiable)
	}
	if err := c.pluginRequired(outcome.EnvelopeContent.SignerInfo); err != nil {
		return err
	}
	return orElse(checkArtifact(outcome, subject), policy.ReasonMalformed, unverifiable)
}

// broken explains why the integrity check failed.
func broken(err error, chain []*x509.Certificate) error {
	var integrity *signature.SignatureIntegrityError
	switch {
	case errors.As(err, &integrity):
		return tampered()
	}
	if err := corex509.ValidateCodeSigningCertChain(chain, nil); err != nil {
		return invalidCertificate(err)
	}
	switch {
	case strings.Contains(err.Error(), "igningTime"): // signingTime or authenticSigningTime
		return malformed("the signature does not state its time as its signing scheme requires")
	}
	return malformed("the signature envelope does not follow the signature specification")
}

// unauthentic explains why the authenticity check failed for a chain with a trust
// anchor.
func (c *Checker) unauthentic(outcome *notationgo.VerificationOutcome) error {
	signer := outcome.EnvelopeContent.SignerInfo
	trusted, others := c.anchors, c.signing
	if signer.SignedAttributes.SigningScheme == signature.SigningSchemeX509SigningAuthority {
		trusted, others = c.signing, c.anchors
	}
	switch {
	case trusted.contain(signer.CertificateChain):
		return c.untrustedIdentity(signer.CertificateChain[0])
	case others.contain(signer.CertificateChain):
		return c.otherScheme(signer.SignedAttributes.SigningScheme)
	}
	return c.untrustedCertificate()
}

// orElse returns err, or a refusal with the given reason if err is nil. The library may
// reject evidence that our own check accepts, because its clock and now may differ.
func orElse(err error, reason policy.Reason, message string) error {
	if err == nil {
		return verify.Refuse(reason, message, "sign the image again with an unmodified notation")
	}
	return err
}
