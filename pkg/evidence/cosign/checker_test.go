package cosign_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// formats are the formats of a signature, each stored in a real registry.
var formats = map[string]func(*fixture.Registry, context.Context, fixture.Image, *fixture.CosignKey, fixture.CosignOptions) (ocispec.Descriptor, error){
	"legacy tag":      (*fixture.Registry).SignCosign,
	"legacy referrer": (*fixture.Registry).SignCosignReferrer,
	"bundle":          (*fixture.Registry).SignCosignBundle,
}

func TestAcceptsEveryKeyTypeInEveryFormat(t *testing.T) {
	ctx := context.Background()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	defer registry.Close()
	for _, algorithm := range []fixture.Algorithm{fixture.ECDSAP256, fixture.ECDSAP384, fixture.ECDSAP521, fixture.Ed25519, fixture.RSA2048} {
		key, stranger := newKey(t, algorithm), newKey(t, algorithm)
		for format, sign := range formats {
			for what, annotations := range map[string]map[string]string{"plain": nil, "annotated": {"env": "prod"}} {
				t.Run(string(algorithm)+" "+format+" "+what, func(t *testing.T) {
					img, err := registry.PushImage(ctx, "team-a/app", "v1")
					require.NoError(t, err)
					manifest, err := sign(registry, ctx, img, key, fixture.CosignOptions{Annotations: annotations})
					require.NoError(t, err)
					options := cosign.Options{Signers: signedBy(stranger, key), Annotations: annotations}
					requireValid(t, checkStored(t, registry, options, img, manifest), key)
					options.Signers = signedBy(stranger)
					require.Equal(t, policy.ReasonWrongKey, checkStored(t, registry, options, img, manifest).Reason)
				})
			}
		}
	}
}

// checkStored checks the only layer of a manifest that a registry holds.
func checkStored(t *testing.T, registry *fixture.Registry, options cosign.Options, img fixture.Image, descriptor ocispec.Descriptor) policy.Finding {
	t.Helper()
	ctx := context.Background()
	repository, err := registry.Repository(ctx, img.Reference.Repository)
	require.NoError(t, err)
	text, err := content.FetchAll(ctx, repository, descriptor)
	require.NoError(t, err)
	var manifest ocispec.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Len(t, manifest.Layers, 1)
	s := verify.Signature{Descriptor: descriptor, Manifest: manifest, Layer: manifest.Layers[0]}
	fetch := func(ctx context.Context, desc ocispec.Descriptor, _ int64) ([]byte, error) {
		return content.FetchAll(ctx, repository.Blobs(), desc)
	}
	checker := newChecker(t, options)
	require.True(t, checker.Accepts(s))
	return verify.Found(checker.Check(ctx, verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}, s, fetch, time.Time{}))
}

func TestVerifiesWithTheHashThatTheSignerUsed(t *testing.T) {
	makers := map[string]func(testing.TB, fixture.Image, *fixture.CosignKey, fixture.CosignOptions) *evidence{"legacy": legacy, "bundle": bundled}
	img := newImage(t, "registry.example.com/team-a/app")
	for name, tt := range map[string]struct {
		algorithm fixture.Algorithm
		signed    crypto.Hash
		declared  crypto.Hash
		valid     bool
	}{
		"P-384 with the SHA-256 of older cosign":    {fixture.ECDSAP384, crypto.SHA256, 0, true},
		"P-521 with the SHA-256 of older cosign":    {fixture.ECDSAP521, crypto.SHA256, 0, true},
		"P-256 with a declared SHA-512":             {fixture.ECDSAP256, crypto.SHA512, crypto.SHA512, true},
		"RSA with a declared SHA-384":               {fixture.RSA2048, crypto.SHA384, crypto.SHA384, true},
		"pure Ed25519 of older cosign":              {fixture.Ed25519, 0, 0, true},
		"Ed25519ph of current cosign":               {fixture.Ed25519, crypto.SHA512, 0, true},
		"P-384 with another hash than declared":     {fixture.ECDSAP384, crypto.SHA256, crypto.SHA384, false},
		"RSA with another hash than cosign's":       {fixture.RSA2048, crypto.SHA512, 0, false},
		"P-256 with SHA-512 that nobody declared":   {fixture.ECDSAP256, crypto.SHA512, 0, false},
		"Ed25519, for which a declaration is moot":  {fixture.Ed25519, crypto.SHA512, crypto.SHA256, true},
		"P-256 with SHA-256, declared as SHA-384":   {fixture.ECDSAP256, crypto.SHA256, crypto.SHA384, false},
		"P-521 with the declared SHA-512 of cosign": {fixture.ECDSAP521, crypto.SHA512, crypto.SHA512, true},
	} {
		for format, sign := range makers {
			t.Run(name+" "+format, func(t *testing.T) {
				key := withHash(newKey(t, tt.algorithm), tt.signed)
				keys := trusted(key)
				keys[0].Hash = tt.declared
				finding := check(newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: keys, InsecureIgnoreLog: true}}), img,
					sign(t, img, key, fixture.CosignOptions{}))
				if tt.valid {
					requireValid(t, finding, key)
					return
				}
				require.Equal(t, policy.Invalid, finding.Result())
			})
		}
	}
}

func TestRefusesKeysThatProveNothing(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	good := trusted(newKey(t, fixture.ECDSAP256))[0]
	with := func(change func(*cosign.Key)) []cosign.Key {
		key := good
		change(&key)
		return []cosign.Key{good, key}
	}
	for name, tt := range map[string]struct {
		keys []cosign.Key
		says string
	}{
		"no keys":         {nil, "without keys"},
		"too many keys":   {make([]cosign.Key, 65), "limit is 64"},
		"no key":          {with(func(k *cosign.Key) { k.Public = nil }), "not supported"},
		"nil ECDSA":       {with(func(k *cosign.Key) { k.Public = (*ecdsa.PublicKey)(nil) }), "not supported"},
		"nil RSA":         {with(func(k *cosign.Key) { k.Public = (*rsa.PublicKey)(nil) }), "2048"},
		"weak RSA":        {with(func(k *cosign.Key) { k.Public = weak.Public() }), "2048"},
		"small curve":     {with(func(k *cosign.Key) { k.Public = small.Public() }), "curve"},
		"short Ed25519":   {with(func(k *cosign.Key) { k.Public = ed25519.PublicKey("short") }), "bytes"},
		"private key":     {with(func(k *cosign.Key) { k.Public = weak }), "not supported"},
		"SHA-1":           {with(func(k *cosign.Key) { k.Hash = crypto.SHA1 }), "SHA-1"},
		"no fingerprint":  {with(func(k *cosign.Key) { k.Fingerprint = "" }), "fingerprint"},
		"says which key":  {with(func(k *cosign.Key) { k.Hash = crypto.MD5 }), store},
		"unlinked hashes": {with(func(k *cosign.Key) { k.Hash = crypto.SHA3_256 }), "SHA3-256"},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := cosign.New(cosign.Options{Signers: cosign.Signers{Keys: tt.keys, InsecureIgnoreLog: true}})
			require.ErrorContains(t, err, tt.says)
			require.Nil(t, checker)
		})
	}
}

func TestAcceptsByLayerMediaTypeAlone(t *testing.T) {
	checker := newChecker(t, cosign.Options{Signers: signedBy(newKey(t, fixture.ECDSAP256))})
	for mediaType, want := range map[string]bool{
		"application/vnd.dev.cosign.simplesigning.v1+json":         true,
		"application/vnd.dev.sigstore.bundle.v0.3+json":            true,
		"application/vnd.dev.sigstore.bundle+json;version=0.1":     true,
		"application/vnd.dev.sigstore.bundle+json;version=0.2":     true,
		"application/vnd.dev.sigstore.bundle+json;version=0.3":     true,
		"application/vnd.dev.sigstore.bundle.v0.4+json":            false,
		"application/vnd.dev.sigstore.bundle+json;version=0.4":     false,
		"application/jose+json":                                    false,
		"application/vnd.dsse.envelope.v1+json":                    false,
		"":                                                         false,
		"APPLICATION/VND.DEV.COSIGN.SIMPLESIGNING.V1+JSON":         false,
		"application/vnd.dev.cosign.simplesigning.v1+json;q=1":     false,
		"application/vnd.oci.image.layer.v1.tar+gzip":              false,
		"application/vnd.dev.sigstore.bundle+json;version=0.3;q=1": false,
	} {
		s := verify.Signature{Layer: ocispec.Descriptor{MediaType: mediaType}, Descriptor: ocispec.Descriptor{ArtifactType: "application/vnd.oci.empty.v1+json"}}
		require.Equal(t, want, checker.Accepts(s), mediaType)
		if !want {
			finding := verify.Found(checker.Check(context.Background(), subjectOf(newImage(t, "registry.example.com/a/b")), s, nil, time.Time{}))
			requireInvalid(t, finding, policy.ReasonMalformed)
		}
	}
}

func subjectOf(img fixture.Image) verify.Subject {
	return verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
}

func TestUnreachableEvidenceIsUnknownAndRefusedEvidenceIsInvalid(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	options := fixture.CosignOptions{Annotations: map[string]string{"a": "b"}}
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	for format, e := range map[string]*evidence{"legacy": legacy(t, img, key, options), "bundle": bundled(t, img, key, options)} {
		for name, tt := range map[string]struct {
			err    error
			result policy.Result
			reason policy.Reason
		}{
			"timeout":      {context.DeadlineExceeded, policy.Unknown, "Unreachable"},
			"server error": {errors.New("503"), policy.Unknown, "Unreachable"},
			"refused":      {verify.Permanent(policy.ReasonAccessDenied, errors.New("401")), policy.Invalid, policy.ReasonAccessDenied},
			"other bytes":  {verify.Permanent(policy.ReasonContentMismatch, errors.New("digest")), policy.Invalid, policy.ReasonContentMismatch},
		} {
			t.Run(format+" "+name, func(t *testing.T) {
				fetch := func(context.Context, ocispec.Descriptor, int64) ([]byte, error) { return nil, tt.err }
				finding := verify.Found(checker.Check(context.Background(), subjectOf(img), e.signature(), fetch, time.Time{}))
				require.Equal(t, tt.result, finding.Result())
				require.Equal(t, tt.reason, finding.Reason)
				require.Empty(t, finding.Signer())
			})
		}
		t.Run(format+" cancelled", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			finding := verify.Found(checker.Check(ctx, subjectOf(img), e.signature(), e.fetch, time.Time{}))
			require.Equal(t, policy.Unknown, finding.Result())
		})
		t.Run(format+" fetch that does not check", func(t *testing.T) {
			fetch := func(context.Context, ocispec.Descriptor, int64) ([]byte, error) { return []byte("{}"), nil }
			finding := verify.Found(checker.Check(context.Background(), subjectOf(img), e.signature(), fetch, time.Time{}))
			requireInvalid(t, finding, policy.ReasonContentMismatch)
		})
	}
}

func TestDeniesSubjectWithoutOneDigest(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	e := legacy(t, img, key, fixture.CosignOptions{})
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	other := newImage(t, "registry.example.com/team-a/other")
	for name, subject := range map[string]verify.Subject{
		"empty":            {},
		"two digests":      {Reference: img.Reference, Descriptor: other.Descriptor},
		"no descriptor":    {Reference: img.Reference},
		"no reference":     {Descriptor: img.Descriptor},
		"damaged digest":   {Reference: img.Reference.WithDigest("sha256:00"), Descriptor: ocispec.Descriptor{Digest: "sha256:00"}},
		"other digest alg": {Reference: img.Reference.WithDigest(sha512Digest), Descriptor: ocispec.Descriptor{Digest: sha512Digest}},
	} {
		t.Run(name, func(t *testing.T) {
			requireInvalid(t, verify.Found(checker.Check(context.Background(), subject, e.signature(), e.fetch, time.Time{})), policy.ReasonMalformed)
		})
	}
}

const sha512Digest = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
