package cosign_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestRebuildsPlainPayloadInsteadOfReadingIt(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	for _, name := range []string{"registry.example.com/team-a/app", "registry.example.com:5000/app", "docker.io/library/nginx"} {
		img := newImage(t, name)
		for what, tt := range map[string]struct {
			options cosign.Options
			sign    fixture.CosignOptions
			reads   int
		}{
			"plain":                   {cosign.Options{}, fixture.CosignOptions{}, 0},
			"plain, repository bound": {cosign.Options{MatchRepository: true}, fixture.CosignOptions{}, 0},
			"annotated":               {cosign.Options{}, fixture.CosignOptions{Annotations: map[string]string{"a": "b"}}, 1},
			"annotations wanted":      {cosign.Options{Annotations: map[string]string{"a": "b"}}, fixture.CosignOptions{Annotations: map[string]string{"a": "b"}}, 1},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				tt.options.Signers = signedBy(key)
				e := legacy(t, img, key, tt.sign)
				requireValid(t, check(newChecker(t, tt.options), img, e), key)
				require.Equal(t, tt.reads, e.reads)
			})
		}
	}
}

func TestDeniesSignatureForOtherDigest(t *testing.T) {
	ctx := context.Background()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	defer registry.Close()
	key := newKey(t, fixture.ECDSAP256)
	signed, err := registry.PushImage(ctx, "team-a/app", "signed")
	require.NoError(t, err)
	attacked, err := registry.PushImage(ctx, "team-a/app", "attacked")
	require.NoError(t, err)
	_, err = registry.SignCosign(ctx, signed, key, fixture.CosignOptions{})
	require.NoError(t, err)
	replayed, err := registry.CopyCosign(ctx, signed, attacked)
	require.NoError(t, err)
	finding := checkStored(t, registry, cosign.Options{Signers: signedBy(key)}, attacked, replayed)
	requireInvalid(t, finding, policy.ReasonWrongDigest)
	require.Contains(t, finding.Message, signed.Descriptor.Digest.String())
	require.Contains(t, finding.Message, attacked.Descriptor.Digest.String())
}

func TestDeniesSignatureCopiedFromOtherRepositoryWhenAsked(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-b/app")
	for name, tt := range map[string]struct {
		reference string
		matches   bool
	}{
		"same":               {"registry.example.com/team-b/app", true},
		"same with a tag":    {"registry.example.com/team-b/app:v1", true},
		"same, other case":   {"Registry.Example.com/team-b/app", true},
		"same, default port": {"registry.example.com:443/team-b/app", true},
		"other repository":   {"registry.example.com/team-a/app", false},
		"other host":         {"registry.example.org/team-b/app", false},
		"other port":         {"registry.example.com:5000/team-b/app", false},
		"longer":             {"registry.example.com/team-b/app/x", false},
		"host in the path":   {"evil.example/registry.example.com/team-b/app", false},
		"only the path":      {"team-b/app", false},
		"empty":              {"", false},
		"not a reference":    {"registry.example.com/team-b/app?x", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := legacy(t, img, key, fixture.CosignOptions{Payload: payloadOf(t, tt.reference, img.Descriptor.Digest.String(), nil)})
			requireValid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e), key)
			finding := check(newChecker(t, cosign.Options{Signers: signedBy(key), MatchRepository: true}), img, e)
			if tt.matches {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, policy.ReasonWrongRepository)
			require.Contains(t, finding.Message, "registry.example.com/team-b/app")
		})
	}
}

func payloadOf(t testing.TB, reference, digest string, optional any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": reference},
			"image":    map[string]any{"docker-manifest-digest": digest},
			"type":     "cosign container image signature",
		},
		"optional": optional,
	})
	require.NoError(t, err)
	return text
}

func TestDeniesSignatureWithoutTheWantedAnnotations(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key), Annotations: map[string]string{"env": "prod", "n": "1"}})
	for name, tt := range map[string]struct {
		signed any
		valid  bool
	}{
		"both":         {map[string]any{"env": "prod", "n": "1"}, true},
		"more":         {map[string]any{"env": "prod", "n": "1", "x": []any{map[string]any{}}}, true},
		"none":         {nil, false},
		"empty":        {map[string]any{}, false},
		"one":          {map[string]any{"env": "prod"}, false},
		"other value":  {map[string]any{"env": "test", "n": "1"}, false},
		"number":       {map[string]any{"env": "prod", "n": 1}, false},
		"map":          {map[string]any{"env": map[string]any{"env": "prod"}, "n": "1"}, false},
		"list":         {map[string]any{"env": []any{"prod"}, "n": "1"}, false},
		"null":         {map[string]any{"env": nil, "n": "1"}, false},
		"other case":   {map[string]any{"Env": "prod", "n": "1"}, false},
		"longer value": {map[string]any{"env": "prod ", "n": "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := legacy(t, img, key, fixture.CosignOptions{Payload: payloadOf(t, img.Reference.Name(), img.Descriptor.Digest.String(), tt.signed)})
			finding := check(checker, img, e)
			if tt.valid {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, policy.ReasonWrongAnnotations)
		})
	}
	t.Run("unsigned", func(t *testing.T) {
		e := legacy(t, img, key, fixture.CosignOptions{LayerAnnotations: map[string]string{"env": "prod", "n": "1"}})
		requireInvalid(t, check(checker, img, e), policy.ReasonWrongAnnotations)
	})
}

func TestDeniesDamagedLegacySignatures(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	const annotation = "dev.cosignproject.cosign/signature"
	for name, tt := range map[string]struct {
		options fixture.CosignOptions
		change  func(*evidence)
		reason  policy.Reason
	}{
		"other key":        {fixture.CosignOptions{Signature: []byte("x")}, nil, policy.ReasonWrongKey},
		"no annotation":    {fixture.CosignOptions{Signature: []byte{}}, nil, policy.ReasonNoSignature},
		"empty annotation": {fixture.CosignOptions{Signature: []byte{}, LayerAnnotations: map[string]string{annotation: ""}}, nil, policy.ReasonNoSignature},
		"no annotations":   {fixture.CosignOptions{}, func(e *evidence) { e.layer.Annotations = nil }, policy.ReasonNoSignature},
		"not base64":       {fixture.CosignOptions{LayerAnnotations: map[string]string{annotation: "\x00"}}, nil, policy.ReasonMalformed},
		"long annotation":  {fixture.CosignOptions{Signature: make([]byte, 4096)}, nil, policy.ReasonLimitExceeded},
		"large payload":    {fixture.CosignOptions{Payload: make([]byte, 64<<10+1)}, nil, policy.ReasonLimitExceeded},
		"empty payload":    {fixture.CosignOptions{Payload: []byte{}}, nil, policy.ReasonMalformed},
		"tampered payload": {fixture.CosignOptions{Annotations: map[string]string{"a": "b"}}, func(e *evidence) { e.data = append(e.data, ' ') },
			policy.ReasonContentMismatch},
		"payload that claims": {fixture.CosignOptions{Payload: payloadOf(t, "x", "sha256:evil", nil)}, nil, policy.ReasonWrongDigest},
		"digest of a digest":  {fixture.CosignOptions{Payload: payloadOf(t, "x", "", nil)}, nil, policy.ReasonWrongDigest},
	} {
		t.Run(name, func(t *testing.T) {
			e := legacy(t, img, key, tt.options)
			if tt.change != nil {
				tt.change(e)
			}
			finding := check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e)
			requireInvalid(t, finding, tt.reason)
			require.NotContains(t, finding.Message, "evil", "what a registry wrote is not repeated")
		})
	}
}

func TestLyingSizeIsReadNoFurtherThanTheLimit(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	e := legacy(t, img, key, fixture.CosignOptions{Annotations: map[string]string{"a": strings.Repeat("b", 64<<10)}})
	e.layer.Size = 1
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	requireInvalid(t, check(checker, img, e), policy.ReasonLimitExceeded)
}

// These annotations make cosign v2's image-level functions panic in goroutines of their
// own, or make an expired certificate invalidate a good signature.
func TestHostileAnnotationsNeitherCrashNorSpoilAGoodSignature(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	for name, annotations := range map[string]map[string]string{
		"bundle with an object as body": {"dev.sigstore.cosign/bundle": `{"Payload":{"body":{}}}`},
		"bundle that is not JSON":       {"dev.sigstore.cosign/bundle": "{"},
		"blank certificate":             {"dev.sigstore.cosign/certificate": " "},
		"blank chain":                   {"dev.sigstore.cosign/certificate": " ", "dev.sigstore.cosign/chain": " "},
		"damaged timestamp":             {"dev.sigstore.cosign/rfc3161timestamp": "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			requireValid(t, check(checker, img, legacy(t, img, key, fixture.CosignOptions{LayerAnnotations: annotations})), key)
			bad := legacy(t, img, newKey(t, fixture.ECDSAP256), fixture.CosignOptions{LayerAnnotations: annotations})
			requireInvalid(t, check(checker, img, bad), policy.ReasonWrongKey)
		})
	}
}

func TestWrongKeyNamesEveryTrustStoreOnce(t *testing.T) {
	img := newImage(t, "registry.example.com/team-a/app")
	keys := trusted(newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256), newKey(t, fixture.Ed25519))
	keys[2].Name = "ClusterTrustStore release"
	finding := check(newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: keys, InsecureIgnoreLog: true}}), img,
		legacy(t, img, newKey(t, fixture.ECDSAP256), fixture.CosignOptions{}))
	requireInvalid(t, finding, policy.ReasonWrongKey)
	require.Equal(t, "no key of "+store+" or ClusterTrustStore release verifies the signature", finding.Message)
	require.NotEmpty(t, finding.Remediation)
}

func TestSignatureOfIndexDoesNotCoverItsPlatforms(t *testing.T) {
	ctx := context.Background()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	defer registry.Close()
	key := newKey(t, fixture.ECDSAP256)
	platform, err := registry.PushImage(ctx, "team-a/app", "amd64")
	require.NoError(t, err)
	index, err := registry.PushIndex(ctx, "team-a/app", "v1", platform)
	require.NoError(t, err)
	for format, sign := range formats {
		t.Run(format, func(t *testing.T) {
			manifest, err := sign(registry, ctx, index, key, fixture.CosignOptions{})
			require.NoError(t, err)
			options := cosign.Options{Signers: signedBy(key)}
			requireValid(t, checkStored(t, registry, options, index, manifest), key)
			requireInvalid(t, checkStored(t, registry, options, platform, manifest), policy.ReasonWrongDigest)
		})
	}
}

func TestChecksManySignaturesAtOnce(t *testing.T) {
	key, stranger := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	img, err := image.Parse("registry.example.com/team-a/app")
	require.NoError(t, err)
	checker := newChecker(t, cosign.Options{Signers: signedBy(stranger, key)})
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			signed := newImage(t, img.Name())
			for range 5 {
				requireValid(t, check(checker, signed, legacy(t, signed, key, fixture.CosignOptions{})), key)
				requireValid(t, check(checker, signed, bundled(t, signed, key, fixture.CosignOptions{})), key)
			}
		})
	}
}

func TestSignatureAnnotationIsTheOnlyOneThatCounts(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	e := legacy(t, img, key, fixture.CosignOptions{})
	signature := e.layer.Annotations["dev.cosignproject.cosign/signature"]
	_, err := base64.StdEncoding.DecodeString(signature)
	require.NoError(t, err)
	e.layer.Annotations = map[string]string{"dev.sigstore.cosign/signature": signature}
	subject := verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
	s := e.signature()
	s.Manifest.Annotations = map[string]string{"dev.cosignproject.cosign/signature": signature}
	finding := verify.Found(newChecker(t, cosign.Options{Signers: signedBy(key)}).Check(context.Background(), subject, s, e.fetch, time.Time{}))
	requireInvalid(t, finding, policy.ReasonNoSignature)
}
