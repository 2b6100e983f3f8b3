package notation

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func malformed(message string) error {
	return verify.Refuse(policy.ReasonMalformed, message,
		"sign the image again with an unmodified notation")
}

func pastLimit(message string) error {
	return verify.Refuse(policy.ReasonLimitExceeded, message, "sign the image again with an unmodified notation")
}

func (c *Checker) untrustedCertificate() error {
	return verify.Refuse(policy.ReasonUntrustedCertificate,
		fmt.Sprintf("the certificate chain of the signature does not lead to a trust store of %s", c.name),
		fmt.Sprintf("sign with a certificate that a trust store of %s has issued", c.name)+c.ifKnown("the issuer", "its certificate added there"))
}

// ifKnown is advice to trust somebody else too. A ClusterVerifier gives none: whom it trusts counts for all teams.
func (c *Checker) ifKnown(whom, have string) string {
	if strings.HasPrefix(c.name, "Cluster") {
		return ""
	}
	return "; only if you know " + whom + ", have " + have
}

// otherScheme refuses a signature whose certificate is trusted for the other scheme only.
func (c *Checker) otherScheme(scheme signature.SigningScheme) error {
	if scheme == signature.SigningSchemeX509SigningAuthority {
		return verify.Refuse(policy.ReasonUntrustedCertificate,
			fmt.Sprintf("the signature is by a signing authority, %s trusts its certificate for the scheme notary.x509 only", c.name),
			"sign with the signing scheme notary.x509, which is notation's default, or have the certificate added to "+
				"spec.notation.signingAuthorities")
	}
	return verify.Refuse(policy.ReasonUntrustedCertificate,
		fmt.Sprintf("the signature is of scheme notary.x509, %s trusts its certificate as a signing authority only", c.name),
		"sign with the signing scheme notary.x509.signingAuthority, or have the certificate added to spec.notation.trustStoreRefs")
}

func invalidCertificate(cause error) error {
	return verify.Refuse(policy.ReasonInvalidCertificate, "the certificate chain of the signature is broken, or its certificates are not "+
		"for signing images: "+policy.Shown(cause.Error(), maxNameShown),
		"sign with certificates that meet the Notary Project's requirements (key usage, extended key usage, basic constraints), and give the "+
			"whole chain, the root last")
}

// untrustedIdentity quotes the subject, which a trusted CA has certified.
func (c *Checker) untrustedIdentity(leaf *x509.Certificate) error {
	if cause := incomparable(leaf.Subject.String()); cause != "" {
		return verify.Refuse(policy.ReasonUntrustedIdentity,
			fmt.Sprintf("the signing certificate %q cannot be compared with trusted identities: %s", shown(leaf.Subject.String()), cause),
			`sign with a certificate whose subject has C, ST, O and no attribute twice; trustedIdentities: ["*"] would trust everyone whom `+
				`the CA certifies`)
	}
	return verify.Refuse(policy.ReasonUntrustedIdentity,
		fmt.Sprintf("the signing certificate %q is none of the trusted identities of %s", shown(leaf.Subject.String()), c.name),
		"sign with a trusted identity"+c.ifKnown("the signer", fmt.Sprintf("%q added to %s", subjectPrefix+shown(leaf.Subject.String()), c.name)))
}

// incomparable says why the library compares no trusted identity with a subject, "" if it does (Notary Project trust
// policy specification, "Trusted Identities Constraints").
func incomparable(subject string) string {
	statement := trustpolicy.TrustPolicy{Name: "one", RegistryScopes: []string{anyIdentity}, TrustStores: []string{"ca:one"},
		TrustedIdentities:     []string{subjectPrefix + subject},
		SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: trustpolicy.LevelStrict.Name}}
	err := (&trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}).Validate()
	switch {
	case err == nil:
		return ""
	case strings.Contains(subject, "=#"):
		return "it has an attribute that notation does not know, such as an e-mail address or a user ID"
	case strings.Contains(err.Error(), "multi-valued"):
		return "it has an attribute with several values"
	case strings.Contains(err.Error(), "duplicate"):
		return "it has an attribute twice"
	case strings.Contains(err.Error(), "mandatory"):
		return "it lacks one of the attributes C, ST and O"
	}
	return "notation cannot read it"
}

func tampered() error {
	return verify.Refuse(policy.ReasonTamperedEnvelope, "the signature does not match its content",
		"find out who pushed this signature to the registry, and sign the image again only if your own build made it")
}

func unknownCritical() error {
	return verify.Refuse(policy.ReasonUnknownCriticalAttribute, "the signature has a critical attribute that is not supported",
		"sign the image without extended critical attributes")
}

// pluginRequired names the plugin that a signature requires. It returns nil if it requires
// none. The name comes from a trusted signer, but is only quoted if it is known.
func (c *Checker) pluginRequired(signer signature.SignerInfo) error {
	var name signature.Attribute
	required := false
	for _, attribute := range signer.SignedAttributes.ExtendedAttributes {
		switch attribute.Key {
		case pluginHeader:
			name, required = attribute, true
		case pluginVersionHeader:
			required = true
		}
	}
	switch {
	case !required:
		return nil
	case name.Value == awsPlugin && c.profiles == nil:
		return c.awsSignerNotTrusted()
	case name.Value == awsPlugin && name.Critical:
		return verify.Refuse(policy.ReasonPluginRequired, "the signature requires a version of AWS Signer's plugin that is malformed or "+
			"newer than 1.x",
			"sign the image again with AWS Signer, or update Landwaiter")
	}
	return verify.Refuse(policy.ReasonPluginRequired, "the signature requires a verification plugin, and plugins are not supported",
		"sign the image with a key that needs no verification plugin")
}

func (c *Checker) awsSignerNotTrusted() error {
	return verify.Refuse(policy.ReasonPluginRequired, fmt.Sprintf("AWS Signer made the signature, and %s does not trust AWS Signer", c.name),
		fmt.Sprintf("sign with a certificate that %s trusts", c.name)+
			c.ifKnown("the owner of the signing profile", "it added to its spec.notation.awsSigner.profiles, and AWS's root to "+
				"spec.notation.signingAuthorities"))
}

// untrustedProfile quotes the profile, which AWS has certified.
func (c *Checker) untrustedProfile(profile string) error {
	return verify.Refuse(policy.ReasonUntrustedProfile,
		fmt.Sprintf("AWS Signer signed for the profile %s, which is none of the profiles of %s", profile, c.name),
		"sign with a trusted profile"+c.ifKnown("the owner of this one", "it added to spec.notation.awsSigner.profiles of "+c.name))
}

func invalidAttribute(name, why string) error {
	return verify.Refuse(policy.ReasonInvalidAttribute, fmt.Sprintf("the signed attribute %s %s", name, why),
		"sign the image again with AWS Signer")
}

func wrongDigest(want, signed digest.Digest) error {
	message := fmt.Sprintf("the signature is for another artifact, not for %s", want)
	switch {
	case signed == want:
		message = fmt.Sprintf("the signature names %s with another size or media type than it has", want)
	case signed.Validate() == nil:
		message = fmt.Sprintf("the signature is for another artifact, %s, not for %s", signed, want)
	}
	return verify.Refuse(policy.ReasonWrongDigest, message,
		"sign this image by its digest: signatures of other images or platforms do not carry over")
}

// checkValidity refuses a chain for its first certificate that is not valid at now. "In
// the absence of an Authentic timestamp, a signature is considered invalid if the time
// of verification is outside the signing certificate or chain's validity period" (trust
// store and trust policy specification, "Signature Verification details").
func checkValidity(chain []*x509.Certificate, now time.Time) error {
	for _, certificate := range chain {
		name := shown(certificate.Subject.String())
		switch {
		case now.After(certificate.NotAfter):
			return verify.Refuse(policy.ReasonExpiredCertificate,
				fmt.Sprintf("certificate %q expired at %s", name, certificate.NotAfter.UTC().Format(time.RFC3339)),
				"sign the image again with a certificate that is still valid")
		case now.Before(certificate.NotBefore):
			return verify.Refuse(policy.ReasonFutureCertificate,
				fmt.Sprintf("certificate %q is not valid before %s", name, certificate.NotBefore.UTC().Format(time.RFC3339)),
				"compare the clocks of this service and of the certificate's issuer")
		}
	}
	return nil
}

// checkStatedTime refuses a signature unless every certificate was valid at the time that
// the signing authority states (trust store and trust policy specification, "Signature
// Verification details"), and that time is past.
func checkStatedTime(chain []*x509.Certificate, at, now time.Time) error {
	if at.After(now.Add(maxClockSkew)) {
		return verify.Refuse(policy.ReasonInvalidTimestamp,
			fmt.Sprintf("the signing authority states a time in the future, %s", at.UTC().Format(time.RFC3339)),
			"compare the clocks of this service and of the signing authority")
	}
	for _, certificate := range chain {
		if at.Before(certificate.NotBefore) || at.After(certificate.NotAfter) {
			return timeOutside(at, certificate)
		}
	}
	return nil
}

func timeOutside(at time.Time, certificate *x509.Certificate) error {
	return verify.Refuse(policy.ReasonTimestampOutOfTime, fmt.Sprintf("the signature was made at %s, when certificate %q was not valid",
		at.UTC().Format(time.RFC3339), shown(certificate.Subject.String())),
		"sign the image again with a certificate that is valid")
}

// checkExpiry refuses a signature that has expired at now: "The artifact is considered
// expired when the current time is greater than or equal to expiry time" (trust store
// and trust policy specification, "Signature Verification details"). The zero expiry is
// none.
func checkExpiry(expiry, now time.Time) error {
	if expiry.IsZero() || now.Before(expiry) {
		return nil
	}
	return verify.Refuse(policy.ReasonExpiredSignature, fmt.Sprintf("the signature expired at %s", expiry.UTC().Format(time.RFC3339)),
		"sign the image again")
}

func shown(name string) string { return policy.Cut(name, maxNameShown) }
