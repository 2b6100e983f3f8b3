package notation_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// bothEnvelopes runs a test with JWS and COSE signatures.
func bothEnvelopes(t *testing.T, test func(t *testing.T, options fixture.NotationOptions)) {
	t.Helper()
	t.Run("JWS", func(t *testing.T) { test(t, fixture.NotationOptions{}) })
	t.Run("COSE", func(t *testing.T) { test(t, fixture.NotationOptions{COSE: true}) })
}

func TestDeniesSignatureForOtherArtifact(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	cases := map[string]func(*ocispec.Descriptor){
		"signature copied from another image": func(d *ocispec.Descriptor) { d.Digest = digest.FromString("another") },
		"same digest, another size":           func(d *ocispec.Descriptor) { d.Size++ },
		"same digest, another media type":     func(d *ocispec.Descriptor) { d.MediaType = ocispec.MediaTypeImageIndex },
		"no digest":                           func(d *ocispec.Descriptor) { d.Digest = "" },
		"digest that is text":                 func(d *ocispec.Descriptor) { d.Digest = "<script>" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
				target := img.Descriptor
				change(&target)
				options.Target = &target
				finding := check(t, trusting(root.Chain[0]), img, signed(t, img, leaf, options))
				requireDenied(t, policy.ReasonWrongDigest, finding)
				require.NotContains(t, finding.Message, "<script>")
			})
		})
	}
}

func TestDeniesWhomItDoesNotTrust(t *testing.T) {
	root, stranger := authority(t, "root", fixture.CertificateOptions{}), authority(t, "root", fixture.CertificateOptions{})
	img := anImage(t, "image")
	release := signer(t, root, "release", fixture.CertificateOptions{})
	cases := map[string]struct {
		signer  *fixture.Certificate
		options notation.Options
		reason  policy.Reason
	}{
		"chain of an authority with the same name": {signer(t, stranger, "release", fixture.CertificateOptions{}), trusting(root.Chain[0]),
			policy.ReasonUntrustedCertificate},
		"another subject under a trusted root": {signer(t, root, "release", fixture.CertificateOptions{Organization: "Mallory"}), trusting(root.Chain[0]),
			policy.ReasonUntrustedIdentity},
		"another trust store": {release, trusting(stranger.Chain[0]), policy.ReasonUntrustedCertificate},
	}
	for name, c := range cases {
		for _, level := range []notation.Level{notation.Strict, notation.Permissive} {
			t.Run(name, func(t *testing.T) {
				bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
					c.options.Level = level
					requireDenied(t, c.reason, check(t, c.options, img, signed(t, img, c.signer, options)))
				})
			})
		}
	}
}

func TestDeniesSigningAuthorityScheme(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
		options.SigningAuthority = true
		img := anImage(t, "image")
		finding := check(t, trusting(root.Chain[0]), img, signed(t, img, leaf, options))
		requireDenied(t, policy.ReasonUntrustedCertificate, finding)
		require.Contains(t, finding.Message, "signing authority")
	})
}

func TestDeniesDemandsThatItDoesNotUnderstand(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
		options.Critical = map[string]string{"com.example.mustBeFriday": "true"}
		for _, level := range []notation.Level{notation.Strict, notation.Permissive} {
			verifier := trusting(root.Chain[0])
			verifier.Level = level
			requireDenied(t, policy.ReasonUnknownCriticalAttribute, check(t, verifier, img, signed(t, img, leaf, options)))
		}
	})
	bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
		options.Plugin = "com.example.plugin"
		requireDenied(t, policy.ReasonPluginRequired, check(t, trusting(root.Chain[0]), img, signed(t, img, leaf, options)))
	})
}

func TestDeniesTamperedEnvelope(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf, other := signer(t, root, "release", fixture.CertificateOptions{}), signer(t, root, "other", fixture.CertificateOptions{})
	img := anImage(t, "image")
	bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
		target := ocispec.Descriptor{MediaType: img.Descriptor.MediaType, Digest: digest.FromString("another"), Size: img.Descriptor.Size}
		options.Target = &target
		envelope, err := fixture.NotationEnvelope(img, leaf, options)
		require.NoError(t, err)
		replaced := replaceDigest(t, envelope, options.COSE, target.Digest, img.Descriptor.Digest)
		requireDenied(t, policy.ReasonTamperedEnvelope, check(t, trusting(root.Chain[0]), img, evidenceOf(options.MediaType(), replaced)))
	})
	t.Run("certificate of another signer", func(t *testing.T) {
		envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
		require.NoError(t, err)
		swapped := withChain(t, envelope, other.Chain)
		requireDenied(t, policy.ReasonTamperedEnvelope, check(t, trusting(root.Chain[0]), img, evidenceOf(notation.MediaTypeJWS, swapped)))
	})
}

func TestDeniesTrustAnchorStapledToAStrangersChain(t *testing.T) {
	root, stranger := authority(t, "root", fixture.CertificateOptions{}), authority(t, "stranger", fixture.CertificateOptions{})
	leaf := signer(t, stranger, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	cases := map[string][]*x509.Certificate{
		"instead of its root": {leaf.Chain[0], root.Chain[0]},
		"after its root":      {leaf.Chain[0], stranger.Chain[0], root.Chain[0]},
		"between":             {leaf.Chain[0], root.Chain[0], stranger.Chain[0]},
	}
	for name, chain := range cases {
		t.Run(name, func(t *testing.T) {
			requireDenied(t, policy.ReasonInvalidCertificate, check(t, trusting(root.Chain[0]), img, evidenceOf(notation.MediaTypeJWS, withChain(t, envelope, chain))))
		})
	}
}

func TestDeniesManifestWithMoreOrLessThanOneLayer(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	good, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	requireDenied(t, policy.ReasonMalformed, check(t, trusting(root.Chain[0]), img, evidenceOf(notation.MediaTypeJWS, good, good)))
	none := evidenceOf(notation.MediaTypeJWS, good)
	none.signature.Manifest.Layers = nil
	requireDenied(t, policy.ReasonMalformed, check(t, trusting(root.Chain[0]), img, none))
}

func TestDeniesSubjectWithoutOneDigest(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	e := signed(t, img, leaf, fixture.NotationOptions{})
	img.Reference.Digest = digest.FromString("another")
	requireDenied(t, policy.ReasonMalformed, check(t, trusting(root.Chain[0]), img, e))
}

func TestDeniesWhatIsTooLargeBeforeItCostsAnything(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)

	large := evidenceOf(notation.MediaTypeJWS, envelope)
	large.signature.Layer.Size = 1<<20 + 1
	requireDenied(t, policy.ReasonLimitExceeded, check(t, trusting(root.Chain[0]), img, large))

	long := slices.Repeat(leaf.Chain, 6)
	requireDenied(t, policy.ReasonLimitExceeded, check(t, trusting(root.Chain[0]), img, evidenceOf(notation.MediaTypeJWS, withChain(t, envelope, long))))

	heavy := []*x509.Certificate{leaf.Chain[0], withHugeKey(t), root.Chain[0]}
	requireDenied(t, policy.ReasonLimitExceeded, check(t, trusting(root.Chain[0]), img, evidenceOf(notation.MediaTypeJWS, withChain(t, envelope, heavy))))
}

func TestDeniesMalformedEnvelope(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	leaf := signer(t, root, "release", fixture.CertificateOptions{})
	img := anImage(t, "image")
	jws, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
	require.NoError(t, err)
	cose, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{COSE: true})
	require.NoError(t, err)
	notAPayload, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{COSE: true, Payload: []byte("not JSON")})
	require.NoError(t, err)
	otherPayload, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{PayloadType: "text/plain"})
	require.NoError(t, err)
	cases := map[string]struct {
		mediaType string
		envelope  []byte
	}{
		"nothing":                       {notation.MediaTypeJWS, nil},
		"null":                          {notation.MediaTypeJWS, []byte("null")},
		"not JSON":                      {notation.MediaTypeJWS, []byte("{")},
		"no certificates":               {notation.MediaTypeJWS, withChain(t, jws, nil)},
		"not CBOR":                      {notation.MediaTypeCOSE, []byte("{")},
		"JWS said to be COSE":           {notation.MediaTypeCOSE, jws},
		"COSE said to be JWS":           {notation.MediaTypeJWS, cose},
		"truncated COSE":                {notation.MediaTypeCOSE, cose[:len(cose)/2]},
		"certificate that is none":      {notation.MediaTypeJWS, []byte(`{"header":{"x5c":["AAAA"]}}`)},
		"payload that is not JSON":      {notation.MediaTypeCOSE, notAPayload},
		"payload of another media type": {notation.MediaTypeJWS, otherPayload},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			requireDenied(t, policy.ReasonMalformed, check(t, trusting(root.Chain[0]), img, evidenceOf(c.mediaType, c.envelope)))
		})
	}
}

// A check ends with a finding, whatever the library does with an envelope.
func TestCheckNeverPanics(t *testing.T) {
	c := checker(t, trusting(authority(t, "root", fixture.CertificateOptions{}).Chain[0]))
	img := anImage(t, "image")
	e := evidenceOf(notation.MediaTypeJWS, []byte(`{"header":null,"payload":"","protected":"","signature":""}`))
	require.NotPanics(t, func() {
		finding := verify.Found(c.Check(t.Context(), subjectOf(img), e.signature, e.fetch, time.Time{}))
		require.Equal(t, policy.Invalid, finding.Result())
	})
}

// replaceDigest changes the signed payload without signing it again.
func replaceDigest(t *testing.T, envelope []byte, cose bool, from, to digest.Digest) []byte {
	t.Helper()
	if cose {
		require.Contains(t, string(envelope), from.String())
		return bytes.ReplaceAll(envelope, []byte(from), []byte(to))
	}
	var jws map[string]any
	require.NoError(t, json.Unmarshal(envelope, &jws))
	payload, err := base64.RawURLEncoding.DecodeString(jws["payload"].(string))
	require.NoError(t, err)
	changed := strings.ReplaceAll(string(payload), from.String(), to.String())
	require.NotEqual(t, string(payload), changed)
	jws["payload"] = base64.RawURLEncoding.EncodeToString([]byte(changed))
	envelope, err = json.Marshal(jws)
	require.NoError(t, err)
	return envelope
}

// withChain replaces the certificates of a JWS, which are not signed.
func withChain(t *testing.T, envelope []byte, chain []*x509.Certificate) []byte {
	t.Helper()
	var jws map[string]any
	require.NoError(t, json.Unmarshal(envelope, &jws))
	certificates := [][]byte{}
	for _, certificate := range chain {
		certificates = append(certificates, certificate.Raw)
	}
	jws["header"].(map[string]any)["x5c"] = certificates
	envelope, err := json.Marshal(jws)
	require.NoError(t, err)
	return envelope
}

// withHugeKey makes a certificate for a made-up RSA key: only its size matters.
func withHugeKey(t *testing.T) *x509.Certificate {
	t.Helper()
	modulus := new(big.Int).SetBit(big.NewInt(1), 9000, 1)
	root := authority(t, "root", fixture.CertificateOptions{})
	template := *root.Chain[0]
	der, err := x509.CreateCertificate(rand.Reader, &template, root.Chain[0], &rsa.PublicKey{N: modulus, E: 65537}, root.Key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate
}
