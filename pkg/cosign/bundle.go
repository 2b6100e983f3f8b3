package cosign

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/intoto"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// checkBundle checks a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3): an
// in-toto statement of cosign's own predicate type
// in a DSSE envelope, or a plain signature of the manifest's bytes.
func (c *Checker) checkBundle(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) (proof, error) {
	data, err := read(ctx, fetch, layer, "bundle", maxBundle)
	if err != nil {
		return proof{}, err
	}
	parsed, err := c.open(data)
	if err != nil {
		return proof{}, err
	}
	said, err := c.signedClaims(parsed, subject.Descriptor.Digest)
	if err != nil {
		return proof{}, err
	}
	by, err := c.signerOf(ctx, parsed, subject.Descriptor.Digest)
	if err != nil {
		return proof{}, err
	}
	return c.accept(subject, layer.Digest, by, said...)
}

// signedClaims returns what a bundle says about the image want. Nothing of it is verified
// yet: refusing here only spares the work of verifying what would not count.
func (c *Checker) signedClaims(parsed parsedBundle, want digest.Digest) ([]claims, error) {
	if !parsed.message {
		return readStatement(parsed.payload, want)
	}
	if err := c.checkMessage(parsed, want); err != nil {
		return nil, err
	}
	return []claims{{}}, nil // a message signature says nothing but the digest
}

// Evidence is what a bundle proves.
type Evidence struct {
	// Signer tells who signed; distinct for distinct signers.
	Signer string
	// Facts about the signer: keyFingerprint, or issuer, subject and claims.
	Facts map[string]any
	// Statement is the signed in-toto statement, nil for a signature of the
	// artifact's bytes. It is about the artifact, by a subject's digest; whether
	// its predicate means anything is for the caller to say.
	Statement *intoto.Statement
}

// VerifyBundle verifies a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3) as
// about the artifact with a SHA-256 digest, by whom the checker trusts. The error of
// evidence that does not count is a [verify.Refusal]. What predicate type a
// statement has, annotations and repository are not looked at.
func (c *Checker) VerifyBundle(ctx context.Context, data []byte, artifact digest.Digest) (Evidence, error) {
	if artifact.Validate() != nil || artifact.Algorithm() != digest.SHA256 {
		return Evidence{}, malformed("the artifact has no sha256 digest")
	}
	if len(data) > maxBundle {
		return Evidence{}, limitExceeded("bundle", maxBundle)
	}
	parsed, err := c.open(data)
	if err != nil {
		return Evidence{}, err
	}
	return c.proven(ctx, parsed, artifact)
}

// prove verifies a bundle that was made of a legacy attestation.
func (c *Checker) prove(ctx context.Context, rebuilt *bundle.Bundle, artifact digest.Digest) (Evidence, error) {
	parsed := parsedBundle{Bundle: rebuilt}
	if err := guard(func() error { return parsed.read(c.logged) }); err != nil {
		return Evidence{}, malformed("the attestation is malformed")
	}
	return c.proven(ctx, parsed, artifact)
}

func (c *Checker) proven(ctx context.Context, parsed parsedBundle, artifact digest.Digest) (Evidence, error) {
	if parsed.message {
		if err := c.checkMessage(parsed, artifact); err != nil {
			return Evidence{}, err
		}
	}
	by, err := c.signerOf(ctx, parsed, artifact)
	if err != nil {
		return Evidence{}, err
	}
	proven := Evidence{Signer: by.id, Facts: by.facts}
	if parsed.message {
		return proven, nil
	}
	statement, err := intoto.ParseStatement(parsed.payload)
	switch {
	case err != nil:
		return Evidence{}, malformed("the signed statement " + err.Error())
	case !slices.Contains(statement.Digests, artifact.Encoded()):
		return Evidence{}, wrongDigest(artifact, digest.SHA256.String()+":"+statement.Digests[0])
	}
	proven.Statement = &statement
	return proven, nil
}

// open takes a bundle apart that is signed in the way that the checker wants.
func (c *Checker) open(data []byte) (parsedBundle, error) {
	parsed, err := parseBundle(data, c.logged)
	switch {
	case err != nil:
		return parsed, malformed("the bundle is not a well-formed Sigstore bundle of version 0.1 to 0.3")
	case parsed.certificate && c.identities == nil:
		return parsed, keyless()
	case !parsed.certificate && c.identities != nil:
		return parsed, keyed()
	}
	return parsed, nil
}

// readStatement returns what an envelope's payload says about the image want.
func readStatement(payload []byte, want digest.Digest) ([]claims, error) {
	parsed, err := parseStatement(payload)
	switch {
	case errors.Is(err, errPredicate):
		return nil, wrongPredicate()
	case errors.Is(err, errTooLarge):
		return nil, limitExceeded("signed statement", maxPayload)
	case err != nil:
		return nil, malformed("the signed statement " + err.Error())
	}
	said := parsed.about(want)
	if said == nil {
		return nil, wrongDigest(want, parsed.digests()...)
	}
	return said, nil
}

// checkMessage refuses a message signature that is not for want, or that cannot be
// verified knowing only the digest.
func (c *Checker) checkMessage(parsed parsedBundle, want digest.Digest) error {
	if parsed.algorithm != protocommon.HashAlgorithm_SHA2_256 {
		return unsupported()
	}
	if signed := hex.EncodeToString(parsed.digest); signed != want.Encoded() {
		return wrongDigest(want, digest.SHA256.String()+":"+signed)
	}
	if c.identities != nil {
		return nil
	}
	for _, key := range c.keys {
		for _, algorithm := range key.algorithms {
			if algorithm.digestOnly {
				return nil
			}
		}
	}
	return unsupported()
}

// signerOf returns who signed the bundle as a signature of want, if want is what its
// statement is about, which the caller reads. The bundle's hint at a key only chooses
// the words of a refusal.
func (c *Checker) signerOf(ctx context.Context, parsed parsedBundle, want digest.Digest) (signer, error) {
	if c.identities != nil {
		return c.identities.checkIdentity(ctx, parsed, want)
	}
	hinted := false
	for _, key := range c.keys {
		hinted = hinted || parsed.hint == key.hint
		for _, algorithm := range key.algorithms {
			// Without the artifact the library would verify a plain Ed25519
			// signature over no bytes at all, whatever the digest.
			if parsed.message && !algorithm.digestOnly {
				continue
			}
			if ctx.Err() != nil {
				return signer{}, ctx.Err()
			}
			asked, artifact, err := parsed.question(want)
			if err != nil {
				return signer{}, malformed("the image to check has a damaged digest")
			}
			switch err := algorithm.verifyBundle(asked, artifact); {
			case err == nil:
				return key.signer(), nil
			case errors.Is(err, errPanic):
				return signer{}, malformed("the bundle is malformed")
			}
		}
	}
	if hinted {
		return signer{}, tampered("the bundle names a trusted key, but that key did not sign its content" + c.orLog())
	}
	return signer{}, c.wrongKey()
}

// verifyBundle verifies what a bundle says of an artifact with one key.
func (a algorithm) verifyBundle(asked *bundle.Bundle, artifact bundleverify.ArtifactPolicyOption) error {
	return guard(func() error {
		_, err := a.bundles.Verify(asked, bundleverify.NewPolicy(artifact, bundleverify.WithKey()))
		return err
	})
}
