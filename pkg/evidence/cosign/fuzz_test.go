package cosign

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

const fuzzedDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

// FuzzPayload compares the strict parser with the library's: they agree on every payload
// that the strict parser accepts.
func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"critical":{"identity":{"docker-reference":"a/b"},"image":{"docker-manifest-digest":"sha256:00"},"type":"cosign container image ` +
		`signature"},"optional":{"a":"b"}}`))
	f.Add([]byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":""},"type":"cosign container image ` +
		`signature"},"optional":null}`))
	f.Add([]byte(`{"critical":{},"critical":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, err := parsePayload(data)
		if err != nil {
			return
		}
		var theirs payload.SimpleContainerImage
		require.NoError(t, json.Unmarshal(data, &theirs))
		require.Equal(t, payload.CosignSignatureType, theirs.Critical.Type)
		require.Equal(t, theirs.Critical.Image.DockerManifestDigest, mine.digest)
		require.Equal(t, theirs.Critical.Identity.DockerReference, mine.reference)
		for name, value := range theirs.Optional {
			if text, ok := value.(string); ok {
				require.Equal(t, text, mine.optional[name])
			}
		}
	})
}

// FuzzStatement does the same for the statement of a bundle.
func FuzzStatement(f *testing.F) {
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"00"},"annotations":{"a":"b"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`))
	f.Add([]byte(`{"predicateType":"https://sigstore.dev/cosign/sign/v1","PredicateType":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, err := parseStatement(data)
		if err != nil {
			return
		}
		var theirs map[string]any
		require.NoError(t, json.Unmarshal(data, &theirs))
		require.Equal(t, PredicateTypeSignature, theirs["predicateType"])
		subjects, ok := theirs["subject"].([]any)
		require.True(t, ok)
		require.Len(t, mine, len(subjects))
	})
}

// FuzzBundle checks bundles that no trusted key signed: the checker must return, and
// never with a Valid finding.
func FuzzBundle(f *testing.F) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	checker, err := New(Options{Signers: Signers{InsecureIgnoreLog: true,
		Keys: []Key{{Name: "TrustStore a/b", Public: private.Public(), Fingerprint: "sha256:x"}}}})
	require.NoError(f, err)
	ref, err := image.Parse("registry.example.com/a@" + fuzzedDigest.String())
	require.NoError(f, err)
	subject := verify.Subject{Reference: ref, Descriptor: ocispec.Descriptor{Digest: fuzzedDigest}}
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},` +
		`"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]}}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.1","verificationMaterial":{"publicKey":{},"tlogEntries":[{"logIndex":"1"}]},` +
		`"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},"signature":"AA=="}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		layer := ocispec.Descriptor{MediaType: MediaTypeBundle, Digest: digest.FromBytes(data), Size: int64(len(data))}
		fetch := func(context.Context, ocispec.Descriptor, int64) ([]byte, error) { return data, nil }
		finding := verify.Found(checker.Check(context.Background(), subject, verify.Signature{Layer: layer}, fetch, time.Time{}))
		require.Equal(t, policy.Invalid, finding.Result())
		require.NotEmpty(t, finding.Reason)
	})
}

func TestProofWithoutSignerIsNotValid(t *testing.T) {
	for _, p := range []policy.Proof{{}, signer{}.proof("", ""), signer{}.proof(fuzzedDigest, PredicateTypeSignature)} {
		finding := p.Finding()
		require.Equal(t, policy.Invalid, finding.Result())
		require.NotEmpty(t, finding.Reason)
	}
}

func TestPanicOfALibraryIsAnError(t *testing.T) {
	require.ErrorIs(t, guard(func() error { panic("hostile input") }), errPanic)
	require.NoError(t, guard(func() error { return nil }))
}

func TestRebuildsNothingThatDoesNotHaveTheDigest(t *testing.T) {
	ref, err := image.Parse("registry.example.com/a@" + fuzzedDigest.String())
	require.NoError(t, err)
	built, ok := rebuildPayload(ref, fuzzedDigest)
	require.False(t, ok)
	require.Nil(t, built)
}
