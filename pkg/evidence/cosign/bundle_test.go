package cosign_test

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestDeniesBundleForOtherDigest(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img, other := newImage(t, "registry.example.com/team-a/app"), newImage(t, "registry.example.com/team-a/other")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	for name, options := range map[string]fixture.CosignOptions{"statement": {}, "message": {Message: true}} {
		t.Run(name, func(t *testing.T) {
			e := bundled(t, other, key, options)
			requireValid(t, check(checker, other, e), key)
			finding := check(checker, img, e)
			requireInvalid(t, finding, policy.ReasonWrongDigest)
			require.Contains(t, finding.Message, other.Descriptor.Digest.String())
		})
	}
}

func TestAttestationDoesNotCountAsSignature(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	for _, predicateType := range []string{
		"https://spdx.dev/Document", "https://slsa.dev/provenance/v1", "https://sigstore.dev/cosign/sign/v2",
		"https://sigstore.dev/cosign/sign/v1/", "HTTPS://sigstore.dev/cosign/sign/v1", " ",
	} {
		e := bundled(t, img, key, fixture.CosignOptions{PredicateType: predicateType})
		requireInvalid(t, check(checker, img, e), policy.ReasonWrongPredicate)
	}
}

func TestBundleHintIsNotTrusted(t *testing.T) {
	key, other := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	trustedHint, err := key.Hint()
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		signer *fixture.CosignKey
		hint   string
		reason policy.Reason
	}{
		"trusted key under another's hint": {key, "x", ""},
		"trusted key without hint":         {key, "", ""},
		"other key under the trusted hint": {other, trustedHint, policy.ReasonTamperedPayload},
		"other key without hint":           {other, "", policy.ReasonWrongKey},
	} {
		t.Run(name, func(t *testing.T) {
			e := edited(t, bundled(t, img, tt.signer, fixture.CosignOptions{}), func(bundle map[string]any) {
				bundle["verificationMaterial"] = map[string]any{"publicKey": map[string]any{"hint": tt.hint}}
			})
			finding := check(checker, img, e)
			if tt.reason == "" {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, tt.reason)
		})
	}
}

func TestDeniesTamperedStatement(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img, other := newImage(t, "registry.example.com/team-a/app"), newImage(t, "registry.example.com/team-a/other")
	forged, err := fixture.CosignStatement(img, fixture.CosignOptions{})
	require.NoError(t, err)
	e := edited(t, bundled(t, other, key, fixture.CosignOptions{}), func(bundle map[string]any) {
		bundle["dsseEnvelope"].(map[string]any)["payload"] = base64.StdEncoding.EncodeToString(forged)
	})
	requireInvalid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e), policy.ReasonTamperedPayload)
}

// A pure Ed25519 signature cannot be verified from a digest. A library that tries
// verifies it over no bytes at all, and the signature of an empty file would be a valid
// signature of every image.
func TestDeniesEd25519SignatureOfEmptyMessage(t *testing.T) {
	key, ecdsa := newKey(t, fixture.Ed25519), newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	for name, signer := range map[string]*fixture.CosignKey{"pure": withHash(key, 0), "prehashed": key} {
		t.Run(name, func(t *testing.T) {
			e := bundled(t, img, signer, fixture.CosignOptions{Message: true, Payload: []byte{}})
			requireInvalid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e), policy.ReasonUnsupported)
			finding := check(newChecker(t, cosign.Options{Signers: signedBy(ecdsa, key)}), img, e)
			requireInvalid(t, finding, policy.ReasonUnsupported)
		})
	}
}

func TestChecksMessageSignatures(t *testing.T) {
	img := newImage(t, "registry.example.com/team-a/app")
	for name, tt := range map[string]struct {
		algorithm fixture.Algorithm
		options   cosign.Options
		sign      fixture.CosignOptions
		edit      func(message map[string]any)
		reason    policy.Reason
	}{
		"ECDSA P-256":             {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{}, nil, ""},
		"ECDSA P-384 and SHA-256": {fixture.ECDSAP384, cosign.Options{}, fixture.CosignOptions{}, nil, ""},
		"RSA":                     {fixture.RSA2048, cosign.Options{}, fixture.CosignOptions{}, nil, ""},
		"other bytes":             {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{Payload: []byte("{}")}, nil, policy.ReasonTamperedPayload},
		"annotations wanted": {fixture.ECDSAP256, cosign.Options{Annotations: map[string]string{"a": "b"}}, fixture.CosignOptions{}, nil,
			policy.ReasonWrongAnnotations},
		"repository wanted": {fixture.ECDSAP256, cosign.Options{MatchRepository: true}, fixture.CosignOptions{}, nil, policy.ReasonWrongRepository},
		"SHA-512 of something": {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{}, func(m map[string]any) { m["algorithm"] = "SHA2_512" },
			policy.ReasonUnsupported},
		"no algorithm": {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{}, func(m map[string]any) { delete(m, "algorithm") },
			policy.ReasonUnsupported},
		"no digest": {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{}, func(m map[string]any) { delete(m, "digest") },
			policy.ReasonWrongDigest},
		"short digest": {fixture.ECDSAP256, cosign.Options{}, fixture.CosignOptions{}, func(m map[string]any) { m["digest"] = "AA==" },
			policy.ReasonWrongDigest},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t, tt.algorithm)
			tt.options.Signers, tt.sign.Message = signedBy(key), true
			e := bundled(t, img, key, tt.sign)
			if tt.edit != nil {
				e = edited(t, e, func(bundle map[string]any) {
					tt.edit(bundle["messageSignature"].(map[string]any)["messageDigest"].(map[string]any))
				})
			}
			finding := check(newChecker(t, tt.options), img, e)
			if tt.reason == "" {
				requireValid(t, finding, key)
				return
			}
			requireInvalid(t, finding, tt.reason)
		})
	}
}

func TestDeniesMalformedBundles(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	checker := newChecker(t, cosign.Options{Signers: signedBy(key)})
	envelope := func(b map[string]any) map[string]any { return b["dsseEnvelope"].(map[string]any) }
	material := func(b map[string]any) map[string]any { return b["verificationMaterial"].(map[string]any) }
	for name, tt := range map[string]struct {
		edit   func(bundle map[string]any)
		reason policy.Reason
	}{
		"version 0.4":          {func(b map[string]any) { b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.4+json" }, policy.ReasonMalformed},
		"no media type":        {func(b map[string]any) { delete(b, "mediaType") }, policy.ReasonMalformed},
		"no content":           {func(b map[string]any) { delete(b, "dsseEnvelope") }, policy.ReasonMalformed},
		"empty envelope":       {func(b map[string]any) { b["dsseEnvelope"] = map[string]any{} }, policy.ReasonMalformed},
		"unknown field":        {func(b map[string]any) { b["new"] = 1 }, policy.ReasonMalformed},
		"no material":          {func(b map[string]any) { delete(b, "verificationMaterial") }, policy.ReasonMalformed},
		"empty material":       {func(b map[string]any) { b["verificationMaterial"] = map[string]any{} }, policy.ReasonMalformed},
		"two kinds of content": {func(b map[string]any) { b["messageSignature"] = map[string]any{} }, policy.ReasonMalformed},
		"no signatures":        {func(b map[string]any) { envelope(b)["signatures"] = []any{} }, policy.ReasonMalformed},
		"null signature":       {func(b map[string]any) { envelope(b)["signatures"] = []any{nil} }, policy.ReasonMalformed},
		"empty signature":      {func(b map[string]any) { envelope(b)["signatures"] = []any{map[string]any{}} }, policy.ReasonTamperedPayload},
		"two signatures": {func(b map[string]any) {
			list := envelope(b)["signatures"].([]any)
			envelope(b)["signatures"] = append(list, list[0])
		}, policy.ReasonMalformed},
		"other payload type":    {func(b map[string]any) { envelope(b)["payloadType"] = "application/json" }, policy.ReasonMalformed},
		"payload is not base64": {func(b map[string]any) { envelope(b)["payload"] = "%" }, policy.ReasonMalformed},
		"null log entry":        {func(b map[string]any) { material(b)["tlogEntries"] = []any{nil} }, policy.ReasonMalformed},
		"many log entries":      {func(b map[string]any) { material(b)["tlogEntries"] = make([]any, 2000) }, policy.ReasonLimitExceeded},
		"public key is null":    {func(b map[string]any) { material(b)["publicKey"] = nil }, policy.ReasonMalformed},
		"empty certificate":     {func(b map[string]any) { b["verificationMaterial"] = map[string]any{"certificate": map[string]any{}} }, policy.ReasonMalformed},
		"empty chain": {func(b map[string]any) {
			b["verificationMaterial"] = map[string]any{"x509CertificateChain": map[string]any{}}
		}, policy.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			requireInvalid(t, check(checker, img, edited(t, bundled(t, img, key, fixture.CosignOptions{}), tt.edit)), tt.reason)
		})
	}
	for _, text := range []string{"", "{", "null", "[]", `""`, "{}", `{"mediaType":1}`, "\xff", strings.Repeat("[", 8)} {
		t.Run(fmt.Sprintf("%.10q", text), func(t *testing.T) {
			requireInvalid(t, check(checker, img, bundleOf([]byte(text))), policy.ReasonMalformed)
		})
	}
}

func TestDeniesBundleThatRestsOnACertificate(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	defer registry.Close()
	body := strings.ReplaceAll(strings.Join(strings.Split(strings.TrimSpace(string(registry.CertificatePEM())), "\n")[1:], ""), "-----END CERTIFICATE-----", "")
	e := edited(t, bundled(t, img, key, fixture.CosignOptions{}), func(bundle map[string]any) {
		bundle["verificationMaterial"] = map[string]any{"certificate": map[string]any{"rawBytes": body}}
	})
	requireInvalid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e), policy.ReasonKeyless)
}

func TestOlderBundleVersionsVerifyToo(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "registry.example.com/team-a/app")
	for _, mediaType := range []string{
		"application/vnd.dev.sigstore.bundle+json;version=0.1",
		"application/vnd.dev.sigstore.bundle+json;version=0.2",
		"application/vnd.dev.sigstore.bundle+json;version=0.3",
	} {
		e := edited(t, bundled(t, img, key, fixture.CosignOptions{}), func(bundle map[string]any) { bundle["mediaType"] = mediaType })
		e.layer.MediaType = mediaType
		finding := check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e)
		require.Equal(t, policy.Valid, finding.Result(), mediaType)
	}
}

// A signature by the right key with a hash that is not accepted is no tampering, and not by another key.
func TestASignatureWithAnotherHashSaysSo(t *testing.T) {
	img := newImage(t, "registry.example.com/team-a/app")
	var others []*fixture.CosignKey
	for range 8 {
		others = append(others, newKey(t, fixture.ECDSAP256))
	}
	for name, c := range map[string]struct {
		key      *fixture.CosignKey
		accepted crypto.Hash
		others   int
		legacy   bool
		fix      string // "" if nobody says so
	}{
		"ECDSA with SHA-512":                {withHash(newKey(t, fixture.ECDSAP256), crypto.SHA512), 0, 0, false, "set hash: SHA512"},
		"ECDSA with SHA-512, legacy":        {withHash(newKey(t, fixture.ECDSAP256), crypto.SHA512), 0, 1, true, "set hash: SHA512"},
		"a bundle names its key":            {withHash(newKey(t, fixture.ECDSAP256), crypto.SHA384), 0, 8, false, "set hash: SHA384"},
		"RSA, the store says another":       {withHash(newKey(t, fixture.RSA2048), crypto.SHA256), crypto.SHA512, 0, false, "set hash: SHA256"},
		"one of many keys without its name": {withHash(newKey(t, fixture.ECDSAP256), crypto.SHA384), 0, 8, true, ""},
	} {
		signers := signedBy(append([]*fixture.CosignKey{c.key}, others[:c.others]...)...)
		signers.Keys[0].Hash = c.accepted
		e := bundled(t, img, c.key, fixture.CosignOptions{})
		if c.legacy {
			e = legacy(t, img, c.key, fixture.CosignOptions{})
		}
		finding := check(newChecker(t, cosign.Options{Signers: signers}), img, e)
		if c.fix == "" {
			requireInvalid(t, finding, policy.ReasonWrongKey)
			continue
		}
		requireInvalid(t, finding, policy.ReasonUnsupported)
		require.Contains(t, finding.Remediation, c.fix, name)
		require.Contains(t, finding.Message, c.key.Fingerprint, name)
	}
}
