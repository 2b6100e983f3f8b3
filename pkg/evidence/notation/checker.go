// Package notation checks image signatures of the Notary Project. It takes envelope bytes,
// certificates and identities, and returns a proof. The notation library does the
// cryptography. This package binds the result to the image, refuses the unknown critical
// attributes that the library lets pass, and explains failures in its own words. It runs no
// plugins, but understands the attributes of AWS Signer's plugin. It does not support the
// levels audit and skip. It only reaches a network through the functions of its caller.
package notation

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/plugin"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Media types of signature manifests and of their layer (Notary Project signature
// specification, "Storage":
// https://github.com/notaryproject/specifications/blob/main/specs/signature-specification.md).
const (
	ArtifactType  = "application/vnd.cncf.notary.signature"
	MediaTypeJWS  = "application/jose+json"
	MediaTypeCOSE = "application/cose"
)

const (
	anyIdentity   = "*"
	subjectPrefix = "x509.subject:"
	storeName     = "trusted"
	tsaStoreName  = "timestamps"
	signingStore  = "authorities"
)

// Checker implements [verify.Checker] for Notary Project signatures. It has no
// mutable state.
type Checker struct {
	name        string
	anchors     anchors  // for scheme notary.x509
	signing     anchors  // for scheme notary.x509.signingAuthority
	authorities anchors  // for timestamps
	profiles    []string // of AWS Signer; nil without
	revoked     func(ctx context.Context, job AWSJob) ([]string, error)
	afterExpiry bool
	logs        logs
	revocation  http.RoundTripper
	lists       []RevocationList
	plain       notationgo.Verifier // certificates must be valid now
	stamped     notationgo.Verifier // certificates must be valid at the time of a timestamp; nil without authorities
}

// logs lists the checks whose failures are only logged.
type logs struct{ expiry, timestamp, revocation bool }

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker, or an error if certificates or identities are missing, too
// many, or of a kind that cannot be trusted.
func New(options Options) (*Checker, error) {
	if err := options.checkTrust(); err != nil {
		return nil, err
	}
	if err := checkAuthorities(options.TimestampAuthorities); err != nil {
		return nil, err
	}
	identities := options.TrustedIdentities
	if options.AWSSigner != nil && len(identities) == 0 {
		identities = []string{anyIdentity} // the profile names the signer
	}
	if err := checkIdentities(identities); err != nil {
		return nil, err
	}
	level, err := options.Level.library()
	if err != nil {
		return nil, err
	}
	c := &Checker{name: options.Name, anchors: slices.Clone(options.Certificates), signing: slices.Clone(options.SigningAuthorities),
		authorities: slices.Clone(options.TimestampAuthorities), afterExpiry: options.TimestampAfterExpiry, revocation: options.Revocation,
		lists: slices.Clone(options.RevocationLists), logs: options.logs()}
	if options.AWSSigner != nil {
		c.profiles, c.revoked = slices.Clone(options.AWSSigner.Profiles), options.AWSSigner.Revoked
	}
	stores := c.stores()
	if c.plain, err = c.verifier(level, identities, stores...); err != nil {
		return nil, err
	}
	if len(c.authorities) > 0 {
		c.stamped, err = c.verifier(level, identities, append(stores, string(truststore.TypeTSA)+":"+tsaStoreName)...)
	}
	return c, err
}

// stores names the trust stores of the library's policy. The library only uses those of the
// signature's scheme.
func (c *Checker) stores() (names []string) {
	if len(c.anchors) > 0 {
		names = append(names, string(truststore.TypeCA)+":"+storeName)
	}
	if len(c.signing) > 0 {
		names = append(names, string(truststore.TypeSigningAuthority)+":"+signingStore)
	}
	return names
}

// verifier creates the library's verifier. It checks revocation of signing certificates
// separately, because the library's errors do not distinguish a revoked certificate from an
// answer that has not been fetched yet.
func (c *Checker) verifier(level string, identities []string, stores ...string) (notationgo.Verifier, error) {
	action := func(log bool) trustpolicy.ValidationAction {
		if log {
			return trustpolicy.ActionLog
		}
		return trustpolicy.ActionEnforce
	}
	document := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
		Name:           "landwaiter",
		RegistryScopes: []string{anyIdentity}, // the engine selects the images
		SignatureVerification: trustpolicy.SignatureVerification{
			VerificationLevel: level,
			Override: map[trustpolicy.ValidationType]trustpolicy.ValidationAction{
				trustpolicy.TypeExpiry:             action(c.logs.expiry),
				trustpolicy.TypeAuthenticTimestamp: action(c.logs.timestamp),
				trustpolicy.TypeRevocation:         trustpolicy.ActionSkip,
			},
			VerifyTimestamp: trustpolicy.OptionAlways,
		},
		TrustStores:       stores,
		TrustedIdentities: slices.Clone(identities),
	}}}
	// The plugin manager must be a literal nil, or ours. Then a signature that requires another
	// plugin fails, and the library never looks for a program.
	var plugins plugin.Manager
	if c.profiles != nil {
		plugins = inProcess{}
	}
	made, err := verifier.NewWithOptions(document, c, plugins, verifier.VerifierOptions{
		RevocationCodeSigningValidator:  offline{},
		RevocationTimestampingValidator: timestampRevocation{c},
	})
	if err != nil {
		return nil, fmt.Errorf("trusted identities: %w", err)
	}
	return made, nil
}

// Accepts reports whether the manifest is a notation signature, by its artifact type or
// the media type of its config, and the layer is an envelope.
func (c *Checker) Accepts(s verify.Signature) bool {
	return (s.Manifest.Config.MediaType == ArtifactType || s.Manifest.ArtifactType == ArtifactType) &&
		(s.Layer.MediaType == MediaTypeJWS || s.Layer.MediaType == MediaTypeCOSE)
}

// Check verifies that s is a signature of subject by a trusted identity. With Strict, the
// signature and its whole certificate chain must be valid at now, and also by the system
// clock, which the notation library reads itself.
func (c *Checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch,
	now time.Time) (policy.Proof, error) {
	want := subject.Descriptor.Digest
	switch {
	case want != subject.Reference.Digest || want.Validate() != nil || want.Algorithm() != digest.SHA256:
		return policy.Proof{}, malformed("the image to check has no single sha256 digest")
	case !c.Accepts(s):
		return policy.Proof{}, malformed("the manifest is not a notation signature")
	case len(s.Manifest.Layers) != 1: // "collection of only one OCI descriptor referencing the signature envelope"
		return policy.Proof{}, malformed(fmt.Sprintf("the notation signature has %d layers, it must have exactly one", len(s.Manifest.Layers)))
	case s.Layer.Size > maxEnvelope:
		return policy.Proof{}, pastLimit(fmt.Sprintf("the signature envelope has %d bytes, the limit is %d", s.Layer.Size, maxEnvelope))
	}
	content, err := fetch(ctx, s.Layer, maxEnvelope)
	if err != nil {
		return policy.Proof{}, err
	}
	found, err := c.examine(ctx, subject, s.Layer.MediaType, content, now)
	if err != nil {
		return policy.Proof{}, err
	}
	return found.proof(), nil
}

// identityOf names a signer as a trusted identity does: by the attributes of its subject, in
// our order, because notation compares them in any order. A renewed certificate, or a second
// one, is the same signer. A certificate without a subject is named by its key.
func identityOf(leaf *x509.Certificate) string {
	if len(leaf.Subject.Names) == 0 {
		return fingerprintOf(leaf)
	}
	var attributes []string
	for _, attribute := range leaf.Subject.Names {
		attributes = append(attributes, pkix.RDNSequence{{attribute}}.String())
	}
	slices.Sort(attributes)
	return subjectPrefix + strings.Join(attributes, ",")
}

// fingerprintOf returns the hash of a certificate's public key.
func fingerprintOf(leaf *x509.Certificate) string {
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
