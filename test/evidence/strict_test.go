//go:build !e2e && !nightly

package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// cosign verify --key refuses a signature without a log entry, unless it is told to ignore logs.
func TestAKeySignatureOutsideTheLogIsDeniedByDefault(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "app", "a")
	e.apply(t, func(o *resource.Objects) {
		o.Resources = append(o.Resources, trustStore("team-a", "keys", v1beta1.TrustStoreTypePublicKeys, string(e.signer(t, "a").PEM)))
	}, verifier(t, "team-a", "release", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}"))
	requireOutcome(t, policy.Denied, e.outcome(t, "team-a", img))
}

// The Notary Project's level strict enforces revocation, and permissive logs it (trust store and
// trust policy specification, "Signature Verification details").
func TestARevokedCertificateIsDeniedByDefault(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	responder := fixture.NewResponder()
	t.Cleanup(responder.Close)
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	responder.For(root)
	signer, err := root.IssueSigner("release", fixture.CertificateOptions{Lists: responder.List})
	require.NoError(t, err)
	responder.Revoke(signer.Chain[0])
	img := e.signed(t, "app")
	_, err = e.registry.SignNotation(t.Context(), img, signer, fixture.NotationOptions{})
	require.NoError(t, err)
	e.start(t, service.Options{EgressHosts: []string{responder.Host()}, Wait: true})
	for level, want := range map[string]policy.Outcome{"Strict": policy.Denied, "Permissive": policy.Allowed} {
		require.Empty(t, e.apply(t, store("team-a", "ca", v1beta1.TrustStoreTypeCertificates, root),
			verifier(t, "team-a", "release", "{type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: ['*'], level: "+level+"}}")))
		requireOutcome(t, want, e.outcome(t, "team-a", img))
	}
}

// loggedBy signs an image with a key as cosign's legacy format does, with an entry of a log
// about a payload that some key signed.
func (e *environment) loggedBy(t *testing.T, repository, signer string, log *sigstore.Sigstore, entryOf func(fixture.Image) ([]byte, string)) fixture.Image {
	t.Helper()
	img := e.signed(t, repository)
	payload, annotations, err := fixture.CosignSignature(img.Reference, e.signer(t, signer), fixture.CosignOptions{})
	require.NoError(t, err)
	if entryOf != nil {
		about, by := entryOf(img)
		signature, err := e.signer(t, by).Sign(about)
		require.NoError(t, err)
		if by == signer && bytes.Equal(about, payload) { // the entry is about this signature
			signature, err = base64.StdEncoding.DecodeString(annotations["dev.cosignproject.cosign/signature"])
			require.NoError(t, err)
		}
		sum := sha256.Sum256(about)
		body, err := json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
			"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
			"signature": map[string]any{"content": signature, "publicKey": map[string]any{"content": e.signer(t, by).PEM}}}})
		require.NoError(t, err)
		entry, err := log.Log(body, time.Now())
		require.NoError(t, err)
		bundle, err := json.Marshal(map[string]any{"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
			"Payload": map[string]any{"body": base64.StdEncoding.EncodeToString(body), "integratedTime": entry.GetIntegratedTime(),
				"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId())}})
		require.NoError(t, err)
		annotations["dev.sigstore.cosign/bundle"] = string(bundle)
	}
	_, err = e.registry.PushLegacy(t.Context(), img, payload, annotations)
	require.NoError(t, err)
	return img
}

func TestKeysCountOnlyWithALogEntryOfTheirOwnSignature(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	ours, theirs := newSigstore(t), newSigstore(t)
	own := func(img fixture.Image) []byte {
		payload, err := fixture.CosignPayload(img.Reference, nil)
		require.NoError(t, err)
		return payload
	}
	other := e.signed(t, "other")
	images := map[string]fixture.Image{
		"logged":      e.loggedBy(t, "logged", "a", ours, func(img fixture.Image) ([]byte, string) { return own(img), "a" }),
		"not logged":  e.loggedBy(t, "unlogged", "a", ours, nil),
		"another key": e.loggedBy(t, "key", "a", ours, func(img fixture.Image) ([]byte, string) { return own(img), "b" }),
		"another's":   e.loggedBy(t, "digest", "a", ours, func(fixture.Image) ([]byte, string) { return own(other), "a" }),
		"another log": e.loggedBy(t, "log", "a", theirs, func(img fixture.Image) ([]byte, string) { return own(img), "a" }),
		"a stranger":  e.loggedBy(t, "stranger", "b", ours, func(img fixture.Image) ([]byte, string) { return own(img), "b" }),
	}
	inline := fmt.Sprintf("inline: %q", string(e.signer(t, "a").PEM))
	const named = "trustStoreRefs: [{name: keys}]"
	for name, c := range map[string]struct {
		keys    string
		allowed []string
	}{
		"inline, a log":        {inline + ", rootTrustStoreRef: {name: root}", []string{"logged"}},
		"a trust store, a log": {named + ", rootTrustStoreRef: {name: root}", []string{"logged"}},
		"inline, no log": {inline + ", insecureIgnoreTransparencyLog: true",
			[]string{"logged", "not logged", "another key", "another's", "another log"}},
		"a trust store, no log": {named + ", insecureIgnoreTransparencyLog: true",
			[]string{"logged", "not logged", "another key", "another's", "another log"}},
		"inline, by default":           {inline, nil},
		"a trust store, by default":    {named, nil},
		"inline and a trust store":     {inline + ", " + named + ", insecureIgnoreTransparencyLog: true", nil},
		"neither":                      {"insecureIgnoreTransparencyLog: true", nil},
		"a log that is ignored":        {inline + ", rootTrustStoreRef: {name: root}, insecureIgnoreTransparencyLog: true", nil},
		"a key that is cut off":        {"inline: '-----BEGIN PUBLIC KEY-----', insecureIgnoreTransparencyLog: true", nil},
		"a root that does not exist":   {inline + ", rootTrustStoreRef: {name: none}", nil},
		"a root that is a trust store": {inline + ", rootTrustStoreRef: {name: keys}", nil},
	} {
		e.apply(t, keyless(t, "team-a", ours, "{type: Cosign, cosign: {keys: {"+c.keys+"}}}"), func(o *resource.Objects) {
			o.Resources = append(o.Resources, trustStore("team-a", "keys", v1beta1.TrustStoreTypePublicKeys, string(e.signer(t, "a").PEM)))
		})
		for of, img := range images {
			want := policy.Denied
			if slices.Contains(c.allowed, of) {
				want = policy.Allowed
			}
			verdict := e.outcome(t, "team-a", img)
			require.Equal(t, want, verdict.Outcome(), "%s: %s: %s", name, of, verdict.Reason)
		}
	}
}

func newSigstore(t *testing.T) *sigstore.Sigstore {
	t.Helper()
	instance, err := sigstore.New()
	require.NoError(t, err)
	return instance
}
