package cosign_test

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// slowKey is an RSA key of so many bits as PEM; nobody has its private part.
func slowKey(t testing.TB, bits uint) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537})
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestRefusesABundleWhoseLogEntryBringsASlowKey(t *testing.T) {
	instance, root := newSigstore(t)
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	slow := hashedRekordOf(envelope{signature: []byte("x"), signer: slowKey(t, 16384)}, sum([]byte("x")))
	keyed := logged(t, instance, bundled(t, img, key, fixture.CosignOptions{}), slow)
	keyless := logged(t, instance, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}), slow)
	requireInvalid(t, check(newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: trusted(key), Log: root}}), img, keyed), policy.ReasonLimitExceeded)
	requireInvalid(t, check(newChecker(t, keylessOptions(root, nil)), img, keyless), policy.ReasonLimitExceeded)
	// A verifier that ignores logs does not read it.
	requireValid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, keyed), key)
}

func TestAVerifierThatIgnoresLogsAndTimestampsReadsNone(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	e := edited(t, bundled(t, img, key, fixture.CosignOptions{}), func(bundle map[string]any) {
		material := bundle["verificationMaterial"].(map[string]any)
		material["tlogEntries"] = []any{map[string]any{}, map[string]any{"canonicalizedBody": []byte("x")}}
		material["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": []byte("x")}}}
	})
	requireValid(t, check(newChecker(t, cosign.Options{Signers: signedBy(key)}), img, e), key)
}

func TestRefusesALegacySignatureWhoseAnnotationsAreSlow(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	checker := newChecker(t, keylessOptions(root, nil))
	body, err := json.Marshal(hashedRekordOf(envelope{signature: []byte("x"), signer: slowKey(t, 16384)}, sum([]byte("x"))))
	require.NoError(t, err)
	entry := fmt.Sprintf(`{"SignedEntryTimestamp":"AA==","Payload":{"body":%q,"integratedTime":1,"logIndex":1,"logID":"00"}}`,
		base64.StdEncoding.EncodeToString(body))
	deep := strings.Repeat("[", 30<<10) + strings.Repeat("]", 30<<10)
	for annotation, value := range map[string]string{
		"dev.sigstore.cosign/bundle":           entry,
		"dev.sigstore.cosign/rfc3161timestamp": `{"SignedRFC3161Timestamp":"` + base64.StdEncoding.EncodeToString(make([]byte, 17<<10)) + `"}`,
	} {
		e := keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})
		e.layer.Annotations[annotation] = value
		requireInvalid(t, check(checker, img, e), policy.ReasonLimitExceeded)
		e.layer.Annotations[annotation] = deep
		requireInvalid(t, check(checker, img, e), policy.ReasonLimitExceeded)
		e.layer.Annotations[annotation] = strings.Repeat(" ", 64<<10+1)
		requireInvalid(t, check(checker, img, e), policy.ReasonLimitExceeded)
	}
}

func TestRefusesASignedTimestampWithManySigners(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	e := edited(t, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}), func(bundle map[string]any) {
		stamps := bundle["verificationMaterial"].(map[string]any)["timestampVerificationData"].(map[string]any)["rfc3161Timestamps"].([]any)
		first := stamps[0].(map[string]any)["signedTimestamp"].(string)
		der, err := base64.StdEncoding.DecodeString(first)
		require.NoError(t, err)
		for i := range 5 { // none alike: the last byte belongs to the signature
			der[len(der)-1] = byte(i)
			stamps = append(stamps, map[string]any{"signedTimestamp": append([]byte{}, der...)})
		}
		bundle["verificationMaterial"].(map[string]any)["timestampVerificationData"].(map[string]any)["rfc3161Timestamps"] = stamps
	})
	requireInvalid(t, check(newChecker(t, keylessOptions(root, nil)), img, e), policy.ReasonLimitExceeded)
}

// sixtyFour returns checkers that trust 64 keys of strangers.
func sixtyFour(t testing.TB) cosign.Signers {
	t.Helper()
	var keys []*fixture.CosignKey
	for i := range 64 {
		algorithm := fixture.ECDSAP256
		if i%4 == 0 {
			algorithm = fixture.Ed25519
		}
		keys = append(keys, newKey(t, algorithm))
	}
	return signedBy(keys...)
}

// However many keys a verifier has, and whatever the bytes are: a whole check allocates at
// most 16 times the size of its evidence, and 2 MiB for its log entries and timestamps. A statement by a trusted signer may
// take twice as much: it is verified and then read.
func TestAChecksMemoryIsBoundedByTheSizeOfItsEvidence(t *testing.T) {
	instance, root := newSigstore(t)
	foreign, _ := newSigstore(t)
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	many := sixtyFour(t)
	ours := newChecker(t, cosign.Options{Signers: many})
	filler := strings.Repeat("x", 256<<10)
	large := func(predicate any) []byte { return sigstore.Statement(img.Descriptor.Digest, provenance, predicate) }
	entries := func(e *evidence) *evidence {
		var bodies []map[string]any
		for range 2 {
			body := hashedRekordOf(envelope{signature: []byte(strings.Repeat("s", 8<<10)), signer: key.PEM}, sum([]byte("x")))
			bodies = append(bodies, body)
		}
		return logged(t, instance, e, bodies...)
	}
	padded := enclosed(t, key, []byte("{}"))
	padded.signer = append([]byte(strings.Repeat("text before the key\n", 300)), padded.signer...)
	stamps := sigstore.SignOptions{Stamped: []time.Time{time.Now(), time.Now().Add(time.Second), time.Now().Add(2 * time.Second)}}
	payload := `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + img.Descriptor.Digest.String() +
		`"},"type":"cosign container image signature"},"optional":{"a":[` + strings.TrimSuffix(strings.Repeat(`{"a":0},`, 330), ",") + `]}}`
	objects := strings.TrimSuffix(strings.Repeat(`{"name":"component","version":"1.2.3"},`, 5_000), ",")
	var sbom any
	require.NoError(t, json.Unmarshal([]byte(`{"components":[`+objects+`]}`), &sbom))
	for name, c := range map[string]struct {
		checker verify.Checker
		e       *evidence
	}{
		"bundle of a stranger, 64 keys": {newAttestation(t, many, ""),
			enclosed(t, key, large(filler)).bundle(t, bundled(t, img, key, fixture.CosignOptions{}))},
		"bundle, one key": {newAttestation(t, signedBy(key), ""),
			enclosed(t, key, large(filler)).bundle(t, bundled(t, img, key, fixture.CosignOptions{}))},
		"envelope of a stranger, 64 keys":  {newAttestation(t, many, ""), enveloped(t, key, large(filler))},
		"envelope, one key":                {newAttestation(t, signedBy(key), ""), enveloped(t, key, large(filler))},
		"bill of materials in an envelope": {newAttestation(t, signedBy(key), ""), enveloped(t, key, large(sbom))},
		"payload of a stranger, 64 keys":   {ours, legacy(t, img, key, fixture.CosignOptions{Payload: []byte(payload)})},
		"image signature, 64 keys":         {ours, bundled(t, img, key, fixture.CosignOptions{})},
		"keyless bundle": {newChecker(t, keylessOptions(root, nil)),
			keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})},
		"keyless bundle of a stranger": {newChecker(t, keylessOptions(root, nil)),
			keylessBundle(t, foreign, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})},
		"keyless bundle with large log entries": {newChecker(t, keylessOptions(root, nil)),
			entries(keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}))},
		"keyless bundle with padded log entries": {newChecker(t, keylessOptions(root, nil)),
			logged(t, instance, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, stamps), hashedRekord(padded), hashedRekord(padded))},
		"keyless bundle with four timestamps": {newChecker(t, keylessOptions(root, nil)),
			keylessBundle(t, instance, img.Descriptor.Digest, "mallory@example.com", vouched, stamps)},
		"keyless legacy signature": {newChecker(t, keylessOptions(root, nil)),
			keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})},
	} {
		t.Run(name, func(t *testing.T) {
			subject := verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
			n := len(c.e.data)
			for _, annotation := range c.e.layer.Annotations {
				n += len(annotation)
			}
			var finding policy.Finding
			one := func() {
				finding = verify.Found(c.checker.Check(t.Context(), subject, c.e.signature(), c.e.fetch, time.Now()))
			}
			one() // what libraries prepare once
			took := memory.Allocated(one)
			t.Logf("%d bytes took %d, %.1f times: %s %s", n, took, float64(took)/float64(n), finding.Result(), finding.Reason)
			times := 16
			if finding.Result() == policy.Valid {
				times = 32
			}
			require.LessOrEqual(t, took, times*n+2<<20)
		})
	}
}

func TestAStatementThatWouldTakeManyTimesItsSizeIsNotRead(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	for name, item := range map[string]string{"lists": "[]", "objects": "{}", "numbers": "0", "members": `{"a":0}`} {
		predicate := json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(item+",", 256<<10/len(item)), ",") + "]")
		e := enveloped(t, key, sigstore.Statement(img.Descriptor.Digest, provenance, predicate))
		var finding policy.Finding
		took := memory.Allocated(func() { finding = judge(t, newAttestation(t, signedBy(key), ""), img, e) })
		requireInvalid(t, finding, policy.ReasonLimitExceeded)
		require.LessOrEqual(t, took, 16*len(e.data)+1<<20, name)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	instance, root := newSigstore(t)
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	keyed := newChecker(t, cosign.Options{Signers: signedBy(key)})
	keyless := newChecker(t, keylessOptions(root, nil))
	ended, end := context.WithCancel(t.Context())
	end()
	for name, c := range map[string]struct {
		checker *cosign.Checker
		e       *evidence
	}{
		"bundle":         {keyed, bundled(t, img, key, fixture.CosignOptions{})},
		"legacy":         {keyed, legacy(t, img, key, fixture.CosignOptions{})},
		"keyless bundle": {keyless, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})},
		"keyless legacy": {keyless, keylessLegacy(t, instance, img, someone, vouched, sigstore.SignOptions{})},
	} {
		subject := verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}
		finding := verify.Found(c.checker.Check(ended, subject, c.e.signature(), c.e.fetch, time.Now()))
		require.Equal(t, policy.Unknown, finding.Result(), name)
		require.Equal(t, policy.Valid, verify.Found(c.checker.Check(t.Context(), subject, c.e.signature(), c.e.fetch, time.Now())).Result(), name)
	}
}
