package cosign_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/landwaiter/landwaiter/pkg/cosign"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/test/fixture"
	"github.com/landwaiter/landwaiter/test/sigstore"
)

// envelope is what a bundle's envelope holds, and PEM of who signed it.
type envelope struct{ payload, signature, signer []byte }

func (e envelope) encoded() []byte {
	return []byte("DSSEv1 28 application/vnd.in-toto+json " + itoa(len(e.payload)) + " " + string(e.payload))
}

func sum(data []byte) map[string]any {
	hash := sha256.Sum256(data)
	return map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(hash[:])}
}

// hashedRekord is the body of a Rekor v1 entry that has the hash of what was signed.
func hashedRekord(e envelope) any {
	return map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{"data": map[string]any{"hash": sum(e.encoded())},
		"signature": map[string]any{"content": e.signature, "publicKey": map[string]any{"content": e.signer}}}}
}

// intoto is the body of a Rekor v1 entry as the log keeps it: without the payload.
func intoto(e envelope) any {
	return map[string]any{"apiVersion": "0.0.2", "kind": "intoto", "spec": map[string]any{"content": map[string]any{
		"envelope": map[string]any{"payloadType": "application/vnd.in-toto+json", "signatures": []any{
			map[string]any{"publicKey": e.signer, "sig": []byte(base64.StdEncoding.EncodeToString(e.signature))}}},
		"hash": sum([]byte("the envelope")), "payloadHash": sum(e.payload)}}}
}

// logged returns a bundle whose only log entry has the body that is made of its
// envelope; signer, unless it is empty, is PEM of the key that signed.
func logged(t testing.TB, s *sigstore.Sigstore, bundle *evidence, signer []byte, bodies ...func(envelope) any) *evidence {
	t.Helper()
	return edited(t, bundle, func(bundle map[string]any) {
		material := bundle["verificationMaterial"].(map[string]any)
		dsse := bundle["dsseEnvelope"].(map[string]any)
		e := envelope{payload: decoded(t, dsse["payload"]), signature: decoded(t, dsse["signatures"].([]any)[0].(map[string]any)["sig"]), signer: signer}
		if certificate, ok := material["certificate"].(map[string]any); ok {
			e.signer = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: decoded(t, certificate["rawBytes"])})
		}
		var entries []any
		for _, body := range bodies {
			text, err := json.Marshal(body(e))
			require.NoError(t, err)
			entry, err := s.Log(text, time.Now())
			require.NoError(t, err)
			written, err := protojson.Marshal(entry)
			require.NoError(t, err)
			entries = append(entries, json.RawMessage(written))
		}
		material["tlogEntries"] = entries
	})
}

func decoded(t testing.TB, text any) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text.(string))
	require.NoError(t, err)
	return raw
}

// Envelopes may be in Rekor v1 as dsse, as intoto and as hashedrekord (client
// specification, "Bundle content vs. Rekor entry kind").
func TestEnvelopesCountAsTheLogHasThem(t *testing.T) {
	instance, root := newSigstore(t)
	img, key, stranger := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	for signer, c := range map[string]struct {
		bundle  *evidence
		options cosign.Options
	}{
		"key":      {bundled(t, img, key, fixture.CosignOptions{}), cosign.Options{Keys: trusted(key), Log: root}},
		"identity": {keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}), keylessOptions(root, nil)},
	} {
		checker := newChecker(t, c.options)
		for name, test := range map[string]struct {
			body  func(envelope) any
			valid bool
		}{
			"hashedrekord":            {hashedRekord, true},
			"intoto, without payload": {intoto, true},
			"hashedrekord of another payload": {func(e envelope) any {
				e.payload = append([]byte(" "), e.payload...)
				return hashedRekord(e)
			}, false},
			"hashedrekord of the payload alone": {func(e envelope) any {
				body := hashedRekord(e).(map[string]any)
				body["spec"].(map[string]any)["data"] = map[string]any{"hash": sum(e.payload)}
				return body
			}, false},
			"hashedrekord of another signature": {func(e envelope) any {
				e.signature = append([]byte{}, e.signature...)
				e.signature[len(e.signature)-1] ^= 1
				return hashedRekord(e)
			}, false},
			"hashedrekord by another key": {func(e envelope) any {
				e.signer = stranger.PEM
				return hashedRekord(e)
			}, false},
			"intoto of another payload": {func(e envelope) any {
				e.payload = []byte("{}")
				return intoto(e)
			}, false},
			"intoto by another key": {func(e envelope) any {
				e.signer = stranger.PEM
				return intoto(e)
			}, false},
		} {
			finding := check(checker, img, logged(t, instance, c.bundle, key.PEM, test.body))
			want := policy.Invalid
			if test.valid {
				want = policy.Valid
			}
			require.Equal(t, want, finding.Result, "%s, %s: %s", signer, name, finding.Message)
		}
		good := logged(t, instance, c.bundle, key.PEM, hashedRekord)
		other := newImage(t, "r.example.com/other")
		requireInvalid(t, check(checker, other, good), cosign.ReasonWrongDigest)
		evidence, failure := checker.VerifyBundle(t.Context(), good.data, img.Descriptor.Digest)
		require.NotEmpty(t, evidence.Signer, failure.Message)
		evidence, failure = checker.VerifyBundle(t.Context(), good.data, other.Descriptor.Digest)
		require.Empty(t, evidence)
		require.Equal(t, cosign.ReasonWrongDigest, failure.Reason)
		changed := edited(t, good, func(bundle map[string]any) {
			dsse := bundle["dsseEnvelope"].(map[string]any)
			dsse["payload"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(decoded(t, dsse["payload"])), "{", "{ ", 1)))
		})
		require.Equal(t, policy.Invalid, check(checker, img, changed).Result, signer)
	}
}

// A statement of another version may mean something else.
func TestSignedStatementsOfUnknownVersionsProveNothing(t *testing.T) {
	instance, root := newSigstore(t)
	img, key := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256)
	good := bundled(t, img, key, fixture.CosignOptions{})
	checker := newChecker(t, cosign.Options{Keys: trusted(key), Log: root})
	for kind, valid := range map[string]bool{
		`"_type":"https://in-toto.io/Statement/v1",`:   true,
		`"_type":"https://in-toto.io/Statement/v0.1",`: true,
		`"_type":"https://in-toto.io/Statement/v2",`:   false,
		`"_type":1,`: false,
		``:           false,
	} {
		statement := fmt.Appendf(nil, `{%s"predicateType":%q,"predicate":{},"subject":[{"digest":{"sha256":%q}}]}`, kind, provenance, img.Descriptor.Digest.Encoded())
		e := envelope{payload: statement}
		signature, err := key.Sign(e.encoded())
		require.NoError(t, err)
		bundle := edited(t, good, func(bundle map[string]any) {
			dsse := bundle["dsseEnvelope"].(map[string]any)
			dsse["payload"], dsse["signatures"].([]any)[0].(map[string]any)["sig"] = statement, signature
		})
		for form, bundle := range map[string]*evidence{"intoto": logged(t, instance, bundle, key.PEM, intoto), "hashedrekord": logged(t, instance, bundle, key.PEM, hashedRekord)} {
			evidence, failure := checker.VerifyBundle(t.Context(), bundle.data, img.Descriptor.Digest)
			require.Equal(t, valid, evidence.Signer != "", "%s, %s: %s", kind, form, failure.Message)
			require.Equal(t, valid, failure.Reason == "", "%s, %s", kind, form)
		}
	}
}

// The library looks at the first timestamp of each authority only.
func TestEveryTimestampMustBeWithinTheCertificate(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	now, late, early := time.Now(), time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		options sigstore.SignOptions
		valid   bool
	}{
		"two within":                  {sigstore.SignOptions{Stamped: []time.Time{now, now}}, true},
		"one after":                   {sigstore.SignOptions{Stamped: []time.Time{late}}, false},
		"second after":                {sigstore.SignOptions{Stamped: []time.Time{now, late}}, false},
		"second after, no others":     {sigstore.SignOptions{Stamped: []time.Time{now, late}, WithoutTimestamp: true}, false},
		"first after":                 {sigstore.SignOptions{Stamped: []time.Time{late, now}}, false},
		"second before":               {sigstore.SignOptions{Stamped: []time.Time{now, early}}, false},
		"third after":                 {sigstore.SignOptions{Stamped: []time.Time{now, now, late}}, false},
		"second after, beside no log": {sigstore.SignOptions{Stamped: []time.Time{now, late}, WithoutLog: true}, false},
	} {
		options := keylessOptions(root, func(k *cosign.Keyless) { k.IgnoreLog = c.options.WithoutLog })
		e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, c.options)
		finding := check(newChecker(t, options), img, e)
		if c.valid {
			require.Equal(t, policy.Valid, finding.Result, "%s: %s", name, finding.Message)
			continue
		}
		requireInvalid(t, finding, cosign.ReasonUntrusted)
	}
}

// An SCT is for the key of the certificate's issuer, which a name alone does not
// tell: Fulcio's instances share theirs.
func TestAnAuthorityOfTheSameNameDoesNotHideTheIssuer(t *testing.T) {
	instance, _ := newSigstore(t)
	decoy, _ := newSigstore(t)
	authorities := func(s *sigstore.Sigstore) (map[string]any, []any) {
		text, err := s.TrustedRoot()
		require.NoError(t, err)
		var parsed map[string]any
		require.NoError(t, json.Unmarshal(text, &parsed))
		return parsed, parsed["certificateAuthorities"].([]any)
	}
	parsed, ours := authorities(instance)
	_, theirs := authorities(decoy)
	parsed["certificateAuthorities"] = append(theirs, ours...)
	text, err := json.Marshal(parsed)
	require.NoError(t, err)
	root, err := trust.ParseSigstoreRoot(text)
	require.NoError(t, err)
	img := newImage(t, "r.example.com/app")
	e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{SCTs: []int{0}})
	finding := check(newChecker(t, keylessOptions(root, func(k *cosign.Keyless) { k.IgnoreSCT = false })), img, e)
	require.Equal(t, policy.Valid, finding.Result, finding.Message)
}
