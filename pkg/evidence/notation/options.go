package notation

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
)

// Level selects the checks that deny. The Notary Project's levels audit and skip do not exist
// here: both accept signatures by anyone.
type Level int

const (
	// Strict enforces every check, including the expiry of certificates and signatures.
	// It is the zero value.
	Strict Level = iota
	// Permissive accepts expired signatures, and expired or not yet valid certificates
	// anywhere in the chain: a key that leaked after its certificate expired still
	// signs. Timestamps and revocation are checked but not enforced. Integrity, the
	// chain to a trust anchor and the identity are enforced as in Strict. The finding
	// lists the failures.
	Permissive
)

// Action is the effect of a failed check.
type Action int

const (
	// AsLevel follows the level: Strict enforces, Permissive logs.
	AsLevel Action = iota
	// Enforce makes the signature invalid.
	Enforce
	// Log lets the signature pass. The finding says so.
	Log
)

// Overrides replace the level for single checks. Integrity and authenticity cannot be
// overridden: without them anyone could sign.
type Overrides struct {
	// Expiry is the check that the signature has not expired; the signer sets the time.
	Expiry Action
	// AuthenticTimestamp is the check that certificates are valid at the time of the
	// timestamp or, without one, now.
	AuthenticTimestamp Action
	// Revocation is the check that no certificate is revoked, including those of
	// timestamp authorities.
	Revocation Action
}

// Options defines which signatures a Checker accepts.
type Options struct {
	// Name is the name of the verifier in messages.
	Name string
	// Certificates are the trust anchors of scheme notary.x509, at most 256 (a store of type
	// "ca"). Each is a CA or self-signed. The certificate chain of a signature must include one
	// of them.
	Certificates []*x509.Certificate
	// SigningAuthorities are the trust anchors of scheme notary.x509.signingAuthority, at most
	// 256 (a store of type "signingAuthority"). They state the time of signing, and certificates
	// only need to have been valid then. At least one of these or of Certificates is required.
	// They are not interchangeable.
	SigningAuthorities []*x509.Certificate
	// AWSSigner only accepts signatures of AWS Signer by its profiles. It needs
	// SigningAuthorities and excludes Certificates. Without it such signatures are refused.
	AWSSigner *AWSSigner
	// TrustedIdentities are 1 to 64 identities: "x509.subject:" with a distinguished
	// name that has at least C, ST and O, whose attributes the subject of the signing
	// certificate must all have; or "*" alone, which trusts every certificate that
	// the anchors certify.
	TrustedIdentities []string
	// Level is Strict or Permissive.
	Level Level
	// Overrides of the level.
	Overrides Overrides
	// TimestampAuthorities are the roots of trusted timestamp authorities (RFC 3161), at
	// most 256. With a timestamp, certificates only need to have been valid when the
	// signature was made.
	TimestampAuthorities []*x509.Certificate
	// TimestampAfterExpiry requires a timestamp only if a certificate has expired. By
	// default every signature needs one if there are TimestampAuthorities.
	TimestampAfterExpiry bool
	// Revocation answers requests for OCSP responses and revocation lists from fetched data. It
	// returns a [verify.PermanentError] if there will be no answer. If it is nil, revocation is
	// not checked.
	Revocation http.RoundTripper
	// RevocationLists replace requests for the certificates that they cover. They only count if
	// Revocation is set.
	RevocationLists []RevocationList
}

// RevocationList is a complete certificate revocation list. The Checker checks its signature
// and dates.
type RevocationList interface {
	// About reports whether the list would contain a certificate if its issuer had revoked it.
	About(certificate, issuer *x509.Certificate) bool
	// Parsed returns the list.
	Parsed() *x509.RevocationList
}

// logs applies the overrides to the level.
func (o Options) logs() logs {
	only := func(a Action) bool { return a == Log || a == AsLevel && o.Level == Permissive }
	return logs{expiry: only(o.Overrides.Expiry), timestamp: only(o.Overrides.AuthenticTimestamp), revocation: only(o.Overrides.Revocation)}
}

func (l Level) library() (string, error) {
	switch l {
	case Strict:
		return trustpolicy.LevelStrict.Name, nil
	case Permissive:
		return trustpolicy.LevelPermissive.Name, nil
	}
	return "", fmt.Errorf("level %d is neither strict nor permissive", l)
}

// checkAnchors checks a list of trust anchors, which may be empty.
func checkAnchors(certificates []*x509.Certificate) error {
	switch n := len(certificates); {
	case n == 0:
		return nil
	case n > maxCertificates:
		return fmt.Errorf("a notation verifier has %d certificates, the limit is %d", n, maxCertificates)
	case slices.Contains(certificates, nil):
		return errors.New("a certificate is nil")
	}
	if err := truststore.ValidateCertificates(certificates); err != nil {
		return fmt.Errorf("trust anchors: %w", err)
	}
	return nil
}

// checkTrust checks the trust anchors of both signing schemes.
func (o Options) checkTrust() error {
	switch {
	case len(o.Certificates) == 0 && len(o.SigningAuthorities) == 0:
		return errors.New("a notation verifier without certificates could prove nothing")
	case o.AWSSigner != nil && (len(o.SigningAuthorities) == 0 || len(o.Certificates) > 0):
		return errors.New("a verifier of AWS Signer needs AWS's root as signing authority and no other certificates")
	}
	for _, list := range [][]*x509.Certificate{o.Certificates, o.SigningAuthorities} {
		if err := checkAnchors(list); err != nil {
			return err
		}
	}
	if o.AWSSigner != nil {
		return checkProfiles(o.AWSSigner.Profiles)
	}
	return nil
}

// checkAuthorities accepts roots only: "The `x509/tsa` trust store contains named stores
// with Timestamping Authority (TSA) root certificates" (trust store and trust policy
// specification, "Trust Store").
func checkAuthorities(certificates []*x509.Certificate) error {
	if err := checkAnchors(certificates); err != nil {
		return fmt.Errorf("timestamp authorities: %w", err)
	}
	for _, certificate := range certificates {
		if certificate.SignatureAlgorithm == x509.SHA1WithRSA || certificate.SignatureAlgorithm == x509.ECDSAWithSHA1 {
			return fmt.Errorf("timestamp authority %q is signed with SHA-1, which is not accepted; use a newer root of this authority",
				shown(certificate.Subject.String()))
		}
		if certificate.CheckSignatureFrom(certificate) != nil || !bytes.Equal(certificate.RawSubject, certificate.RawIssuer) {
			return fmt.Errorf("timestamp authority %q is not a root certificate", shown(certificate.Subject.String()))
		}
	}
	return nil
}

// checkIdentities refuses identities of another kind than x509.subject, which the
// library would silently ignore. The library checks the names themselves.
func checkIdentities(identities []string) error {
	switch n := len(identities); {
	case n == 0:
		return errors.New(`a notation verifier without trusted identities could prove nothing; "*" trusts whatever the certificates certify`)
	case n > maxIdentities:
		return fmt.Errorf("a notation verifier has %d trusted identities, the limit is %d", n, maxIdentities)
	}
	for _, identity := range identities {
		switch {
		case len(identity) > maxIdentity:
			return fmt.Errorf("a trusted identity has %d bytes, the limit is %d", len(identity), maxIdentity)
		case identity != anyIdentity && !strings.HasPrefix(identity, subjectPrefix):
			return fmt.Errorf("trusted identity %q is neither %q with a distinguished name nor %q", identity, subjectPrefix, anyIdentity)
		}
	}
	return nil
}
