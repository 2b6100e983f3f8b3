package cosign

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	bundleverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// Evidence is the proof in a bundle.
type Evidence struct {
	// Signer identifies the signer, and differs between signers.
	Signer string
	// Facts about the signer: keyFingerprint, or issuer, subject and claims.
	Facts map[string]any
	// Statement is the signed in-toto statement, nil for a signature of the artifact's bytes.
	// One of its subjects has the artifact's digest. The caller checks its predicate.
	Statement *intake.Statement
}

// VerifyBundle verifies that a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3) is
// about the artifact with a SHA-256 digest, and made by a signer that the checker trusts.
// It returns a [verify.Refusal] for evidence that does not count. It ignores the
// statement's predicate type, annotations and repository.
func (s *signers) VerifyBundle(ctx context.Context, data []byte, artifact digest.Digest) (Evidence, error) {
	if artifact.Validate() != nil || artifact.Algorithm() != digest.SHA256 {
		return Evidence{}, malformed("the artifact has no sha256 digest")
	}
	parsed, err := s.open(ctx, data)
	if err != nil {
		return Evidence{}, err
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
	statement, err := intake.ParseStatement(parsed.payload)
	switch {
	case err != nil:
		return Evidence{}, malformed("the signed statement " + err.Error())
	case !slices.Contains(statement.Digests, artifact.Encoded()): // the library was not called
		return Evidence{}, wrongDigest(artifact, digest.SHA256.String()+":"+statement.Digests[0])
	}
	proven.Statement = &statement
	return proven, nil
}

// open parses a bundle. It refuses a certificate where keys are trusted, and a key where
// identities are.
func (s *signers) open(ctx context.Context, data []byte) (parsedBundle, error) {
	if err := verify.Hold(ctx, bundleMemory*int64(len(data))); err != nil {
		return parsedBundle{}, err
	}
	parsed, err := s.parse(data)
	if err := verify.Step(ctx); err != nil {
		return parsed, err
	}
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
		if slices.ContainsFunc(key.algorithms, func(a algorithm) bool { return a.hash == crypto.SHA256 }) {
			return nil
		}
	}
	return unsupported()
}

// checkBundle checks a Sigstore bundle (sigstore_bundle.proto, v0.1 to v0.3) that holds
// an in-toto statement of cosign's own predicate type in a DSSE envelope, or a plain
// signature of the manifest's bytes.
func (c *Checker) checkBundle(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor,
	fetch verify.Fetch) (policy.Proof, error) {
	if layer.Size > maxSignatureBundle {
		return policy.Proof{},
			verify.Refuse(policy.ReasonLimitExceeded, fmt.Sprintf("the bundle has %d bytes, too many for an image signature", layer.Size),
				"sign the image itself with cosign sign")
	}
	data, err := read(ctx, fetch, layer, "bundle", maxSignatureBundle)
	if err != nil {
		return policy.Proof{}, err
	}
	parsed, err := c.open(ctx, data)
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

// signedClaims returns a bundle's claims about the image want. The claims are not verified
// yet: refusing here only saves verifying evidence that would not count.
func (c *Checker) signedClaims(parsed parsedBundle, want digest.Digest) ([]claims, error) {
	if !parsed.message {
		return readStatement(parsed.payload, want)
	}
	if err := c.checkMessage(parsed, want); err != nil {
		return nil, err
	}
	return []claims{{}}, nil // a message signature only covers the digest
}

// readStatement returns the claims of an envelope's payload about the image want.
func readStatement(payload []byte, want digest.Digest) ([]claims, error) {
	subjects, err := parseStatement(payload)
	switch {
	case errors.Is(err, errPredicate):
		return nil, wrongPredicate()
	case errors.Is(err, errTooLarge):
		return nil, limitExceeded("signed statement", maxPayload)
	case err != nil:
		return nil, refused(fmt.Errorf("the signed statement %w", err))
	}
	var said []claims
	other := ""
	for _, subject := range subjects {
		if subject.digest == want.String() {
			said = append(said, subject.claims)
		}
		other = cmp.Or(other, subject.digest)
	}
	if said == nil {
		return nil, wrongDigest(want, other)
	}
	return said, nil
}

// checkLegacy checks a simple-signing payload and the signature in the layer's
// annotation. With keys and no log, it ignores the annotations for certificate, chain,
// log entry and timestamp: they prove nothing about a key, and can only do harm.
func (c *Checker) checkLegacy(ctx context.Context, subject verify.Subject, layer ocispec.Descriptor,
	fetch verify.Fetch) (policy.Proof, error) {
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
	key, algorithm, ok, err := c.choose(ctx, data, raw)
	switch {
	case err != nil:
		return policy.Proof{}, err
	case !ok:
		return policy.Proof{}, c.unmatched(ctx, contentOf(data), raw, "")
	}
	if err := verifyLegacy(ctx, algorithm, data, b64, want); err != nil {
		if content := contentOf(data); !algorithm.verifies(content, raw) {
			return policy.Proof{}, c.unmatched(ctx, content, raw, "")
		}
		return policy.Proof{},
			malformed(fmt.Sprintf("the signature by key %s of %s cannot be verified: %s", key.Fingerprint, key.Name, quote(err)))
	}
	return c.accept(subject, layer.Digest, key.signer(), said)
}

// rebuiltSigner verifies a payload as a bundle that is rebuilt from the layer's annotations,
// and returns its signer.
func (s *signers) rebuiltSigner(ctx context.Context, layer ocispec.Descriptor, payload, signature []byte) (signer, error) {
	rebuilt, err := s.rebuild(layer, &protobundle.Bundle{Content: messageOf(payload, signature, crypto.SHA256)})
	if err != nil {
		return signer{}, refused(err)
	}
	if s.identities != nil {
		return s.identities.signerOf(ctx, rebuilt, bundleverify.WithArtifact(bytes.NewReader(payload)))
	}
	content := contentOf(payload)
	key, algorithm, ok, err := s.match(ctx, content, signature)
	switch {
	case err != nil:
		return signer{}, err
	case !ok:
		return signer{}, s.unmatched(ctx, content, signature, "")
	}
	if err := algorithm.verifyBundle(rebuilt, bundleverify.WithArtifact(bytes.NewReader(payload))); err != nil {
		return signer{}, s.refusedThough(key, rebuilt, err)
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

// Media types of the layers that hold signatures.
const (
	// MediaTypeSimpleSigning is a legacy payload, whose signature is an annotation of
	// the layer.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// MediaTypeBundle is a Sigstore bundle v0.3, which cosign v3 writes.
	MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

	mediaTypeBundleOld = "application/vnd.dev.sigstore.bundle+json;version=0."
)

func isBundle(mediaType string) bool {
	switch mediaType {
	case MediaTypeBundle, mediaTypeBundleOld + "1", mediaTypeBundleOld + "2", mediaTypeBundleOld + "3":
		return true
	}
	return false
}

// checkSubject refuses an image without a SHA-256 digest, or with two digests.
func checkSubject(subject verify.Subject) error {
	d := subject.Descriptor.Digest
	if d != subject.Reference.Digest || d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return malformed("the image to check has no single sha256 digest")
	}
	return nil
}

// read fetches a layer of at most limit bytes; fetch has its own limit. what names the layer in refusals.
func read(ctx context.Context, fetch verify.Fetch, layer ocispec.Descriptor, what string, limit int64) ([]byte, error) {
	if layer.Size > limit {
		return nil, limitExceeded(what, limit)
	}
	data, err := fetch(ctx, layer, limit)
	switch {
	case err != nil:
		return nil, err
	case len(data) == 0:
		return nil, malformed("the " + what + " is empty")
	case int64(len(data)) > limit:
		return nil, limitExceeded(what, limit)
	case layer.Digest.Validate() != nil || layer.Digest.Algorithm().FromBytes(data) != layer.Digest:
		return nil, verify.PermanentWith(policy.ReasonContentMismatch, errors.New("the content of the "+what+" is not what its digest says"),
			"repair the registry, or the proxy in front of it")
	}
	return data, nil
}
