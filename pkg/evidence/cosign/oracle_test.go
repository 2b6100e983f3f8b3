package cosign_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	oracle "github.com/sigstore/cosign/v2/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// cosignAccepts reports whether cosign v2 itself accepts e, offline. A panic counts as a
// refusal.
func cosignAccepts(t *testing.T, trusted root.TrustedMaterial, img fixture.Image, e *evidence) (accepted bool) {
	t.Helper()
	defer func() {
		if recover() != nil {
			accepted = false
		}
	}()
	annotations := e.layer.Annotations
	var entry cosignbundle.RekorBundle
	var timestamp cosignbundle.RFC3161Timestamp
	options := []static.Option{static.WithCertChain([]byte(annotations["dev.sigstore.cosign/certificate"]), nil)}
	if text := annotations["dev.sigstore.cosign/bundle"]; text != "" {
		if json.Unmarshal([]byte(text), &entry) != nil {
			return false
		}
		options = append(options, static.WithBundle(&entry))
	}
	if text := annotations["dev.sigstore.cosign/rfc3161timestamp"]; text != "" {
		if json.Unmarshal([]byte(text), &timestamp) != nil {
			return false
		}
		options = append(options, static.WithRFC3161Timestamp(&timestamp))
	}
	signature, err := static.NewSignature(e.data, annotations["dev.cosignproject.cosign/signature"], options...)
	require.NoError(t, err)
	_, err = oracle.VerifyImageSignature(t.Context(), signature, v1.Hash{Algorithm: "sha256", Hex: img.Descriptor.Digest.Encoded()}, &oracle.CheckOpts{
		TrustedMaterial: trusted, Offline: true, IgnoreSCT: true, UseSignedTimestamps: timestamp.SignedRFC3161Timestamp != nil,
		ClaimVerifier: oracle.SimpleClaimVerifier,
		Identities:    []oracle.Identity{{Issuer: vouched, Subject: someone}},
	})
	return err == nil
}

// TestNeverAcceptsAKeylessSignatureThatCosignRefuses changes single bytes of a legacy
// keyless signature, and compares our findings with cosign's.
func TestNeverAcceptsAKeylessSignatureThatCosignRefuses(t *testing.T) {
	instance, trusted := newSigstore(t)
	img, other := newImage(t, "registry.example.com/team-a/app"), newImage(t, "registry.example.com/team-a/other")
	checker := newChecker(t, keylessOptions(trusted, nil))
	good := keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})
	require.True(t, cosignAccepts(t, trusted, img, good))
	names := []string{"dev.cosignproject.cosign/signature", "dev.sigstore.cosign/certificate", "dev.sigstore.cosign/bundle",
		"dev.sigstore.cosign/rfc3161timestamp"}
	random := rand.New(rand.NewPCG(3, 4))
	accepted, refused := 0, 0
	compare := func(what string, img fixture.Image, e *evidence) {
		// With a log entry, a broken timestamp is ignored here; cosign refuses it.
		bare := &evidence{data: e.data, layer: e.layer}
		bare.layer.Annotations = maps.Clone(e.layer.Annotations)
		delete(bare.layer.Annotations, "dev.sigstore.cosign/rfc3161timestamp")
		ours, theirs := check(checker, img, e).Result() == policy.Valid, cosignAccepts(t, trusted, img, e) || cosignAccepts(t, trusted, img, bare)
		if ours {
			accepted++
			require.True(t, theirs, "accepted here and refused by cosign: %s", what)
		} else {
			refused++
		}
	}
	for i := range 300 {
		e := &evidence{data: good.data, layer: good.layer}
		e.layer.Annotations = maps.Clone(good.layer.Annotations)
		name := names[i%len(names)]
		value := []byte(e.layer.Annotations[name])
		switch at := random.IntN(len(value)); i / len(names) % 4 {
		case 0: // as it is
		case 1:
			value[at] ^= byte(1 << random.IntN(7))
		case 2:
			value = value[:at]
		case 3:
			value[at] = "AZaz09+/=\n\" "[random.IntN(12)]
		}
		e.layer.Annotations[name] = string(value)
		if len(value) == 0 {
			delete(e.layer.Annotations, name)
		}
		compare(name+": "+base64.StdEncoding.EncodeToString(value), img, e)
	}
	require.Positive(t, accepted)
	require.Greater(t, refused, 100)
	for name, e := range map[string]*evidence{
		"another identity":  keylessLegacy(t, instance, img, "other@example.com", vouched, sigstore.SignOptions{}),
		"another issuer":    keylessLegacy(t, instance, img, someone, "https://evil.example.com", sigstore.SignOptions{}),
		"another image":     keylessLegacy(t, instance, other, someone, vouched, sigstore.SignOptions{}),
		"without timestamp": keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{WithoutTimestamp: true}),
		"without log":       keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{WithoutLog: true}),
	} {
		compare(name, img, e)
	}
}
