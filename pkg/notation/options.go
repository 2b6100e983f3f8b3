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

// Level says which checks deny. Audit and skip, which the Notary Project also
// knows, do not exist here: both accept signatures of anybody.
type Level int

const (
	// Strict denies whatever is not in order, expired certificates and expired
	// signatures among it. It is the zero value.
	Strict Level = iota
	// Permissive accepts expired and not yet valid certificates, anywhere in the
	// chain, and expired signatures: a key that leaked after its certificate
	// expired still signs. Timestamps and revocation are looked at and not
	// enforced. Integrity, the way to a trust anchor and the identity are enforced
	// as in Strict. The finding says what was let pass.
	Permissive
)

// Action says what a failed check does.
type Action int

const (
	// AsLevel is what the level says: Strict enforces, Permissive logs.
	AsLevel Action = iota
	// Enforce makes the signature invalid.
	Enforce
	// Log lets the signature pass; the finding says so.
	Log
)

// Overrides replace what the level says of single checks. Integrity and
// authenticity are not among them: without those a signature is anybody's.
type Overrides struct {
	// Expiry is of the signature, which the signer chose.
	Expiry Action
	// AuthenticTimestamp is of the validity of certificates, by the timestamp
	// or, without one, now.
	AuthenticTimestamp Action
	// Revocation is of certificates, those of timestamp authorities among them.
	Revocation Action
}

// Options says what a Checker accepts.
type Options struct {
	// Name is the verifier, for messages.
	Name string
	// Certificates are the trust anchors, 1 to 256 (a store of type "ca"). Each
	// is an authority or self-signed; a signature must present one of them in its
	// certificate chain.
	Certificates []*x509.Certificate
	// TrustedIdentities are 1 to 64 identities: "x509.subject:" with a
	// distinguished name that has at least C, ST and O, all of which the signing
	// certificate's subject must have; or "*" alone, which trusts whatever the
	// anchors certify.
	TrustedIdentities []string
	// Level is Strict or Permissive.
	Level Level
	// Overrides of the level.
	Overrides Overrides
	// TimestampAuthorities are roots, 256 at most, of authorities (RFC 3161) whose
	// timestamps count. With one of them a certificate needs to have been valid
	// only when the signature was made.
	TimestampAuthorities []*x509.Certificate
	// TimestampAfterExpiry asks for a timestamp only if a certificate has expired;
	// else each signature needs one if there are TimestampAuthorities.
	TimestampAfterExpiry bool
	// Revocation answers OCSP requests and requests for revocation lists, without
	// waiting. Its error is definite if no answer will ever come. Nil means that
	// revocation is not checked.
	Revocation http.RoundTripper
}

// logs joins level and overrides.
func (o Options) logs() (made logs, err error) {
	for name, check := range map[string]struct {
		action Action
		log    *bool
	}{
		"expiry": {o.Overrides.Expiry, &made.expiry}, "authenticTimestamp": {o.Overrides.AuthenticTimestamp, &made.timestamp},
		"revocation": {o.Overrides.Revocation, &made.revocation},
	} {
		switch check.action {
		case AsLevel:
			*check.log = o.Level == Permissive
		case Log:
			*check.log = true
		case Enforce:
		default:
			return logs{}, fmt.Errorf("override of %s is %d, which is neither enforce nor log", name, check.action)
		}
	}
	return made, nil
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

func checkAnchors(certificates []*x509.Certificate) error {
	switch n := len(certificates); {
	case n == 0:
		return errors.New("a notation verifier without certificates could prove nothing")
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

// checkAuthorities accepts roots only: "The `x509/tsa` trust store contains named stores
// with Timestamping Authority (TSA) root certificates" (trust store and trust policy
// specification, "Trust Store").
func checkAuthorities(certificates []*x509.Certificate) error {
	if len(certificates) == 0 {
		return nil
	}
	if err := checkAnchors(certificates); err != nil {
		return fmt.Errorf("timestamp authorities: %w", err)
	}
	for _, certificate := range certificates {
		if certificate.CheckSignatureFrom(certificate) != nil || !bytes.Equal(certificate.RawSubject, certificate.RawIssuer) {
			return fmt.Errorf("timestamp authority %q is not a root certificate", shown(certificate.Subject.String()))
		}
	}
	return nil
}

// checkIdentities refuses what the library would quietly ignore: identities of
// another kind than x509.subject. The library checks the names themselves.
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
