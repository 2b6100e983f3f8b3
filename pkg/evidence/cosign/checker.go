// Package cosign checks image signatures and attestations in cosign's formats, legacy
// layers and Sigstore bundles, made with a key or keyless. It takes bytes and trust
// material and returns a proof, or why there is none. It verifies log entries, certificates
// and timestamps offline, from the signature itself, and only reaches a network through the
// fetch function of its caller.
//
// It calls only per-signature functions of the libraries, each under recover: hostile
// evidence can make them panic, and the image-level functions of cosign panic in
// goroutines of their own.
package cosign

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Options says which image signatures a Checker accepts.
type Options struct {
	Signers
	// Annotations must all be signed with exactly these values. Message signatures
	// carry no annotations, so they fail if any are set.
	Annotations map[string]string
	// MatchRepository requires that the signed document names the image's host and
	// repository, so that a signature copied from another repository does not count.
	// cosign v3 writes no repository into its bundles: they fail, unless a subject of
	// the statement has the repository as its name.
	MatchRepository bool
}

// Checker implements [verify.Checker] for image signatures in cosign's formats. It has
// no mutable state.
type Checker struct {
	*signers
	annotations     map[string]string
	matchRepository bool
}

var _ verify.Checker = (*Checker)(nil)

// New returns a Checker, or an error unless options name signers that can be verified.
func New(options Options) (*Checker, error) {
	trusted, err := newSigners(options.Signers)
	if err != nil {
		return nil, err
	}
	return &Checker{signers: trusted, annotations: maps.Clone(options.Annotations), matchRepository: options.MatchRepository}, nil
}

// Accepts reports whether the layer is a simple-signing payload or a Sigstore
// bundle. It ignores the artifact type, which registries report wrongly.
func (c *Checker) Accepts(s verify.Signature) bool {
	return s.Layer.MediaType == MediaTypeSimpleSigning || isBundle(s.Layer.MediaType)
}

// Check says whether s is a signature of subject by one of the signers, with the wanted
// repository and annotations. It ignores now: keys do not expire, and certificates must
// be valid at the time that a log or a timestamp authority vouches for.
func (c *Checker) Check(ctx context.Context, subject verify.Subject, s verify.Signature, fetch verify.Fetch, _ time.Time) (policy.Proof, error) {
	if err := checkSubject(subject); err != nil {
		return policy.Proof{}, err
	}
	switch {
	case s.Layer.MediaType == MediaTypeSimpleSigning:
		return c.checkLegacy(ctx, subject, s.Layer, fetch)
	case isBundle(s.Layer.MediaType):
		return c.checkBundle(ctx, subject, s.Layer, fetch)
	}
	return policy.Proof{}, malformed("the layer is neither a cosign payload nor a Sigstore bundle")
}

// claims are the statements of a signed document beyond the digest of the image.
type claims struct {
	repository  string // as written; may be empty
	annotations map[string]any
}

// accept is the last step of every check. It requires that one of the verified claims
// has the repository and annotations that the verifier wants.
func (c *Checker) accept(subject verify.Subject, layer digest.Digest, by signer, said ...claims) (policy.Proof, error) {
	err := malformed("the signed document says nothing about the image")
	for _, s := range said {
		if err = c.checkClaims(subject, s); err == nil {
			return by.proof(layer, ""), nil
		}
	}
	return policy.Proof{}, err
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
