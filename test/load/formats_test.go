package load

import (
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const (
	someone    = "release@example.com"
	vouched    = "https://accounts.example.com"
	provenance = "https://slsa.dev/provenance/v1"
)

// format is one way to sign, with the verifier and the trust store that accept it.
type format struct {
	name     string
	trust    v1beta1.TrustStoreSpec
	verifier string // YAML
	sign     func(t testing.TB, r *fixture.Registry, img fixture.Image)
}

func inline(kind v1beta1.TrustStoreType, text string) v1beta1.TrustStoreSpec {
	return v1beta1.TrustStoreSpec{Type: kind, Source: v1beta1.TrustSource{Inline: text}}
}

// formats are those of the field.
func formats(t testing.TB) []format {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	instance, err := sigstore.New()
	require.NoError(t, err)
	root, err := instance.TrustedRoot()
	require.NoError(t, err)
	ca, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	signer, err := ca.IssueSigner("release", fixture.CertificateOptions{})
	require.NoError(t, err)
	keys, identities := inline(v1beta1.TrustStoreTypePublicKeys, string(key.PEM)), inline(v1beta1.TrustStoreTypeSigstoreRoot, string(root))
	certificates := inline(v1beta1.TrustStoreTypeCertificates, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Chain[0].Raw})))
	const byKey = "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: trust}], insecureIgnoreTransparencyLog: true}}}"
	const byCertificate = "{type: Notation, notation: {trustStoreRefs: [{name: trust}], trustedIdentities: ['*']}}"
	const keyless = "keyless: {identities: [{issuer: " + vouched + ", subject: " + someone + "}], rootTrustStoreRef: {name: trust}, insecureIgnoreSCT: true}"
	bundle := func(predicateType string) func(testing.TB, *fixture.Registry, fixture.Image) {
		return func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			text, err := instance.Bundle(someone, vouched, sigstore.Statement(img.Descriptor.Digest, predicateType, map[string]any{}), sigstore.SignOptions{})
			require.NoError(t, err)
			target, err := r.Repository(t.Context(), img.Reference.Repository)
			require.NoError(t, err)
			_, err = fixture.PushBundle(t.Context(), target, img, text)
			require.NoError(t, err)
		}
	}
	notation := func(options fixture.NotationOptions) func(testing.TB, *fixture.Registry, fixture.Image) {
		return func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			_, err := r.SignNotation(t.Context(), img, signer, options)
			require.NoError(t, err)
		}
	}
	return []format{
		{"cosign, tag", keys, byKey, func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			_, err := r.SignCosign(t.Context(), img, key, fixture.CosignOptions{Annotations: map[string]string{"n": fmt.Sprint(time.Now().UnixNano())}})
			require.NoError(t, err)
		}},
		{"cosign, referrer", keys, byKey, func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			_, err := r.SignCosignReferrer(t.Context(), img, key, fixture.CosignOptions{Annotations: map[string]string{"n": fmt.Sprint(time.Now().UnixNano())}})
			require.NoError(t, err)
		}},
		{"cosign, bundle", keys, byKey, func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			_, err := r.SignCosignBundle(t.Context(), img, key, fixture.CosignOptions{})
			require.NoError(t, err)
		}},
		{"keyless, bundle", identities, "{type: Cosign, cosign: {" + keyless + "}}", bundle(cosign.PredicateTypeSignature)},
		{"keyless, tag", identities, "{type: Cosign, cosign: {" + keyless + "}}", func(t testing.TB, r *fixture.Registry, img fixture.Image) {
			payload, err := fixture.CosignPayload(img.Reference, map[string]string{"n": fmt.Sprint(time.Now().UnixNano())})
			require.NoError(t, err)
			annotations, err := instance.Legacy(someone, vouched, payload, sigstore.SignOptions{})
			require.NoError(t, err)
			_, err = r.PushLegacy(t.Context(), img, payload, annotations)
			require.NoError(t, err)
		}},
		{"attestation, bundle", identities, "{type: Attestation, attestation: {predicateType: '" + provenance + "', expression: '!has(predicate.x)', " + keyless +
			"}}", bundle(provenance)},
		{"notation, JWS", certificates, byCertificate, notation(fixture.NotationOptions{})},
		{"notation, COSE", certificates, byCertificate, notation(fixture.NotationOptions{COSE: true})},
	}
}

// signedImage is an image signed in one way, and the resources that accept it.
type signedImage struct {
	registry *fixture.Registry
	image    fixture.Image
	objects  resource.Objects
}

func newSignedImage(t testing.TB, f format, options fixture.RegistryOptions, signatures int) *signedImage {
	t.Helper()
	r, err := fixture.StartRegistry(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	img, err := r.PushImage(t.Context(), "team-0/app", "v1")
	require.NoError(t, err)
	for range signatures {
		f.sign(t, r, img)
	}
	w := &signedImage{registry: r, image: img}
	trust, verifier := &v1beta1.TrustStore{Spec: f.trust}, &v1beta1.Verifier{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(f.verifier), &verifier.Spec), f.verifier)
	trust.Name, verifier.Name, trust.Namespace, verifier.Namespace = "trust", "release", "team-0", "team-0"
	w.objects = resource.Objects{Resources: []v1beta1.Object{clusterStore(r.Host()), trust, verifier}}
	return w
}

// BenchmarkFormats verifies an image signed once in each format: cold, with every
// request to a registry of this process, and warm. BenchmarkECDSAVerify is the bare
// cost of one signature.
func BenchmarkFormats(b *testing.B) {
	for _, f := range formats(b) {
		w := newSignedImage(b, f, fixture.RegistryOptions{}, 1)
		ref := w.image.Reference
		ref.Tag = ""
		for how, options := range map[string]service.Options{"cold": cold(), "warm": warm()} {
			b.Run(f.name+"/"+how, func(b *testing.B) {
				verifier := newService(b, options, w.objects)
				ask := func() {
					if result := verifier.Verify(b.Context(), "team-0", ref); result.Verdict.Outcome() != policy.Allowed {
						b.Fatal(result.Verdict.Reason)
					}
				}
				ask()
				b.ReportAllocs()
				for b.Loop() {
					ask()
				}
			})
		}
	}
}
