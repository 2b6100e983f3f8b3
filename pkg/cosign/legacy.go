package cosign

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"errors"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// errPanic stands for a panic of a library: whatever made it do so is not a
// signature.
var errPanic = errors.New("the library gave up")

// checkLegacy checks a simple-signing payload and the signature in the layer's
// annotation. For a key alone, certificate, chain, log entry and timestamp
// annotations are dropped: they prove nothing about it, and can only do harm.
func (c *Checker) checkLegacy(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) policy.Finding {
	b64 := layer.Annotations[static.SignatureAnnotationKey]
	switch {
	case b64 == "":
		return noSignature()
	case len(b64) > maxSignature:
		return limitExceeded("signature annotation", maxSignature)
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	switch {
	case err != nil:
		return malformed("the signature annotation is not base64")
	case c.identities != nil && layer.Annotations[annotationCertificate] == "":
		return keyed()
	}
	data, failure := c.payload(ctx, subject, layer, fetch)
	if data == nil {
		return failure
	}
	payload, err := parsePayload(data)
	if err != nil {
		return malformed("the signed payload " + err.Error())
	}
	want := subject.Descriptor.Digest
	if payload.digest != want.String() {
		return wrongDigest(want, payload.digest)
	}
	said := claims{repository: payload.reference, annotations: payload.optional}
	if c.identities != nil || c.logged {
		by, failure := c.rebuiltSigner(ctx, layer, data, raw)
		if by.id == "" {
			return failure
		}
		return c.accept(subject, layer.Digest, by, said)
	}
	for _, key := range c.keys {
		for _, algorithm := range key.algorithms {
			if ctx.Err() != nil {
				return verify.FindingOf(ctx.Err())
			}
			switch err := verifyLegacy(ctx, algorithm, data, b64, want); {
			case err == nil:
				return c.accept(subject, layer.Digest, key.signer(), said)
			case errors.Is(err, errPanic):
				return malformed("the signature is malformed")
			}
		}
	}
	return c.wrongKey()
}

// rebuiltSigner returns who signed a payload, judged as a bundle made of the
// layer's annotations.
func (c *Checker) rebuiltSigner(ctx context.Context, layer ocispec.Descriptor, payload, signature []byte) (signer, policy.Finding) {
	rebuilt, err := c.rebuild(layer, messageOf(payload, signature, crypto.SHA256))
	if err != nil {
		return signer{}, malformed(err.Error())
	}
	if c.identities != nil {
		return c.identities.checkPayload(ctx, rebuilt, bytes.NewReader(payload))
	}
	for _, key := range c.keys {
		for _, algorithm := range key.algorithms {
			if ctx.Err() != nil {
				return signer{}, verify.FindingOf(ctx.Err())
			}
			if algorithm.verifyBundle(rebuilt, bundleverify.WithArtifact(bytes.NewReader(payload))) == nil {
				return key.signer(), policy.Finding{}
			}
		}
	}
	return signer{}, c.wrongKey()
}

// payload returns the bytes that were signed, or the finding that says why not.
func (c *Checker) payload(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor, fetch verify.Fetch) ([]byte, policy.Finding) {
	if len(c.annotations) == 0 {
		if built, ok := rebuildPayload(subject.Reference, layer.Digest); ok {
			return built, policy.Finding{}
		}
	}
	return read(ctx, fetch, layer, "signed payload", maxPayload)
}

// read fetches a layer of at most limit bytes; without data, the finding says
// why.
func read(ctx context.Context, fetch verify.Fetch, layer ocispec.Descriptor, what string, limit int) ([]byte, policy.Finding) {
	if layer.Size > int64(limit) {
		return nil, limitExceeded(what, limit)
	}
	data, err := fetch(ctx, layer, int64(limit))
	switch {
	case err != nil:
		finding := verify.FindingOf(err)
		if finding.Reason == policy.ReasonContentMismatch {
			return nil, tampered("the content of the " + what + " is not what its digest says")
		}
		return nil, finding
	case len(data) == 0:
		return nil, malformed("the " + what + " is empty")
	case len(data) > limit:
		return nil, limitExceeded(what, limit)
	case digest.FromBytes(data) != layer.Digest:
		return nil, tampered("the content of the " + what + " is not what its digest says")
	}
	return data, policy.Finding{}
}

// verifyLegacy verifies one signature with one key, and that the payload is
// about want.
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

// guard runs a library call and turns a panic into an error.
func guard(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return call()
}
