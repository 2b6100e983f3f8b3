// Package cosign checks image signatures and attestations in cosign's forms, legacy
// layers and Sigstore bundles, made with a key or keyless. It takes bytes and
// trust material and returns a finding. Log entries, certificates and timestamps
// are verified with what the signature brings along: it never talks to a network
// but through the fetch function that it is given.
//
// Only per-signature functions of the libraries are called, each under
// recover: what a registry serves can make them panic, and the image-level
// functions of cosign would do so in goroutines of their own.
package cosign

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Media types of the layers that hold signatures.
const (
	// MediaTypeSimpleSigning is that of a legacy payload; its signature is an
	// annotation of the layer.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// MediaTypeBundle is that of a Sigstore bundle v0.3, which cosign v3 writes.
	MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

	mediaTypeBundleOld = "application/vnd.dev.sigstore.bundle+json;version=0."
)

// Key is one trusted public key.
type Key struct {
	// Name says in messages where the key comes from, such as "TrustStore
	// team-a/team-keys".
	Name string
	// Public is an *ecdsa.PublicKey (P-256, P-384, P-521), an ed25519.PublicKey,
	// or an *rsa.PublicKey of at least 2048 bits (PKCS #1 v1.5).
	Public crypto.PublicKey
	// Fingerprint identifies the signer in findings.
	Fingerprint string
	// Hash is what the signer hashes the signed bytes with: SHA-256, SHA-384 or
	// SHA-512. Zero stands for what cosign uses: SHA-256, and for ECDSA P-384
	// and P-521 also the hash of the curve's strength. Ed25519 keys ignore it.
	Hash crypto.Hash
}

// Options says what a Checker accepts.
type Options struct {
	// Keys are the trusted keys, 1 to 64; any one of them suffices.
	Keys []Key
	// Log, if set, is where signatures by keys must be logged too: a Sigstore root
	// with at least one transparency log.
	Log root.TrustedMaterial
	// Keyless trusts identities instead of keys. Exactly one of both is set.
	Keyless *Keyless
	// Annotations must all be signed with exactly these values. Message
	// signatures sign none, so they fail if there are any.
	Annotations map[string]string
	// MatchRepository demands that the signed document names the image's host
	// and repository, so that a signature copied from elsewhere does not count.
	// cosign v3 writes no repository into its bundles: they fail, since it
	// cannot be proven, unless a subject of the statement is named so.
	MatchRepository bool
}

// Checker implements [verify.Checker] for signatures in cosign's forms. It has no
// mutable state.
type Checker struct {
	keys            []trustedKey
	logged          bool        // signatures must be in a log
	identities      *identities // instead of keys
	annotations     map[string]string
	matchRepository bool
}

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker. It returns an error if there are neither keys nor
// identities or too many of them, or if one of them is not supported.
func New(options Options) (*Checker, error) {
	c := &Checker{annotations: maps.Clone(options.Annotations), matchRepository: options.MatchRepository, logged: options.Log != nil}
	switch {
	case len(options.Keys) == 0 && options.Keyless == nil:
		return nil, errors.New("a cosign verifier without keys could prove nothing")
	case options.Keyless != nil && (len(options.Keys) > 0 || options.Log != nil):
		return nil, errors.New("a cosign verifier has either keys or identities")
	case options.Keyless != nil:
		var err error
		if c.identities, err = newIdentities(*options.Keyless); err != nil {
			return nil, err
		}
		c.logged = !options.Keyless.IgnoreLog
		return c, nil
	}
	if len(options.Keys) > maxKeys {
		return nil, fmt.Errorf("a cosign verifier has %d keys, the limit is %d", len(options.Keys), maxKeys)
	}
	for _, key := range options.Keys {
		trusted, err := newTrustedKey(key, options.Log)
		if err != nil {
			return nil, fmt.Errorf("key %s of %s: %w", key.Fingerprint, key.Name, err)
		}
		c.keys = append(c.keys, trusted)
	}
	return c, nil
}

// Accepts reports whether the layer is a simple-signing payload or a Sigstore
// bundle. The artifact type is not looked at: registries report it wrongly.
func (c *Checker) Accepts(s verify.Signature) bool {
	return s.Layer.MediaType == MediaTypeSimpleSigning || isBundle(s.Layer.MediaType)
}

func isBundle(mediaType string) bool {
	switch mediaType {
	case MediaTypeBundle, mediaTypeBundleOld + "1", mediaTypeBundleOld + "2", mediaTypeBundleOld + "3":
		return true
	}
	return false
}

// Check says whether s is a signature of subject by one of the keys, over the
// wanted annotations. Keys do not expire, so now is not looked at.
func (c *Checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch, _ time.Time) policy.Finding {
	proven, err := c.check(ctx, subject, s, fetch)
	if err != nil {
		return verify.FindingOf(err)
	}
	return valid(proven)
}

func (c *Checker) check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch) (proof, error) {
	if err := checkSubject(subject); err != nil {
		return proof{}, err
	}
	switch {
	case s.Layer.MediaType == MediaTypeSimpleSigning:
		return c.checkLegacy(ctx, subject, s.Layer, fetch)
	case isBundle(s.Layer.MediaType):
		return c.checkBundle(ctx, subject, s.Layer, fetch)
	}
	return proof{}, malformed("the layer is neither a cosign payload nor a Sigstore bundle")
}

// signer is who made a signature that was verified.
type signer struct {
	id      string         // distinct for distinct signers
	message string         // one sentence
	facts   map[string]any // for the extensions of the finding
}

func (k trustedKey) signer() signer {
	return signer{id: k.Fingerprint, message: fmt.Sprintf("signature verified by key %s of %s", k.Fingerprint, k.Name),
		facts: map[string]any{"keyFingerprint": k.Fingerprint}}
}

// checkSubject refuses an image without a SHA-256 digest, or with two digests.
func checkSubject(subject verify.Subject) error {
	d := subject.Descriptor.Digest
	if d != subject.Reference.Digest || d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return malformed("the image to check has no single sha256 digest")
	}
	return nil
}

// claims is what a signed document says beyond the digest of the image.
type claims struct {
	repository  string         // as written; empty if it names none
	annotations map[string]any // signed annotations
}

// accept is the end of every check. It requires that one of the verified claims has
// the repository and annotations that the verifier wants.
func (c *Checker) accept(subject verify.Subject, layer digest.Digest, by signer, said ...claims) (proof, error) {
	err := malformed("the signed document says nothing about the image")
	for _, s := range said {
		if err = c.checkClaims(subject, s); err == nil {
			return proof{signer: by, layer: layer}, nil
		}
	}
	return proof{}, err
}

func (c *Checker) checkClaims(subject verify.Subject, said claims) error {
	if c.matchRepository {
		if err := checkRepository(subject.Reference, said.repository); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.annotations)) {
		if said.annotations[name] != any(c.annotations[name]) {
			return wrongAnnotations(name, c.annotations[name])
		}
	}
	return nil
}
