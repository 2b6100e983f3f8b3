package notation

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func (c *Checker) valid(leaf *x509.Certificate, caveat string) policy.Finding {
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return policy.Finding{
		Result:  policy.Valid,
		Signer:  "sha256:" + hex.EncodeToString(sum[:]),
		Message: fmt.Sprintf("signature verified by certificate %q%s", shown(leaf.Subject.String()), caveat),
		Extensions: map[string]any{
			"Issuer": leaf.Issuer.String(),
			"SN":     leaf.Subject.String(),
		},
	}
}

func fetchFailure(err error) policy.Finding {
	finding := verify.FindingOf(err)
	if finding.Reason == policy.ReasonContentMismatch {
		finding.Reason = policy.ReasonTamperedEnvelope
	}
	return finding
}

func malformed(message string) policy.Finding {
	return policy.Finding{
		Reason: policy.ReasonMalformed, Message: message,
		Remediation: "sign the image again with an unmodified notation",
	}
}

func limitExceeded(what string, limit int) policy.Finding {
	return policy.Finding{Reason: policy.ReasonLimitExceeded, Message: fmt.Sprintf("%s, the limit is %d", what, limit)}
}

func (c *Checker) untrustedCertificate() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonUntrustedCertificate,
		Message:     fmt.Sprintf("the certificate chain of the signature does not lead to a trust store of %s", c.name),
		Remediation: fmt.Sprintf("sign with a certificate that a trust store of %s has issued, or have the issuer's certificate added there", c.name),
	}
}

func (c *Checker) unsupportedScheme() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonUntrustedCertificate,
		Message:     fmt.Sprintf("the signature is of a signing authority, %s trusts certificate authorities only", c.name),
		Remediation: "sign with the signing scheme notary.x509, which is notation's default",
	}
}

func invalidCertificate() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonInvalidCertificate,
		Message:     "the certificate chain of the signature is broken, or its certificates are not for signing images",
		Remediation: "sign with a code-signing certificate and give its whole chain, the root last",
	}
}

// untrustedIdentity repeats the subject: an authority that is trusted has
// certified it.
func (c *Checker) untrustedIdentity(leaf *x509.Certificate) policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonUntrustedIdentity,
		Message:     fmt.Sprintf("the signing certificate %q is none of the trusted identities of %s", shown(leaf.Subject.String()), c.name),
		Remediation: fmt.Sprintf("sign with a trusted identity, or have %q added to %s", subjectPrefix+shown(leaf.Subject.String()), c.name),
	}
}

func tampered() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonTamperedEnvelope,
		Message:     "the signature does not match its content",
		Remediation: "sign the image again, and find out who changed the signature in the registry",
	}
}

func unknownCritical() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonUnknownCriticalAttribute,
		Message:     "the signature demands that an attribute is understood which is not known here",
		Remediation: "sign the image without extended critical attributes",
	}
}

func pluginRequired() policy.Finding {
	return policy.Finding{
		Reason:      policy.ReasonPluginRequired,
		Message:     "the signature demands a verification plugin, and there are none",
		Remediation: "sign the image with a key that needs no verification plugin",
	}
}

func wrongDigest(want, signed digest.Digest) policy.Finding {
	finding := policy.Finding{
		Reason:      policy.ReasonWrongDigest,
		Message:     fmt.Sprintf("the signature is for another artifact, not for %s", want),
		Remediation: "sign this image by its digest: signatures of other images or platforms do not carry over",
	}
	switch {
	case signed == want:
		finding.Message = fmt.Sprintf("the signature names %s with another size or media type than it has", want)
	case signed.Validate() == nil:
		finding.Message = fmt.Sprintf("the signature is for another artifact, %s, not for %s", signed, want)
	}
	return finding
}

// outOfTime returns the finding about the first certificate that is not valid
// at now; its reason is empty if all are.
func outOfTime(chain []*x509.Certificate, now time.Time) policy.Finding {
	for _, certificate := range chain {
		name := shown(certificate.Subject.String())
		switch {
		case now.After(certificate.NotAfter):
			return policy.Finding{
				Reason:      policy.ReasonExpiredCertificate,
				Message:     fmt.Sprintf("certificate %q expired at %s", name, certificate.NotAfter.UTC().Format(time.RFC3339)),
				Remediation: "sign the image again with a certificate that is still valid",
			}
		case now.Before(certificate.NotBefore):
			return policy.Finding{
				Reason:      policy.ReasonFutureCertificate,
				Message:     fmt.Sprintf("certificate %q is not valid before %s", name, certificate.NotBefore.UTC().Format(time.RFC3339)),
				Remediation: "compare the clocks of this service and of the certificate's issuer",
			}
		}
	}
	return policy.Finding{}
}

// expired returns the finding about a signature whose time is over at now; its
// reason is empty if it is not. The zero expiry is none.
func expired(expiry, now time.Time) policy.Finding {
	if expiry.IsZero() || now.Before(expiry) {
		return policy.Finding{}
	}
	return policy.Finding{
		Reason:      policy.ReasonExpiredSignature,
		Message:     fmt.Sprintf("the signature expired at %s", expiry.UTC().Format(time.RFC3339)),
		Remediation: "sign the image again",
	}
}

func shown(name string) string {
	if len(name) > maxNameShown {
		return name[:maxNameShown] + "…"
	}
	return name
}
