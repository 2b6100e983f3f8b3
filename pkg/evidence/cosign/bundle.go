package cosign

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// checkBundle checks a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3) that holds
// an in-toto statement of cosign's own predicate type in a DSSE envelope, or a plain
// signature of the manifest's bytes.
func (c *Checker) checkBundle(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) (policy.Proof, error) {
	data, err := read(ctx, fetch, layer, "bundle", maxBundle)
	if err != nil {
		return policy.Proof{}, err
	}
	parsed, err := c.open(data)
	if err != nil {
		return policy.Proof{}, err
	}
	said, err := c.signedClaims(parsed, subject.Descriptor.Digest)
	if err != nil {
		return policy.Proof{}, err
	}
	by, err := c.signerOf(ctx, parsed, subject.Descriptor.Digest)
	if err != nil {
		return policy.Proof{}, err
	}
	return c.accept(subject, layer.Digest, by, said...)
}

// signedClaims returns what a bundle claims about the image want. The claims are not
// verified yet: refusing here only saves verifying evidence that would not count.
func (c *Checker) signedClaims(parsed parsedBundle, want digest.Digest) ([]claims, error) {
	if !parsed.message {
		return readStatement(parsed.payload, want)
	}
	if err := c.checkMessage(parsed, want); err != nil {
		return nil, err
	}
	return []claims{{}}, nil // a message signature only covers the digest
}

// readStatement returns what an envelope's payload claims about the image want.
func readStatement(payload []byte, want digest.Digest) ([]claims, error) {
	parsed, err := parseStatement(payload)
	switch {
	case errors.Is(err, errPredicate):
		return nil, wrongPredicate()
	case errors.Is(err, errTooLarge):
		return nil, limitExceeded("signed statement", maxPayload)
	case err != nil:
		return nil, refused(fmt.Errorf("the signed statement %w", err))
	}
	said := parsed.about(want)
	if said == nil {
		return nil, wrongDigest(want, parsed.digests()...)
	}
	return said, nil
}
