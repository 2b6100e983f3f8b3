package cosign_test

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// envelope is the content of a bundle's envelope, and the signer's key or certificate as
// PEM.
type envelope struct{ payload, signature, signer []byte }

func (e envelope) encoded() []byte {
	return fmt.Appendf(nil, "DSSEv1 28 application/vnd.in-toto+json %d %s", len(e.payload), e.payload)
}

func sum(data []byte) map[string]any {
	hash := sha256.Sum256(data)
	return map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(hash[:])}
}

// hashedRekord is the body of a Rekor v1 entry with the hash of the signed bytes.
func hashedRekord(e envelope) map[string]any { return hashedRekordOf(e, sum(e.encoded())) }

func hashedRekordOf(e envelope, hash map[string]any) map[string]any {
	return map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{"data": map[string]any{"hash": hash},
		"signature": map[string]any{"content": e.signature, "publicKey": map[string]any{"content": e.signer}}}}
}

// intoto is the body of a Rekor v1 entry as the log keeps it: without the payload.
func intoto(e envelope) map[string]any {
	return map[string]any{"apiVersion": "0.0.2", "kind": "intoto", "spec": map[string]any{"content": map[string]any{
		"envelope": map[string]any{"payloadType": "application/vnd.in-toto+json", "signatures": []any{
			map[string]any{"publicKey": e.signer, "sig": []byte(base64.StdEncoding.EncodeToString(e.signature))}}},
		"hash": sum([]byte("the envelope")), "payloadHash": sum(e.payload)}}}
}

// opened returns the content of a bundle's envelope, and its certificate as PEM.
func opened(t testing.TB, e *evidence) envelope {
	t.Helper()
	var bundle struct {
		VerificationMaterial struct {
			Certificate struct{ RawBytes []byte }
		}
		DSSEEnvelope struct {
			Payload    []byte
			Signatures []struct{ Sig []byte }
		}
	}
	require.NoError(t, json.Unmarshal(e.data, &bundle))
	return envelope{payload: bundle.DSSEEnvelope.Payload, signature: bundle.DSSEEnvelope.Signatures[0].Sig,
		signer: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: bundle.VerificationMaterial.Certificate.RawBytes})}
}

// enclosed is a payload in an envelope that a key signs.
func enclosed(t testing.TB, key *fixture.CosignKey, payload []byte) envelope {
	t.Helper()
	e := envelope{payload: payload, signer: key.PEM}
	var err error
	e.signature, err = key.Sign(e.encoded())
	require.NoError(t, err)
	return e
}

// bundle returns e as a bundle with the verification material of like.
func (e envelope) bundle(t testing.TB, like *evidence) *evidence {
	t.Helper()
	return edited(t, like, func(bundle map[string]any) {
		bundle["dsseEnvelope"] = map[string]any{"payloadType": "application/vnd.in-toto+json", "payload": e.payload,
			"signatures": []any{map[string]any{"sig": e.signature}}}
	})
}

// logged returns a bundle whose log entries have these bodies.
func logged(t testing.TB, s *sigstore.Sigstore, bundle *evidence, bodies ...map[string]any) *evidence {
	t.Helper()
	return edited(t, bundle, func(bundle map[string]any) {
		var entries []any
		for _, body := range bodies {
			text, err := json.Marshal(body)
			require.NoError(t, err)
			entry, err := s.Log(text, time.Now())
			require.NoError(t, err)
			entry.LogIndex += int64(len(entries)) // no two alike
			written, err := protojson.Marshal(entry)
			require.NoError(t, err)
			entries = append(entries, json.RawMessage(written))
		}
		bundle["verificationMaterial"].(map[string]any)["tlogEntries"] = entries
	})
}

// named returns a bundle whose log entries claim a kind.
func named(t testing.TB, e *evidence, kind, version string) *evidence {
	t.Helper()
	return edited(t, e, func(bundle map[string]any) {
		for _, entry := range bundle["verificationMaterial"].(map[string]any)["tlogEntries"].([]any) {
			entry.(map[string]any)["kindVersion"] = map[string]any{"kind": kind, "version": version}
		}
	})
}

// Envelopes may be in Rekor v1 as dsse, as intoto and as hashedrekord (client
// specification, "Bundle content vs. Rekor entry kind").
func TestEnvelopesCountAsTheLogHasThem(t *testing.T) {
	instance, root := newSigstore(t)
	img, other := newImage(t, "r.example.com/app"), newImage(t, "r.example.com/other")
	key, stranger := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	byKey := bundled(t, img, key, fixture.CosignOptions{})
	byIdentity := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{})
	keyed, certified := opened(t, byKey), opened(t, byIdentity)
	keyed.signer = key.PEM
	anotherCertificate := opened(t, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}))
	byStranger := enclosed(t, stranger, keyed.payload)
	keys, identities := newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: trusted(key), Log: root}}), newChecker(t, keylessOptions(root, nil))
	for name, c := range map[string]struct {
		checker *cosign.Checker
		e       *evidence
		reason  policy.Reason
	}{
		"key, hashedrekord":                        {keys, logged(t, instance, byKey, hashedRekord(keyed)), ""},
		"key, intoto without payload":              {keys, logged(t, instance, byKey, intoto(keyed)), ""},
		"key, not logged":                          {keys, logged(t, instance, byKey), policy.ReasonUntrusted},
		"key, another payload":                     {keys, logged(t, instance, byKey, hashedRekord(enclosed(t, key, []byte("{}")))), policy.ReasonUntrusted},
		"key, another signature of the payload":    {keys, logged(t, instance, byKey, hashedRekord(enclosed(t, key, keyed.payload))), policy.ReasonUntrusted},
		"key, another key's":                       {keys, logged(t, instance, byKey, hashedRekord(byStranger)), policy.ReasonUntrusted},
		"key, intoto of another payload":           {keys, logged(t, instance, byKey, intoto(enclosed(t, key, []byte("{}")))), policy.ReasonUntrusted},
		"key, hashedrekord that says it is dsse":   {keys, named(t, logged(t, instance, byKey, hashedRekord(keyed)), "dsse", "0.0.1"), ""},
		"key, intoto that says it is hashedrekord": {keys, named(t, logged(t, instance, byKey, intoto(keyed)), "hashedrekord", "0.0.1"), ""},
		"key, two kinds":                           {keys, logged(t, instance, byKey, hashedRekord(keyed), intoto(keyed)), policy.ReasonUntrusted},
		"key, by a stranger": {keys, logged(t, instance, byStranger.bundle(t, byKey), hashedRekord(byStranger)),
			policy.ReasonTamperedPayload},
		"key, log of nobody":                          {keys, logged(t, newInstance(t), byKey, hashedRekord(keyed)), policy.ReasonUntrusted},
		"identity, hashedrekord":                      {identities, logged(t, instance, byIdentity, hashedRekord(certified)), ""},
		"identity, intoto without payload":            {identities, logged(t, instance, byIdentity, intoto(certified)), ""},
		"identity, another certificate's":             {identities, logged(t, instance, byIdentity, hashedRekord(anotherCertificate)), policy.ReasonUntrusted},
		"identity, a key's":                           {identities, logged(t, instance, byIdentity, hashedRekord(keyed)), policy.ReasonUntrusted},
		"identity, intoto of another certificate":     {identities, logged(t, instance, byIdentity, intoto(anotherCertificate)), policy.ReasonUntrusted},
		"identity, hashedrekord of the log of nobody": {identities, logged(t, newInstance(t), byIdentity, hashedRekord(certified)), policy.ReasonUntrusted},
		"identity, hashedrekord and intoto of one bundle": {identities, logged(t, instance, byIdentity, hashedRekord(certified), intoto(certified)),
			policy.ReasonUntrusted},
	} {
		finding := check(c.checker, img, c.e)
		if c.reason != "" {
			require.Equal(t, c.reason, finding.Reason, "%s: %s", name, finding.Message)
			requireInvalid(t, finding, c.reason)
			continue
		}
		require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
		requireInvalid(t, check(c.checker, other, c.e), policy.ReasonWrongDigest)
		evidence, err := c.checker.VerifyBundle(t.Context(), c.e.data, img.Descriptor.Digest)
		require.NoError(t, err, name)
		require.NotEmpty(t, evidence.Signer, name)
		evidence, err = c.checker.VerifyBundle(t.Context(), c.e.data, other.Descriptor.Digest)
		require.Empty(t, evidence, name)
		var refusal *verify.Refusal
		require.ErrorAs(t, err, &refusal, name)
		changed := edited(t, c.e, func(bundle map[string]any) {
			bundle["dsseEnvelope"].(map[string]any)["payload"] = append([]byte(" "), opened(t, c.e).payload...)
		})
		require.Equal(t, policy.Invalid, check(c.checker, img, changed).Result(), name)
	}
}

func newInstance(t testing.TB) *sigstore.Sigstore {
	t.Helper()
	instance, _ := newSigstore(t)
	return instance
}

// The log entry has the signer's hash algorithm.
func TestEnvelopesAreLoggedByTheSignersHash(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	for algorithm, hash := range map[fixture.Algorithm]crypto.Hash{fixture.ECDSAP384: crypto.SHA384, fixture.ECDSAP521: crypto.SHA512} {
		key := withHash(newKey(t, algorithm), hash)
		bundle := bundled(t, img, key, fixture.CosignOptions{})
		e := enclosed(t, key, opened(t, bundle).payload)
		digest := hash.New()
		digest.Write(e.encoded())
		name := map[crypto.Hash]string{crypto.SHA384: "sha384", crypto.SHA512: "sha512"}[hash]
		body := hashedRekordOf(e, map[string]any{"algorithm": name, "value": hex.EncodeToString(digest.Sum(nil))})
		finding := check(newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: trusted(key), Log: root}}), img, logged(t, instance, e.bundle(t, bundle), body))
		require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
	}
}

// If no log is required, log entries are ignored: they must not change how a bundle is
// parsed.
func TestLogEntriesChangeNothingWhereNoLogIsDemanded(t *testing.T) {
	instance, root := newSigstore(t)
	img, key, stranger := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	foreign := hashedRekord(enclosed(t, stranger, []byte("{}")))
	keys := newChecker(t, cosign.Options{Signers: signedBy(key)})
	identities := newChecker(t, keylessOptions(root, func(k *cosign.Signers) { k.InsecureIgnoreLog = true }))
	byKey := bundled(t, img, key, fixture.CosignOptions{})
	// Only the library checks such a subject.
	odd := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":%q,"subject":[{"name":1,"digest":{"sha256":%q}}]}`, cosign.PredicateTypeSignature, img.Descriptor.Digest.Encoded())
	certified, err := instance.Bundle(someone, vouched, odd, sigstore.SignOptions{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		checker *cosign.Checker
		e       *evidence
		valid   bool
	}{
		"key":                   {keys, byKey, true},
		"identity":              {identities, keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{}), true},
		"key, odd subject":      {keys, enclosed(t, key, odd).bundle(t, byKey), false},
		"identity, odd subject": {identities, bundleOf(certified), false},
		"key, a stranger's":     {keys, enclosed(t, stranger, opened(t, byKey).payload).bundle(t, byKey), false},
	} {
		for form, e := range map[string]*evidence{"without entry": logged(t, instance, c.e), "with a foreign entry": logged(t, instance, c.e, foreign)} {
			finding := check(c.checker, img, e)
			require.Equal(t, c.valid, finding.Result() == policy.Valid, "%s, %s: %s", name, form, finding.Message)
		}
	}
}

// A statement of another version may mean something else.
func TestSignedStatementsOfUnknownVersionsProveNothing(t *testing.T) {
	instance, root := newSigstore(t)
	img, key := newImage(t, "r.example.com/app"), newKey(t, fixture.ECDSAP256)
	good := bundled(t, img, key, fixture.CosignOptions{})
	checker := newChecker(t, cosign.Options{Signers: cosign.Signers{Keys: trusted(key), Log: root}})
	for kind, valid := range map[string]bool{
		`"_type":"https://in-toto.io/Statement/v1",`:   true,
		`"_type":"https://in-toto.io/Statement/v0.1",`: true,
		`"_type":"https://in-toto.io/Statement/v2",`:   false,
		`"_type":1,`: false,
		``:           false,
	} {
		statement := fmt.Appendf(nil, `{%s"predicateType":%q,"predicate":{},"subject":[{"digest":{"sha256":%q}}]}`, kind, provenance, img.Descriptor.Digest.Encoded())
		e := enclosed(t, key, statement)
		bundle := e.bundle(t, good)
		for form, bundle := range map[string]*evidence{"intoto": logged(t, instance, bundle, intoto(e)),
			"hashedrekord": logged(t, instance, bundle, hashedRekord(e))} {
			evidence, err := checker.VerifyBundle(t.Context(), bundle.data, img.Descriptor.Digest)
			require.Equal(t, valid, evidence.Signer != "", "%s, %s: %v", kind, form, err)
			require.Equal(t, valid, err == nil, "%s, %s: %v", kind, form, err)
		}
	}
}

// The library only checks the first timestamp of each authority.
func TestEveryTimestampMustBeWithinTheCertificate(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	// Certificates are valid for ten minutes.
	within, late, early := time.Now().Add(time.Minute), time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		options sigstore.SignOptions
		valid   bool
	}{
		"two within":                  {sigstore.SignOptions{Stamped: []time.Time{within, within}}, true},
		"one after":                   {sigstore.SignOptions{Stamped: []time.Time{late}}, false},
		"second after":                {sigstore.SignOptions{Stamped: []time.Time{within, late}}, false},
		"second after, no others":     {sigstore.SignOptions{Stamped: []time.Time{within, late}, WithoutTimestamp: true}, false},
		"first after":                 {sigstore.SignOptions{Stamped: []time.Time{late, within}}, false},
		"second before":               {sigstore.SignOptions{Stamped: []time.Time{within, early}}, false},
		"third after":                 {sigstore.SignOptions{Stamped: []time.Time{within, within, late}}, false},
		"second after, beside no log": {sigstore.SignOptions{Stamped: []time.Time{within, late}, WithoutLog: true}, false},
	} {
		options := keylessOptions(root, func(k *cosign.Signers) { k.InsecureIgnoreLog = c.options.WithoutLog })
		e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, c.options)
		finding := check(newChecker(t, options), img, e)
		if c.valid {
			require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
			continue
		}
		requireInvalid(t, finding, policy.ReasonUntrusted)
	}
}

// The authorities, too, must have been valid at each of the times.
func TestEveryTimestampMustBeWithinItsAuthoritysTime(t *testing.T) {
	instance, root := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	within, later := time.Now().Add(time.Minute), time.Now().Add(6*time.Minute)
	ending := rootWith(t, instance, func(parsed map[string]any) {
		for _, authority := range parsed["certificateAuthorities"].([]any) {
			authority.(map[string]any)["validFor"].(map[string]any)["end"] = time.Now().Add(3 * time.Minute).UTC().Format(time.RFC3339)
		}
	})
	for name, stamped := range map[string][]time.Time{"both within": {within, within}, "second later": {within, later}, "first later": {later, within}} {
		e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{Stamped: stamped})
		finding := check(newChecker(t, keylessOptions(root, nil)), img, e)
		require.Equal(t, policy.Valid, finding.Result(), "%s: %s", name, finding.Message)
		finding = check(newChecker(t, keylessOptions(ending, nil)), img, e)
		require.Equal(t, name == "both within", finding.Result() == policy.Valid, "%s: %s", name, finding.Message)
	}
}

// rootWith returns an instance's root with parts of its JSON changed.
func rootWith(t testing.TB, s *sigstore.Sigstore, edit func(parsed map[string]any)) root.TrustedMaterial {
	t.Helper()
	text, err := s.TrustedRoot()
	require.NoError(t, err)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal(text, &parsed))
	edit(parsed)
	text, err = json.Marshal(parsed)
	require.NoError(t, err)
	made, err := trust.ParseSigstoreRoot(text)
	require.NoError(t, err)
	return made
}

// An SCT covers the key of the certificate's issuer. The name of the issuer is not
// enough: Fulcio's instances share one.
func TestAnAuthorityOfTheSameNameDoesNotHideTheIssuer(t *testing.T) {
	instance, decoy := newInstance(t), newInstance(t)
	var theirs []any
	rootWith(t, decoy, func(parsed map[string]any) { theirs = parsed["certificateAuthorities"].([]any) })
	trusted := rootWith(t, instance, func(parsed map[string]any) {
		parsed["certificateAuthorities"] = append(theirs, parsed["certificateAuthorities"].([]any)...)
	})
	img := newImage(t, "r.example.com/app")
	e := keylessBundle(t, instance, img.Descriptor.Digest, someone, vouched, sigstore.SignOptions{SCTs: []int{0}})
	finding := check(newChecker(t, keylessOptions(trusted, func(k *cosign.Signers) { k.Keyless.InsecureIgnoreSCT = false })), img, e)
	require.Equal(t, policy.Valid, finding.Result(), finding.Message)
}
