// Package cosign checks image signatures that were made with a key: cosign's
// legacy simple-signing layers and Sigstore bundles. It takes bytes and keys
// and returns a finding. It looks at no transparency log, certificate or
// timestamp, refuses signatures that rest on them, and never talks to a
// network but through the fetch function that it is given.
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
	// Annotations must all be signed with exactly these values. Message
	// signatures sign none, so they fail if there are any.
	Annotations map[string]string
	// MatchRepository demands that the signed document names the image's host
	// and repository, so that a signature copied from elsewhere does not count.
	// cosign v3 writes no repository into its bundles: they fail, since it
	// cannot be proven, unless a subject of the statement is named so.
	MatchRepository bool
}

// Checker implements [verify.Checker] for signatures made with a key. It has no
// mutable state.
type Checker struct {
	keys            []trustedKey
	annotations     map[string]string
	matchRepository bool
}

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker. It returns an error if there are no keys or too many,
// or if a key or its hash is not supported.
func New(options Options) (*Checker, error) {
	if len(options.Keys) == 0 {
		return nil, errors.New("a cosign verifier without keys could prove nothing")
	}
	if len(options.Keys) > maxKeys {
		return nil, fmt.Errorf("a cosign verifier has %d keys, the limit is %d", len(options.Keys), maxKeys)
	}
	c := &Checker{annotations: maps.Clone(options.Annotations), matchRepository: options.MatchRepository}
	for _, key := range options.Keys {
		trusted, err := newTrustedKey(key)
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
	want := subject.Descriptor.Digest
	if want != subject.Reference.Digest || want.Validate() != nil || want.Algorithm() != digest.SHA256 {
		return malformed("the image to check has no single sha256 digest")
	}
	switch {
	case s.Layer.MediaType == MediaTypeSimpleSigning:
		return c.checkLegacy(ctx, subject, s.Layer, fetch)
	case isBundle(s.Layer.MediaType):
		return c.checkBundle(ctx, subject, s.Layer, fetch)
	}
	return malformed("the layer is neither a cosign payload nor a Sigstore bundle")
}

// claims is what a signed document says beyond the digest of the image.
type claims struct {
	repository  string         // as written; empty if it names none
	annotations map[string]any // signed annotations
}

// accept is the end of every check: it compares verified claims with what is
// wanted. Only it makes a Valid finding.
func (c *Checker) accept(subject verify.Subject, layer digest.Digest, by trustedKey, said ...claims) policy.Finding {
	failure := malformed("the signed document says nothing about the image")
	for _, s := range said {
		failure = c.mismatch(subject, s)
		if failure.Reason == "" {
			return valid(by.Key, layer)
		}
	}
	return failure
}

// mismatch returns the finding that says how what was said is not what is
// wanted; its reason is empty if it is.
func (c *Checker) mismatch(subject verify.Subject, said claims) policy.Finding {
	if c.matchRepository {
		if finding := wrongRepository(subject.Reference, said.repository); finding.Reason != "" {
			return finding
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.annotations)) {
		if said.annotations[name] != any(c.annotations[name]) {
			return wrongAnnotations(name, c.annotations[name])
		}
	}
	return policy.Finding{}
}
