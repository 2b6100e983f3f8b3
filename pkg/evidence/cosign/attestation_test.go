package cosign_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const provenance = "https://slsa.dev/provenance/v1"

// Nobody knows when an expression that reads the time becomes false.
func TestAnExpressionWithTheTimeProvesOnlyForNow(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	e := attested(t, instance, img.Descriptor.Digest, provenance, map[string]any{"at": "2026-01-01T00:00:00Z", "now": true})
	for expression, timed := range map[string]bool{
		`predicate.at == "2026-01-01T00:00:00Z"`: false, "predicate.now": false, "": false,
		fmt.Sprintf("now < timestamp(%q)", time.Now().Add(5*time.Second).UTC().Format(time.RFC3339)): true,
		"now > timestamp(predicate.at)": true, "has(predicate.x) || [1].exists(x, x == 1 && now > timestamp(predicate.at))": true,
	} {
		finding := judge(t, newAttestation(t, keylessOptions(trusted, nil).Signers, expression), img, e)
		require.Equal(t, policy.Valid, finding.Result(), finding.Message)
		require.Equal(t, timed, !finding.Until.IsZero(), expression)
		require.False(t, finding.Until.After(time.Now().Add(10*time.Second)), expression)
		require.Equal(t, strings.HasPrefix(expression, "now <"), timed && !finding.Until.After(time.Now()), "it is false in ten seconds: %s", expression)
	}
}

// What an expression could not judge must not look like evidence that is not there.
func TestEvidencePastALimitOfTheExpressionIsIncomplete(t *testing.T) {
	instance, trusted := newSigstore(t)
	img := newImage(t, "r.example.com/app")
	e := attested(t, instance, img.Descriptor.Digest, provenance, map[string]any{"l": make([]int, 100_000), "s": strings.Repeat("a", 20<<10)})
	for _, expression := range []string{"predicate.l.all(a, predicate.l.all(b, a == b))", "predicate.l[predicate.l[0]] == 0",
		`predicate.l.all(a, predicate.s.matches("^(?:[a-z]{9}){9}$"))`} {
		finding := judge(t, newAttestation(t, keylessOptions(trusted, nil).Signers, expression), img, e)
		requireInvalid(t, finding, policy.ReasonLimitExceeded)
		require.True(t, finding.Incomplete, expression)
	}
}

func newAttestation(t testing.TB, signers cosign.Signers, expression string) *cosign.Attestation {
	t.Helper()
	made, err := cosign.NewAttestation(cosign.AttestationOptions{Signers: signers, PredicateType: provenance, Expression: expression})
	require.NoError(t, err)
	return made
}

func judge(t testing.TB, c verify.Checker, img fixture.Image, e *evidence) policy.Finding {
	t.Helper()
	require.True(t, c.Accepts(e.signature()))
	return verify.Found(c.Check(t.Context(), verify.Subject{Reference: img.Reference, Descriptor: img.Descriptor}, e.signature(), e.fetch, time.Now()))
}

// attested is a keyless attestation in a bundle.
func attested(t testing.TB, s *sigstore.Sigstore, subject digest.Digest, predicateType string, predicate any) *evidence {
	t.Helper()
	text, err := s.Bundle(someone, vouched, sigstore.Statement(subject, predicateType, predicate), sigstore.SignOptions{})
	require.NoError(t, err)
	return bundleOf(text)
}

// enveloped is an attestation by a key as cosign v2 attaches it: a DSSE envelope
// (DSSE protocol v1.0.2) in a layer of its own.
func enveloped(t testing.TB, key *fixture.CosignKey, statement []byte) *evidence {
	t.Helper()
	text, err := json.Marshal(map[string]any{"payloadType": "application/vnd.in-toto+json", "payload": statement,
		"signatures": []any{map[string]any{"keyid": "", "sig": enclosed(t, key, statement).signature}}})
	require.NoError(t, err)
	return &evidence{data: text, layer: ocispec.Descriptor{MediaType: cosign.MediaTypeEnvelope, Digest: digest.FromBytes(text), Size: int64(len(text)),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": "", "predicateType": provenance}}}
}

func TestAttestationsMustBeOfTheTypeAndSayWhatIsDemanded(t *testing.T) {
	instance, root := newSigstore(t)
	key, stranger := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	img, other := newImage(t, "r.example.com/app"), newImage(t, "r.example.com/other")
	predicate := map[string]any{"builder": map[string]any{"id": "https://ci.example.com"}}
	const expression = `predicate.builder.id == "https://ci.example.com"`
	forms := map[string]struct {
		signers cosign.Signers
		make    func(fixture.Image, string, any) *evidence
	}{
		"keyless bundle": {keylessOptions(root, nil).Signers, func(i fixture.Image, kind string, p any) *evidence {
			return attested(t, instance, i.Descriptor.Digest, kind, p)
		}},
		"envelope by a key": {signedBy(key), func(i fixture.Image, kind string, p any) *evidence {
			return enveloped(t, key, sigstore.Statement(i.Descriptor.Digest, kind, p))
		}},
		"one of several keys": {signedBy(stranger, key), func(i fixture.Image, kind string, p any) *evidence {
			return enveloped(t, key, sigstore.Statement(i.Descriptor.Digest, kind, p))
		}},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			good := form.make(img, provenance, predicate)
			finding := judge(t, newAttestation(t, form.signers, expression), img, good)
			require.Equal(t, policy.Valid, finding.Result(), finding.Message)
			require.NotEmpty(t, finding.Signer())
			require.Equal(t, policy.Valid, judge(t, newAttestation(t, form.signers, ""), img, good).Result())
			for reason, e := range map[policy.Reason]*evidence{
				policy.ReasonWrongPredicate: form.make(img, "https://spdx.dev/Document", predicate),
				policy.ReasonPredicate:      form.make(img, provenance, map[string]any{"builder": map[string]any{"id": "https://evil.example.com"}}),
			} {
				requireInvalid(t, judge(t, newAttestation(t, form.signers, expression), img, e), reason)
			}
			requireInvalid(t, judge(t, newAttestation(t, form.signers, expression), img, form.make(img, provenance, nil)), policy.ReasonPredicate)
			require.NotEqual(t, policy.Valid, judge(t, newAttestation(t, form.signers, ""), other, good).Result(), "about another image")
		})
	}
}

func TestAttestationsBySomebodyElseDoNotCount(t *testing.T) {
	instance, root := newSigstore(t)
	_, strangers := newSigstore(t)
	key, stranger := newKey(t, fixture.ECDSAP256), newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	keyless := attested(t, instance, img.Descriptor.Digest, provenance, map[string]any{})
	byKey := enveloped(t, key, sigstore.Statement(img.Descriptor.Digest, provenance, map[string]any{}))
	for name, c := range map[string]struct {
		signers cosign.Signers
		e       *evidence
		reason  policy.Reason
	}{
		"another root": {keylessOptions(strangers, nil).Signers, keyless, policy.ReasonUntrusted},
		"another identity": {keylessOptions(root, func(k *cosign.Signers) { k.Keyless.Identities[0].Subject = "other@example.com" }).Signers, keyless,
			policy.ReasonWrongIdentity},
		"another key":         {signedBy(stranger), byKey, policy.ReasonWrongKey},
		"keyless, key wanted": {signedBy(key), keyless, policy.ReasonKeyless},
		"key, keyless wanted": {keylessOptions(root, nil).Signers, byKey, policy.ReasonKeyed},
	} {
		finding := judge(t, newAttestation(t, c.signers, ""), img, c.e)
		require.Equal(t, policy.Invalid, finding.Result(), name)
		require.Equal(t, c.reason, finding.Reason, "%s: %s", name, finding.Message)
	}
}

func TestSignaturesAndMalformedEnvelopesAreNoAttestations(t *testing.T) {
	key := newKey(t, fixture.ECDSAP256)
	img := newImage(t, "r.example.com/app")
	checker := newAttestation(t, signedBy(key), "")
	requireInvalid(t, judge(t, checker, img, bundled(t, img, key, fixture.CosignOptions{})), policy.ReasonWrongPredicate)
	for name, text := range map[string]string{
		"no JSON": "x", "null": "null", "no signature": `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}`,
		"one is none":  `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"},{"sig":"!"}]}`,
		"another type": `{"payloadType":"text/plain","payload":"e30=","signatures":[{"sig":"AAAA"}]}`,
		"no base64":    `{"payloadType":"application/vnd.in-toto+json","payload":"!","signatures":[{"sig":"AAAA"}]}`,
		"empty":        `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":""}]}`,
	} {
		e := &evidence{data: []byte(text), layer: ocispec.Descriptor{MediaType: cosign.MediaTypeEnvelope, Digest: digest.FromString(text), Size: int64(len(text))}}
		requireInvalid(t, judge(t, checker, img, e), policy.ReasonMalformed)
		require.NotEmpty(t, name)
	}
}

func TestAttestationOptionsThatMeanNothingAreRefused(t *testing.T) {
	_, err := cosign.NewAttestation(cosign.AttestationOptions{PredicateType: provenance})
	require.ErrorContains(t, err, "without keys")
	_, err = cosign.NewAttestation(cosign.AttestationOptions{Signers: signedBy(newKey(t, fixture.ECDSAP256))})
	require.ErrorContains(t, err, "predicate type")
	_, err = cosign.NewAttestation(cosign.AttestationOptions{Signers: signedBy(newKey(t, fixture.ECDSAP256)), PredicateType: provenance,
		Expression: `signer.sbject == "x"`})
	require.ErrorContains(t, err, "did you mean subject?")
	_, err = cosign.NewAttestation(cosign.AttestationOptions{Signers: signedBy(newKey(t, fixture.ECDSAP256)), PredicateType: provenance,
		Expression: `signer.claims.sourceRepositoryUrl == "x"`})
	require.ErrorContains(t, err, "did you mean sourceRepositoryURI?")
	_, err = cosign.NewAttestation(cosign.AttestationOptions{Signers: signedBy(newKey(t, fixture.ECDSAP256)), PredicateType: provenance, Expression: "predicate."})
	require.ErrorContains(t, err, "expression")
}
