package cosign_test

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const store = "TrustStore team-a/team-keys"

// newImage returns an image that exists in no registry.
func newImage(t testing.TB, name string) fixture.Image {
	t.Helper()
	manifest := []byte(fmt.Sprintf(`{"schemaVersion":2,"test":%q}`, t.Name()+name))
	descriptor := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, manifest)
	ref, err := image.Parse(name + "@" + descriptor.Digest.String())
	require.NoError(t, err)
	return fixture.Image{Reference: ref, Descriptor: descriptor}
}

func newKey(t testing.TB, algorithm fixture.Algorithm) *fixture.CosignKey {
	t.Helper()
	key, err := fixture.NewCosignKey(algorithm)
	require.NoError(t, err)
	return key
}

func trusted(keys ...*fixture.CosignKey) []cosign.Key {
	var all []cosign.Key
	for _, key := range keys {
		all = append(all, cosign.Key{Name: store, Public: key.Private.Public(), Fingerprint: key.Fingerprint})
	}
	return all
}

// signedBy trusts keys and ignores transparency logs.
func signedBy(keys ...*fixture.CosignKey) cosign.Signers {
	return cosign.Signers{Keys: trusted(keys...), InsecureIgnoreLog: true}
}

func newChecker(t testing.TB, options cosign.Options) *cosign.Checker {
	t.Helper()
	checker, err := cosign.New(options)
	require.NoError(t, err)
	return checker
}

// evidence is a signature with its blobs.
type evidence struct {
	layer ocispec.Descriptor
	data  []byte
	reads int
}

func (e *evidence) signature() verify.Signature {
	return verify.Signature{Manifest: ocispec.Manifest{Layers: []ocispec.Descriptor{e.layer}}, Layer: e.layer}
}

// fetch stands for a registry's Fetch: it returns only what the digest says.
func (e *evidence) fetch(_ context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	e.reads++
	switch {
	case desc.Size > limit:
		return nil, verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("blob %s is over the limit", desc.Digest))
	case digest.FromBytes(e.data) != desc.Digest:
		return nil, verify.Permanent(policy.ReasonContentMismatch, fmt.Errorf("blob %s has other content", desc.Digest))
	}
	return e.data, nil
}

func legacy(t testing.TB, img fixture.Image, key *fixture.CosignKey, options fixture.CosignOptions) *evidence {
	t.Helper()
	payload, annotations, err := fixture.CosignSignature(img.Reference, key, options)
	require.NoError(t, err)
	layer := content.NewDescriptorFromBytes(cosign.MediaTypeSimpleSigning, payload)
	layer.Annotations = annotations
	return &evidence{layer: layer, data: payload}
}

func bundled(t testing.TB, img fixture.Image, key *fixture.CosignKey, options fixture.CosignOptions) *evidence {
	t.Helper()
	text, err := fixture.CosignBundle(img, key, options)
	require.NoError(t, err)
	return bundleOf(text)
}

func bundleOf(text []byte) *evidence {
	return &evidence{layer: content.NewDescriptorFromBytes(cosign.MediaTypeBundle, text), data: text}
}

// edited returns a bundle with parts of its JSON changed.
func edited(t testing.TB, e *evidence, edit func(bundle map[string]any)) *evidence {
	t.Helper()
	var bundle map[string]any
	require.NoError(t, json.Unmarshal(e.data, &bundle))
	edit(bundle)
	text, err := json.Marshal(bundle)
	require.NoError(t, err)
	return bundleOf(text)
}

func check(c *cosign.Checker, img fixture.Image, e *evidence) policy.Finding {
	subject := verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
	return verify.Found(c.Check(context.Background(), subject, e.signature(), e.fetch, time.Time{}))
}

// requireValid fails unless the finding is Valid and names key.
func requireValid(t testing.TB, finding policy.Finding, key *fixture.CosignKey) {
	t.Helper()
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
	require.Equal(t, key.Fingerprint, finding.Signer())
	require.Contains(t, finding.Message, key.Fingerprint)
	require.Contains(t, finding.Message, store)
	require.Empty(t, finding.Reason)
	require.NotEmpty(t, finding.Extensions["signatures"])
}

// requireInvalid fails unless the finding is Invalid for this reason, names no signer,
// and has a message.
func requireInvalid(t testing.TB, finding policy.Finding, reason policy.Reason) {
	t.Helper()
	require.Equal(t, policy.Invalid, finding.Result())
	require.Equal(t, reason, finding.Reason, finding.Message)
	require.Empty(t, finding.Signer())
	require.NotEmpty(t, finding.Message)
}

// withHash returns a copy of key that signs with another hash.
func withHash(key *fixture.CosignKey, hash crypto.Hash) *fixture.CosignKey {
	other := *key
	other.Hash = hash
	return &other
}
