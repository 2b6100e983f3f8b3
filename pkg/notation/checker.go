// Package notation checks image signatures of the Notary Project. It takes
// envelope bytes, certificates and identities, and returns a finding. The
// notation library does the cryptography; this package binds the result to the
// image, refuses what the library lets pass (unknown critical attributes) and
// says in its own words what is wrong. It refuses the levels audit and skip,
// plugins, timestamps and revocation checks, and never talks to a network but
// through the fetch function that it is given.
package notation

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Media types of signature manifests and their one layer (Notary Project
// signature specification, section "OCI Signatures").
const (
	ArtifactType  = "application/vnd.cncf.notary.signature"
	MediaTypeJWS  = "application/jose+json"
	MediaTypeCOSE = "application/cose"
)

const (
	anyIdentity   = "*"
	subjectPrefix = "x509.subject:"
	storeName     = "trusted"
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
	// expired still signs. Integrity, the way to a trust anchor and the identity
	// are enforced as in Strict. The finding says what was let pass.
	Permissive
)

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
}

// Checker implements [verify.Checker] for Notary Project signatures. It has no
// mutable state.
type Checker struct {
	name     string
	anchors  anchors
	level    Level
	verifier notationgo.Verifier
}

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker. It returns an error if certificates or identities are
// missing, too many, or not of the kind that can be trusted.
func New(options Options) (*Checker, error) {
	if err := checkAnchors(options.Certificates); err != nil {
		return nil, err
	}
	if err := checkIdentities(options.TrustedIdentities); err != nil {
		return nil, err
	}
	level, err := options.Level.library()
	if err != nil {
		return nil, err
	}
	c := &Checker{name: options.Name, anchors: slices.Clone(options.Certificates), level: options.Level}
	document := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
		Name:           "landwaiter",
		RegistryScopes: []string{anyIdentity}, // the engine has chosen the images
		SignatureVerification: trustpolicy.SignatureVerification{
			VerificationLevel: level,
			Override:          map[trustpolicy.ValidationType]trustpolicy.ValidationAction{trustpolicy.TypeRevocation: trustpolicy.ActionSkip},
		},
		TrustStores:       []string{string(truststore.TypeCA) + ":" + storeName},
		TrustedIdentities: slices.Clone(options.TrustedIdentities),
	}}}
	// The plugin manager must be a literal nil: then a signature that demands a
	// plugin fails, and no program is ever looked for.
	c.verifier, err = verifier.NewWithOptions(document, c.anchors, nil, verifier.VerifierOptions{
		RevocationCodeSigningValidator:  offline{},
		RevocationTimestampingValidator: offline{},
	})
	if err != nil {
		return nil, fmt.Errorf("trusted identities: %w", err)
	}
	return c, nil
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

// Accepts reports whether the manifest is a notation signature, by its own
// artifact type or that of its config, and the layer an envelope.
func (c *Checker) Accepts(s verify.Signature) bool {
	return (s.Manifest.Config.MediaType == ArtifactType || s.Manifest.ArtifactType == ArtifactType) &&
		(s.Layer.MediaType == MediaTypeJWS || s.Layer.MediaType == MediaTypeCOSE)
}

// Check says whether s is a signature of subject by a trusted identity. With
// Strict, the signature and its whole certificate chain must be valid at now,
// and also by the machine's clock, which the notation library looks at itself.
func (c *Checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch, now time.Time) policy.Finding {
	want := subject.Descriptor.Digest
	switch {
	case want != subject.Reference.Digest || want.Validate() != nil || want.Algorithm() != digest.SHA256:
		return malformed("the image to check has no single sha256 digest")
	case !c.Accepts(s):
		return malformed("the manifest is not a notation signature")
	case len(s.Manifest.Layers) != 1:
		return malformed(fmt.Sprintf("the notation signature has %d layers, it must have exactly one", len(s.Manifest.Layers)))
	case s.Layer.Size > maxEnvelope:
		return limitExceeded(fmt.Sprintf("the signature envelope has %d bytes", s.Layer.Size), maxEnvelope)
	}
	content, err := fetch(ctx, s.Layer, maxEnvelope)
	if err != nil {
		return fetchFailure(err)
	}
	return c.examine(ctx, subject, s.Layer.MediaType, content, now)
}
