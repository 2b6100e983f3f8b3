//go:build !e2e && !nightly

package evidence

import (
	"bytes"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// signNotation signs with the library that is notation's own command.
func signNotation(t *testing.T, registry *fixture.Registry, img fixture.Image, by *fixture.Certificate, mediaType string) {
	t.Helper()
	target, err := registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	generic, err := signer.NewGenericSigner(by.Key, by.Chain)
	require.NoError(t, err)
	_, err = notation.Sign(t.Context(), generic, notationregistry.NewRepository(target), notation.SignOptions{
		SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: mediaType, ExpiryDuration: time.Hour},
		ArtifactReference: img.Reference.Name() + "@" + img.Descriptor.Digest.String(),
		UserMetadata:      map[string]string{"env": "prod"},
	})
	require.NoError(t, err)
}

func certificates(t *testing.T, options fixture.CertificateOptions) (*fixture.Authority, *fixture.Certificate) {
	t.Helper()
	authority, err := fixture.NewAuthorityWith("root", options)
	require.NoError(t, err)
	leaf, err := authority.IssueSigner("release", options)
	require.NoError(t, err)
	return authority, leaf
}

func TestAcceptsWhatNotationSigns(t *testing.T) {
	for _, algorithm := range []fixture.Algorithm{fixture.ECDSAP256, fixture.ECDSAP384, fixture.RSA3072} {
		authority, leaf := certificates(t, fixture.CertificateOptions{Algorithm: algorithm})
		for name, mediaType := range map[string]string{"JWS": jws.MediaTypeEnvelope, "COSE": cose.MediaTypeEnvelope} {
			for where, options := range map[string]fixture.RegistryOptions{"referrers API": {}, "fallback tag": {NoReferrers: true}} {
				t.Run(string(algorithm)+", "+name+", "+where, func(t *testing.T) {
					registry := start(t, options)
					img, unsigned := push(t, registry, repository, "v1"), push(t, registry, repository, "v2")
					signNotation(t, registry, img, leaf, mediaType)
					requireAllowed(t, typeNotation, decide(t, registry, byCertificate(), authority.CertificatePEM, img.Reference))
					requireAllowed(t, typeNotation, decide(t, registry, byCertificate(), authority.CertificatePEM, img.Reference.WithTag("v1")))
					requireDeniedWithoutSignature(t, decide(t, registry, byCertificate(), authority.CertificatePEM, unsigned.Reference))
				})
			}
		}
	}
}

func TestDeniesNotationSignaturesEachForItsReason(t *testing.T) {
	now := time.Now()
	authority, leaf := certificates(t, fixture.CertificateOptions{})
	stranger, _ := certificates(t, fixture.CertificateOptions{})
	mallory, err := authority.IssueSigner("release", fixture.CertificateOptions{Organization: "Mallory"})
	require.NoError(t, err)
	expired, err := authority.IssueSigner("release", fixture.CertificateOptions{NotBefore: now.Add(-30 * time.Minute), NotAfter: now.Add(-time.Minute)})
	require.NoError(t, err)
	cases := map[string]struct {
		trusted *fixture.Authority
		sign    func(t *testing.T, registry *fixture.Registry, img fixture.Image)
		reason  string
	}{
		"another trust store": {stranger, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			signNotation(t, registry, img, leaf, jws.MediaTypeEnvelope)
		}, "UntrustedCertificate"},
		"another identity": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			signNotation(t, registry, img, mallory, cose.MediaTypeEnvelope)
		}, "UntrustedIdentity"},
		"expired certificate": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			_, err := registry.SignNotation(t.Context(), img, expired, fixture.NotationOptions{})
			require.NoError(t, err)
		}, "ExpiredCertificate"},
		"expired signature": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			_, err := registry.SignNotation(t.Context(), img, leaf, fixture.NotationOptions{SigningTime: now.Add(-30 * time.Minute), Expiry: now.Add(-time.Minute)})
			require.NoError(t, err)
		}, "ExpiredSignature"},
		"copied from another image": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			other := push(t, registry, repository, "other")
			manifest, err := registry.SignNotation(t.Context(), other, leaf, fixture.NotationOptions{COSE: true})
			require.NoError(t, err)
			_, err = registry.CopyNotation(t.Context(), other, manifest, img)
			require.NoError(t, err)
		}, "WrongDigest"},
		"changed after it was signed": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			other := push(t, registry, repository, "other")
			envelope, err := fixture.NotationEnvelope(other, leaf, fixture.NotationOptions{COSE: true})
			require.NoError(t, err)
			changed := bytes.ReplaceAll(envelope, []byte(other.Descriptor.Digest), []byte(img.Descriptor.Digest))
			require.NotEqual(t, envelope, changed)
			_, err = registry.PushNotation(t.Context(), img, cose.MediaTypeEnvelope, changed)
			require.NoError(t, err)
		}, "TamperedEnvelope"},
		"unknown critical attribute": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			_, err := registry.SignNotation(t.Context(), img, leaf, fixture.NotationOptions{Critical: map[string]string{"com.example.attribute": "1"}})
			require.NoError(t, err)
		}, "UnknownCriticalAttribute"},
		"two envelopes in one manifest": {authority, func(t *testing.T, registry *fixture.Registry, img fixture.Image) {
			envelope, err := fixture.NotationEnvelope(img, leaf, fixture.NotationOptions{})
			require.NoError(t, err)
			_, err = registry.PushNotation(t.Context(), img, jws.MediaTypeEnvelope, envelope, envelope)
			require.NoError(t, err)
		}, "Malformed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registry := start(t, fixture.RegistryOptions{})
			img := push(t, registry, repository, "v1")
			c.sign(t, registry, img)
			requireDenied(t, c.reason, decide(t, registry, byCertificate(), c.trusted.CertificatePEM, img.Reference))
		})
	}
}

// One bad signature beside a good one does not spoil it.
func TestAcceptsGoodNotationSignatureBesideBadOnes(t *testing.T) {
	registry := start(t, fixture.RegistryOptions{})
	authority, leaf := certificates(t, fixture.CertificateOptions{})
	_, stranger := certificates(t, fixture.CertificateOptions{})
	img := push(t, registry, repository, "v1")
	_, err := registry.PushNotation(t.Context(), img, jws.MediaTypeEnvelope, []byte("{"))
	require.NoError(t, err)
	signNotation(t, registry, img, stranger, jws.MediaTypeEnvelope)
	signNotation(t, registry, img, leaf, cose.MediaTypeEnvelope)
	requireAllowed(t, typeNotation, decide(t, registry, byCertificate(), authority.CertificatePEM, img.Reference))
}
