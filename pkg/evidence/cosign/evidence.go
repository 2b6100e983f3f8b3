package cosign

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/opencontainers/go-digest"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/landwaiter/landwaiter/pkg/formats/intoto"
)

// Evidence is what a bundle proves.
type Evidence struct {
	// Signer identifies the signer, and differs between signers.
	Signer string
	// Facts about the signer: keyFingerprint, or issuer, subject and claims.
	Facts map[string]any
	// Statement is the signed in-toto statement, nil for a signature of the artifact's
	// bytes. One of its subjects has the artifact's digest. The caller judges its
	// predicate.
	Statement *intoto.Statement
}

// VerifyBundle verifies that a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3) is
// about the artifact with a SHA-256 digest, and made by a signer that the checker trusts.
// It returns a [verify.Refusal] for evidence that does not count. It ignores the
// statement's predicate type, annotations and repository.
func (c *Checker) VerifyBundle(ctx context.Context, data []byte, artifact digest.Digest) (Evidence, error) {
	return c.verifyBundle(ctx, data, artifact)
}

func (s *signers) verifyBundle(ctx context.Context, data []byte, artifact digest.Digest) (Evidence, error) {
	if artifact.Validate() != nil || artifact.Algorithm() != digest.SHA256 {
		return Evidence{}, malformed("the artifact has no sha256 digest")
	}
	if len(data) > maxBundle {
		return Evidence{}, limitExceeded("bundle", maxBundle)
	}
	parsed, err := s.open(data)
	if err != nil {
		return Evidence{}, err
	}
	return s.verifyParsed(ctx, parsed, artifact)
}

// verifyRebuilt verifies a bundle that was rebuilt from a legacy attestation.
func (s *signers) verifyRebuilt(ctx context.Context, rebuilt *bundle.Bundle, artifact digest.Digest) (Evidence, error) {
	parsed := parsedBundle{Bundle: rebuilt}
	if err := guard(func() error { return parsed.read(s.logged) }); err != nil {
		return Evidence{}, refused(err)
	}
	return s.verifyParsed(ctx, parsed, artifact)
}

func (s *signers) verifyParsed(ctx context.Context, parsed parsedBundle, artifact digest.Digest) (Evidence, error) {
	if parsed.message {
		if err := s.checkMessage(parsed, artifact); err != nil {
			return Evidence{}, err
		}
	}
	by, err := s.signerOf(ctx, parsed, artifact)
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

// open parses a bundle. It refuses a certificate where keys are trusted, and a key where
// identities are.
func (s *signers) open(data []byte) (parsedBundle, error) {
	parsed, err := s.parse(data)
	switch {
	case err != nil:
		return parsed, refused(err)
	case parsed.certificate && s.identities == nil:
		return parsed, keyless()
	case !parsed.certificate && s.identities != nil:
		return parsed, keyed()
	}
	return parsed, nil
}

// checkMessage refuses a message signature that is not for want, or that cannot be
// verified knowing only the digest.
func (s *signers) checkMessage(parsed parsedBundle, want digest.Digest) error {
	if parsed.algorithm != protocommon.HashAlgorithm_SHA2_256 {
		return unsupported()
	}
	if signed := hex.EncodeToString(parsed.digest); signed != want.Encoded() {
		return wrongDigest(want, digest.SHA256.String()+":"+signed)
	}
	if s.identities != nil {
		return nil
	}
	for _, key := range s.keys {
		for _, algorithm := range key.algorithms {
			if algorithm.digestOnly {
				return nil
			}
		}
	}
	return unsupported()
}
