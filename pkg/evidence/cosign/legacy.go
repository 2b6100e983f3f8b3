package cosign

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// checkLegacy checks a simple-signing payload and the signature in the layer's
// annotation. With keys and no log, it ignores the annotations for certificate, chain,
// log entry and timestamp: they prove nothing about a key, and can only do harm.
func (c *Checker) checkLegacy(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) (policy.Proof, error) {
	b64 := layer.Annotations[static.SignatureAnnotationKey]
	switch {
	case b64 == "":
		return policy.Proof{}, noSignature()
	case len(b64) > maxSignature:
		return policy.Proof{}, limitExceeded("signature annotation", maxSignature)
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	switch {
	case err != nil:
		return policy.Proof{}, malformed("the signature annotation is not base64")
	case c.identities != nil && layer.Annotations[annotationCertificate] == "":
		return policy.Proof{}, keyed()
	}
	data, err := c.payload(ctx, subject, layer, fetch)
	if err != nil {
		return policy.Proof{}, err
	}
	payload, err := parsePayload(data)
	if err != nil {
		return policy.Proof{}, refused(fmt.Errorf("the signed payload %w", err))
	}
	want := subject.Descriptor.Digest
	if payload.digest != want.String() {
		return policy.Proof{}, wrongDigest(want, payload.digest)
	}
	said := claims{repository: payload.reference, annotations: payload.optional}
	if c.identities != nil || c.logged {
		by, err := c.rebuiltSigner(ctx, layer, data, raw)
		if err != nil {
			return policy.Proof{}, err
		}
		return c.accept(subject, layer.Digest, by, said)
	}
	key, algorithm, ok, err := c.match(ctx, contentOf(data), raw)
	switch {
	case err != nil:
		return policy.Proof{}, err
	case !ok || verifyLegacy(ctx, algorithm, data, b64, want) != nil:
		return policy.Proof{}, c.wrongKey()
	}
	return c.accept(subject, layer.Digest, key.signer(), said)
}

// rebuiltSigner verifies a payload as a bundle that is rebuilt from the layer's
// annotations, and returns its signer.
func (s *signers) rebuiltSigner(ctx context.Context, layer ocispec.Descriptor, payload, signature []byte) (signer, error) {
	rebuilt, err := s.rebuild(layer, messageOf(payload, signature, crypto.SHA256))
	if err != nil {
		return signer{}, refused(err)
	}
	if s.identities != nil {
		return s.identities.checkPayload(ctx, rebuilt, bytes.NewReader(payload))
	}
	key, algorithm, ok, err := s.match(ctx, contentOf(payload), signature)
	switch {
	case err != nil:
		return signer{}, err
	case !ok || algorithm.verifyBundle(rebuilt, bundleverify.WithArtifact(bytes.NewReader(payload))) != nil:
		return signer{}, s.wrongKey()
	}
	return key.signer(), nil
}

// payload returns the signed bytes. It only fetches them if they cannot be derived from
// the image's name.
func (c *Checker) payload(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) ([]byte, error) {
	if len(c.annotations) == 0 {
		if built, ok := rebuildPayload(subject.Reference, layer.Digest); ok {
			return built, nil
		}
	}
	return read(ctx, fetch, layer, "signed payload", maxPayload)
}

// verifyLegacy verifies a signature with one key, and that the payload names want.
func verifyLegacy(ctx context.Context, by algorithm, payload []byte, b64 string, want digest.Digest) error {
	hash, err := v1.NewHash(want.String())
	if err != nil {
		return err
	}
	return guard(func() error {
		sig, err := static.NewSignature(payload, b64)
		if err != nil {
			return err
		}
		_, err = cosign.VerifyImageSignature(ctx, sig, hash, &cosign.CheckOpts{
			SigVerifier:   by.verifier,
			ClaimVerifier: cosign.SimpleClaimVerifier,
			IgnoreTlog:    true,
			Offline:       true,
		})
		return err
	})
}
