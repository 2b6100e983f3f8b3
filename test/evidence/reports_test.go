//go:build !e2e && !nightly

package evidence

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// sigstore#1066, #1735: a key management service signs with RSA-PSS, and its exported key looks like any other.
func TestASignatureWithRSAPSSIsNotTampering(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		e := newEnvironment(t, fixture.RegistryOptions{})
		key := rsaKey(t, 2048, crypto.SHA256)
		img := e.signed(t, "app/x")
		statement, err := fixture.CosignStatement(img, fixture.CosignOptions{})
		require.NoError(t, err)
		signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(intoto), intoto, len(statement), statement)
		if legacy {
			signed, err = fixture.CosignPayload(img.Reference.WithDigest(img.Descriptor.Digest), nil)
			require.NoError(t, err)
		}
		sum := sha256.Sum256(signed)
		signature, err := rsa.SignPSS(rand.Reader, key.Private.(*rsa.PrivateKey), crypto.SHA256, sum[:], nil)
		require.NoError(t, err)
		if legacy {
			_, err = e.registry.SignCosign(t.Context(), img, key, fixture.CosignOptions{Signature: signature})
		} else {
			_, err = e.registry.SignCosignBundle(t.Context(), img, key, fixture.CosignOptions{Payload: statement, Signature: signature})
		}
		require.NoError(t, err)
		require.Empty(t, e.apply(t, trustingPEM("team-a", string(key.PEM), ""), e.policy(t, "team-a", "p", releaseNeeded)))
		v := e.outcome(t, "team-a", img)
		requireOutcome(t, policy.Denied, v)
		require.Contains(t, v.Reason, "RSA-PSS")
	}
}

// bundleByOwnCA signs an image with a certificate of an own CA, and changes the bundle before it is attached.
func (e *environment) bundleByOwnCA(t *testing.T, template *x509.Certificate, identity string, change func(map[string]any), intermediate bool) policy.Verdict {
	t.Helper()
	top, err := fixture.NewAuthority("own root")
	require.NoError(t, err)
	tsa, err := fixture.NewTimestampAuthority("tsa", fixture.CertificateOptions{})
	require.NoError(t, err)
	ca, chain, between := top, []*x509.Certificate(nil), []*x509.Certificate(nil)
	if intermediate {
		ca, err = top.IssueAuthority("issuing", fixture.CertificateOptions{})
		require.NoError(t, err)
		chain, between = []*x509.Certificate{ca.Chain[0]}, []*x509.Certificate{ca.Chain[0]}
	}
	leaf, key := ownCA(t, ca, template)
	img := e.signed(t, "app/x")
	text := byOwnPKI(t, leaf, key, tsa, sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{}), chain...)
	var made map[string]any
	require.NoError(t, json.Unmarshal(text, &made))
	if change != nil {
		change(made)
	}
	text, err = json.Marshal(made)
	require.NoError(t, err)
	target, err := e.registry.Repository(t.Context(), "app/x")
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, text)
	require.NoError(t, err)
	require.Empty(t, e.keylessOwn(t, ownRoot(t, tsa, top.Chain[0], between...), identity))
	return e.outcome(t, "team-a", img)
}

// sigstore-go#581, cosign#3976, #4562: a bundle of version 0.3 has a chain where it may have one certificate only.
func TestABundleOfVersion03MayHaveAChain(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	requireOutcome(t, policy.Allowed,
		e.bundleByOwnCA(t, &x509.Certificate{EmailAddresses: []string{someone}}, "{insecureIgnoreIssuer: true, subject: "+someone+"}",
			func(b map[string]any) { b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.3+json" }, true))
}

// cosign#2279: a service's certificate has a DNS name or a common name only; cosign#2411: one has several names.
func TestADenialSaysWhichNamesOfACertificateCount(t *testing.T) {
	for name, c := range map[string]struct {
		template x509.Certificate
		says     string
	}{
		"a DNS name":    {x509.Certificate{DNSNames: []string{"ci.example.com"}}, "names neither an e-mail address nor a URI"},
		"a common name": {x509.Certificate{Subject: pkix.Name{CommonName: "ci"}}, "names neither an e-mail address nor a URI"},
		"several addresses": {x509.Certificate{EmailAddresses: []string{"a@example.com", someone}},
			`"a@example.com" (the first of 2 names of the certificate, which alone counts)`},
	} {
		e := newEnvironment(t, fixture.RegistryOptions{})
		v := e.bundleByOwnCA(t, &c.template, "{issuer: x, subject: "+someone+"}", nil, false)
		requireOutcome(t, policy.Denied, v)
		require.Contains(t, v.Reason, c.says, name)
		require.NotContains(t, v.Reason, "does not hold under", name)
	}
}

// cosign#1249: an envelope of an old cosign has the predicate type as the type of its content.
func TestAnEnvelopeOfAnotherContentNamesIt(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "app/x")
	text := envelope(t, statementOf(img, scanned, map[string]any{}), base64.StdEncoding.EncodeToString, e.signer(t, "a"))
	e.attachEnvelopes(t, img, nil, []byte(strings.Replace(string(text), intoto, "cosign.sigstore.dev/attestation/v1", 1)))
	e.attests(t, scanned)
	v := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, v)
	require.Contains(t, v.Reason, `content of the type "cosign.sigstore.dev/attestation/v1"`)
}

// policy-controller#491: a short name of cosign attest --type is no predicate type, and the advice to use it would never end.
func TestAShortNameOfAPredicateTypeIsRefusedWithTheLongOne(t *testing.T) {
	for short, long := range map[string]string{"spdxjson": "https://spdx.dev/Document", "slsaprovenance1": "https://slsa.dev/provenance/v1",
		"vuln": "https://cosign.sigstore.dev/attestation/vuln/v1"} {
		e := newEnvironment(t, fixture.RegistryOptions{})
		problems := e.apply(t, attestationBy("team-a", string(e.signer(t, "a").PEM), short, ""), e.policy(t, "team-a", "p", releaseNeeded))
		require.NotEmpty(t, problems)
		require.Contains(t, fmt.Sprint(problems), long)
	}
}

// cosign#4640, #4666: an entry of a newer log has no time, and nobody else vouches for one.
func TestASignatureThatNobodyTimedSaysSo(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	instance, err := sigstore.New()
	require.NoError(t, err)
	img := e.signed(t, "app/x")
	text, err := instance.Bundle(someone, vouched, sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{}),
		sigstore.SignOptions{WithoutTimestamp: true})
	require.NoError(t, err)
	var made map[string]any
	require.NoError(t, json.Unmarshal(text, &made))
	entry := made["verificationMaterial"].(map[string]any)["tlogEntries"].([]any)[0].(map[string]any)
	delete(entry, "integratedTime")
	delete(entry, "inclusionPromise")
	text, err = json.Marshal(made)
	require.NoError(t, err)
	target, err := e.registry.Repository(t.Context(), "app/x")
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, text)
	require.NoError(t, err)
	require.Empty(t, e.apply(t, keyless(t, "team-a", instance, trustingSomeone), e.policy(t, "team-a", "p", releaseNeeded)))
	v := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, v)
	require.Contains(t, v.Reason, "nobody vouches for the time of signing")
}

// Where the issuer does not count, one person is one signer, whatever issuer the certificates name.
func TestOnePersonIsOneSignerWhereTheIssuerIsIgnored(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	ca, err := fixture.NewAuthority("own root")
	require.NoError(t, err)
	tsa, err := fixture.NewTimestampAuthority("tsa", fixture.CertificateOptions{})
	require.NoError(t, err)
	img := e.signed(t, "app/x")
	target, err := e.registry.Repository(t.Context(), "app/x")
	require.NoError(t, err)
	for _, extensions := range [][]pkix.Extension{nil,
		{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte("https://accounts.example.com")}}} {
		leaf, key := ownCA(t, ca, &x509.Certificate{EmailAddresses: []string{someone}, ExtraExtensions: extensions})
		_, err = fixture.PushBundle(t.Context(), target, img,
			byOwnPKI(t, leaf, key, tsa, sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{})))
		require.NoError(t, err)
	}
	require.Empty(t, e.keylessOwn(t, ownRoot(t, tsa, ca.Chain[0]), "{insecureIgnoreIssuer: true, subject: "+someone+"}"))
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
	require.Empty(t, e.keylessOwn(t, ownRoot(t, tsa, ca.Chain[0]), "{insecureIgnoreIssuer: true, subject: "+someone+"}",
		"rules: [{images: [\"**\"], require: [{anyOf: [release], atLeast: 2}]}]"))
	v := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, v)
	require.Contains(t, v.Reason, "only 1 signer")
}

// An expression may ask that some evidence is absent: a stranger's signature must not hide that ours was not read.
func TestALimitIsToldWhateverOtherSignaturesOfTheEnvelopeSay(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	e.start(t, service.Options{Engine: verify.Options{EvidenceBytes: 9 << 20}})
	img := e.signed(t, "app/x")
	statement := statementOf(img, scanned, billOfMaterials(2_800, 1))
	e.attachEnvelopes(t, img, nil, envelope(t, statement, base64.StdEncoding.EncodeToString, e.signer(t, "stranger"), e.signer(t, "a")))
	e.attests(t, scanned)
	result := e.Verify(t.Context(), "team-a", digestOf(img))
	requireOutcome(t, policy.Denied, result.Verdict)
	require.True(t, result.Findings[0].Incomplete, result.Verdict.Reason)
	require.Contains(t, result.Findings[0].Remediation, "--limit evidence-bytes")
}

// billOfMaterials returns an SPDX document with so many files, as syft writes them: about 250 bytes each, and as
// many as padding in addition.
func billOfMaterials(files, padding int) map[string]any {
	var list []any
	for i := range files {
		list = append(list, map[string]any{"SPDXID": fmt.Sprintf("SPDXRef-File-%d", i), "fileName": fmt.Sprintf("usr/lib/%d/", i) + strings.Repeat("x", padding),
			"checksums": []any{map[string]any{"algorithm": "SHA1", "checksumValue": strings.Repeat("a", 40)}}, "licenseConcluded": "NOASSERTION",
			"copyrightText": "NOASSERTION"})
	}
	return map[string]any{"spdxVersion": "SPDX-2.3", "files": list}
}

// attestationBy is a Verifier "release" of attestations by a key.
func attestationBy(namespace, key, predicateType, expression string) func(*resource.Objects) {
	return func(o *resource.Objects) {
		v := &v1beta1.Verifier{}
		v.Namespace, v.Name = namespace, "release"
		v.Spec.Type = v1beta1.VerifierTypeAttestation
		v.Spec.Attestation = &v1beta1.AttestationVerifier{PredicateType: predicateType, Expression: expression}
		v.Spec.Attestation.Keys = &v1beta1.Keys{Inline: key}
		v.Spec.Attestation.Keys.InsecureIgnoreTransparencyLog = true
		o.Resources = append(o.Resources, v)
	}
}
