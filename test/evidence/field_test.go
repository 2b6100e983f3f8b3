//go:build !e2e && !nightly

package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const intoto = "application/vnd.in-toto+json"

func rsaKey(t *testing.T, bits int, hash crypto.Hash) *fixture.CosignKey {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	require.NoError(t, err)
	sum := sha256.Sum256(der)
	return &fixture.CosignKey{Private: private, Hash: hash, PEM: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		Fingerprint: "sha256:" + hex.EncodeToString(sum[:])}
}

// trustingPEM is trusting with any text in the trust store.
func trustingPEM(namespace, pemText, hash string) func(*resource.Objects) {
	return func(o *resource.Objects) {
		verifier := &v1beta1.Verifier{Spec: byKey("keys")}
		verifier.Name, verifier.Namespace = "release", namespace
		store := trustStore(namespace, "keys", v1beta1.TrustStoreTypePublicKeys, pemText)
		if hash != "" {
			h := v1beta1.HashAlgorithm(hash)
			store.Spec.Hash = h
		}
		o.Resources = append(o.Resources, store, verifier)
	}
}

func (e *environment) pushBlob(t *testing.T, img fixture.Image, mediaType string, text []byte) ocispec.Descriptor {
	t.Helper()
	target, err := e.registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	d := content.NewDescriptorFromBytes(mediaType, text)
	if ok, err := target.Blobs().Exists(t.Context(), d); err == nil && ok {
		return d
	}
	require.NoError(t, target.Blobs().Push(t.Context(), d, bytes.NewReader(text)))
	return d
}

// attachEnvelopes pushes a ".att" manifest of one envelope.
func (e *environment) attachEnvelopes(t *testing.T, img fixture.Image, annotations map[string]string, envelopes ...[]byte) {
	t.Helper()
	target, err := e.registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	var layers []ocispec.Descriptor
	for _, envelope := range envelopes {
		layer := e.pushBlob(t, img, "application/vnd.dsse.envelope.v1+json", envelope)
		layer.Annotations = annotations
		layers = append(layers, layer)
	}
	config := e.pushBlob(t, img, ocispec.MediaTypeImageConfig, []byte(`{"rootfs":{"type":"layers","diff_ids":[]}}`))
	manifest, err := json.Marshal(ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config,
		Layers: layers})
	require.NoError(t, err)
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, manifest)
	require.NoError(t, target.PushReference(t.Context(), d, bytes.NewReader(manifest), "sha256-"+img.Descriptor.Digest.Encoded()+".att"))
}

func statementOf(img fixture.Image, predicateType string, predicate any, subjects ...any) []byte {
	if subjects == nil {
		subjects = []any{map[string]any{"name": img.Reference.Name(), "digest": map[string]any{"sha256": img.Descriptor.Digest.Encoded()}}}
	}
	text, err := json.Marshal(map[string]any{"_type": "https://in-toto.io/Statement/v0.1", "predicateType": predicateType, "subject": subjects,
		"predicate": predicate})
	if err != nil {
		panic(err)
	}
	return text
}

// envelope makes a DSSE envelope; encode encodes payload and signatures.
func envelope(t *testing.T, statement []byte, encode func([]byte) string, keys ...*fixture.CosignKey) []byte {
	t.Helper()
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(intoto), intoto, len(statement), statement)
	var signatures []any
	for _, key := range keys {
		sig, err := key.Sign([]byte(pae))
		require.NoError(t, err)
		signatures = append(signatures, map[string]any{"keyid": "", "sig": encode(sig)})
	}
	text, err := json.Marshal(map[string]any{"payloadType": intoto, "payload": encode(statement), "signatures": signatures})
	require.NoError(t, err)
	return text
}

// ownCA issues a certificate from a template.
func ownCA(t *testing.T, ca *fixture.Authority, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-30*time.Minute), time.Now().Add(20*time.Hour)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Chain[0], &key.PublicKey, ca.Key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return leaf, key
}

// byOwnPKI signs a statement with a certificate of an own CA, and a timestamp, and returns the bundle.
func byOwnPKI(t *testing.T, leaf *x509.Certificate, key *ecdsa.PrivateKey, tsa *fixture.TimestampAuthority, statement []byte,
	chain ...*x509.Certificate) []byte {
	t.Helper()
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(intoto), intoto, len(statement), statement)
	sum := sha256.Sum256([]byte(pae))
	sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(t, err)
	stamp, err := tsa.Stamp(sig, time.Now())
	require.NoError(t, err)
	b64 := base64.StdEncoding.EncodeToString
	material := map[string]any{"timestampVerificationData": map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": b64(stamp)}}}}
	mediaType := "application/vnd.dev.sigstore.bundle.v0.3+json"
	if chain == nil {
		material["certificate"] = map[string]any{"rawBytes": b64(leaf.Raw)}
	} else {
		mediaType = "application/vnd.dev.sigstore.bundle+json;version=0.2"
		all := []any{map[string]any{"rawBytes": b64(leaf.Raw)}}
		for _, c := range chain {
			all = append(all, map[string]any{"rawBytes": b64(c.Raw)})
		}
		material["x509CertificateChain"] = map[string]any{"certificates": all}
	}
	text, err := json.Marshal(map[string]any{"mediaType": mediaType, "verificationMaterial": material,
		"dsseEnvelope": map[string]any{"payload": b64(statement), "payloadType": intoto, "signatures": []any{map[string]any{"sig": b64(sig)}}}})
	require.NoError(t, err)
	return text
}

func ownRoot(t *testing.T, tsa *fixture.TimestampAuthority, ca *x509.Certificate, intermediates ...*x509.Certificate) string {
	t.Helper()
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01,
		[]root.CertificateAuthority{&root.FulcioCertificateAuthority{Root: ca, Intermediates: intermediates, ValidityPeriodStart: time.Now().Add(-time.Hour),
			ValidityPeriodEnd: time.Now().Add(time.Hour)}},
		nil, []root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{Root: tsa.Root.Chain[0], Leaf: tsa.Signer().Chain[0],
			ValidityPeriodStart: tsa.Signer().Chain[0].NotBefore, URI: "https://tsa.example.com"}}, nil)
	require.NoError(t, err)
	text, err := made.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

func (e *environment) keylessOwn(t *testing.T, trusted, identity string, rules ...string) []resource.Problem {
	t.Helper()
	v := &v1beta1.Verifier{}
	require.NoError(t,
		yaml.UnmarshalStrict([]byte("{type: Cosign, cosign: {keyless: {identities: ["+identity+"], rootTrustStoreRef: {name: root}, insecureIgnoreSCT: true, "+
			"insecureIgnoreTransparencyLog: true}}}"), &v.Spec))
	v.Name, v.Namespace = "release", "team-a"
	s := trustStore("team-a", "root", v1beta1.TrustStoreTypeSigstoreRoot, trusted)
	return e.apply(t, func(o *resource.Objects) { o.Resources = append(o.Resources, s, v) }, e.policy(t, "team-a", "p", append(rules, releaseNeeded)[0]))
}
