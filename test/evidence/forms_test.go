//go:build !e2e && !nightly

package evidence

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

const scanned = "https://example.com/scan/v1"

// attests applies a Verifier of attestations by the key of signer "a", and a policy that requires it.
func (e *environment) attests(t *testing.T, predicateType string) {
	t.Helper()
	require.Empty(t, e.apply(t, attestationBy("team-a", string(e.signer(t, "a").PEM), predicateType, ""), e.policy(t, "team-a", "p", releaseNeeded)))
}

// attest attaches a statement as cosign 2 does, or in a bundle.
func (e *environment) attest(t *testing.T, img fixture.Image, legacy bool, statement []byte) {
	t.Helper()
	if legacy {
		e.attachEnvelopes(t, img, nil, envelope(t, statement, base64.StdEncoding.EncodeToString, e.signer(t, "a")))
		return
	}
	_, err := e.registry.SignCosignBundle(t.Context(), img, e.signer(t, "a"), fixture.CosignOptions{Payload: statement})
	require.NoError(t, err)
}

// in-toto's DigestSet: "Consumers MUST ignore" algorithms that they do not know (cosign#4019, attestation#212).
func TestDigestsOfOtherAlgorithmsDoNotMatter(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		for name, other := range map[string]map[string]any{
			"a module in base64":  {"dirHash1": "h1:eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="},
			"a commit":            {"gitCommit": "d6525c840a62b398424a78d792f457477135d0cf"},
			"nothing hexadecimal": {"x": "?"},
			"another known one":   {"sha512": "00"},
		} {
			t.Run(name, func(t *testing.T) {
				e := newEnvironment(t, fixture.RegistryOptions{})
				img := e.signed(t, "app/x")
				e.attest(t, img, legacy, statementOf(img, scanned, map[string]any{"n": 1},
					map[string]any{"name": "other", "digest": other},
					map[string]any{"name": "app", "digest": map[string]any{"sha256": img.Descriptor.Digest.Encoded(), "gitTree": "not hex"}},
					map[string]any{"name": "example.com/m@v1.0.0", "digest": other}))
				e.attests(t, scanned)
				requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
			})
		}
	}
}

// Azure Key Vault signs with RS384 under RSA-3072 and with RS512 under RSA-4096 (sigstore#1384, #1528, cosign#3585).
func TestTheHashOfASignatureMayFollowTheSizeOfTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		bits   int
		hash   crypto.Hash
		legacy bool
	}{"3072, bundle": {3072, crypto.SHA384, false}, "3072, legacy": {3072, crypto.SHA384, true}, "4096, bundle": {4096, crypto.SHA512, false},
		"4096, legacy":      {4096, crypto.SHA512, true},
		"3072 with SHA-256": {3072, crypto.SHA256, false}, "4096 with SHA-256": {4096, crypto.SHA256, true}} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			key := rsaKey(t, c.bits, c.hash)
			img := e.signed(t, "app/x")
			var err error
			if c.legacy {
				_, err = e.registry.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
			} else {
				_, err = e.registry.SignCosignBundle(t.Context(), img, key, fixture.CosignOptions{})
			}
			require.NoError(t, err)
			require.Empty(t, e.apply(t, trustingPEM("team-a", string(key.PEM), ""), e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
		})
	}
}

// dsse#40, cosign#2415: several signatures; jsr#1418: URL-safe base64. DSSE: "either standard or URL-safe base64 encoding".
func TestLegacyEnvelopesCountInEveryForm(t *testing.T) {
	std, url, raw := base64.StdEncoding.EncodeToString, base64.URLEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	for name, c := range map[string]struct {
		encode  func([]byte) string
		signers []string
		want    policy.Outcome
	}{"ours is the first": {std, []string{"a", "b"}, policy.Allowed}, "ours is the second": {std, []string{"b", "a"}, policy.Allowed},
		"URL-safe":                 {url, []string{"a"}, policy.Allowed},
		"URL-safe without padding": {raw, []string{"a"}, policy.Allowed}, "by others": {std, []string{"b", "c"}, policy.Denied},
		"by nobody": {std, nil, policy.Denied}} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			img := e.signed(t, "app/x")
			var keys []*fixture.CosignKey
			for _, s := range c.signers {
				keys = append(keys, e.signer(t, s))
			}
			e.attachEnvelopes(t, img, nil, envelope(t, statementOf(img, scanned, map[string]any{"text": "ÿþ?>~~~ ??>>"}), c.encode, keys...))
			e.attests(t, scanned)
			requireOutcome(t, c.want, e.outcome(t, "team-a", img))
		})
	}
}

// sigstore-go#89: the certificate, its log entry and its chain are right, and the identity is not the wanted one.
func TestADenialSaysWhoSigned(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	instance, err := sigstore.New()
	require.NoError(t, err)
	img := e.signed(t, "app/x")
	e.signKeyless(t, instance, img, false, sigstore.SignOptions{})
	spec := "{type: Cosign, cosign: {keyless: {identities: [{issuer: " + vouched + ", subject: other@example.com}], rootTrustStoreRef: {name: root}, " +
		"insecureIgnoreSCT: true}}}"
	require.Empty(t, e.apply(t, keyless(t, "team-a", instance, spec), e.policy(t, "team-a", "p", releaseNeeded)))
	v := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, v)
	require.Contains(t, v.Reason, someone)
}

// terrapod#628, cosign#2737: the type of the attestation ends in a version.
func TestADenialSaysWhichPredicateTypesThereAre(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		e := newEnvironment(t, fixture.RegistryOptions{})
		img := e.signed(t, "app/x")
		e.attest(t, img, legacy, statementOf(img, "https://spdx.dev/Document/v2.3", map[string]any{"spdxVersion": "SPDX-2.3"}))
		e.attests(t, "https://spdx.dev/Document")
		v := e.outcome(t, "team-a", img)
		requireOutcome(t, policy.Denied, v)
		require.Contains(t, v.Reason, "https://spdx.dev/Document/v2.3")
	}
}

// specifications#298, notation-go#275: the subject has an attribute, or two values, that notation cannot compare.
func TestANameThatNotationCannotCompareIsNotSaidToBeSomebodyElses(t *testing.T) {
	base := pkix.Name{Country: []string{"US"}, Province: []string{"WA"}, Organization: []string{"Example"}, CommonName: "release"}
	mail, uid, units := base, base, base
	mail.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "release@example.com"}}
	uid.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: "u123"}}
	units.OrganizationalUnit = []string{"A", "B"}
	for name, subject := range map[string]pkix.Name{"e-mail": mail, "UID": uid, "two OUs": units} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, fixture.RegistryOptions{})
			ca, err := fixture.NewAuthority("ca")
			require.NoError(t, err)
			leaf, key := ownCA(t, ca, &x509.Certificate{Subject: subject})
			img := e.signed(t, "app/x")
			_, err = e.registry.SignNotation(t.Context(), img, &fixture.Certificate{Chain: []*x509.Certificate{leaf, ca.Chain[0]}, Key: key}, fixture.NotationOptions{})
			require.NoError(t, err)
			require.Empty(t,
				e.apply(t,
					verifier(t, "team-a", "release", "{type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: ['x509.subject: C=US, ST=WA, O=Example, "+
						"CN=release']}}"),
					store("team-a", "ca", v1beta1.TrustStoreTypeCertificates, ca), e.policy(t, "team-a", "p", releaseNeeded)))
			v := e.outcome(t, "team-a", img)
			requireOutcome(t, policy.Denied, v)
			require.NotContains(t, v.Reason, "is none of the trusted identities")
			require.Contains(t, v.Reason, "cannot be compared")
		})
	}
}

// cosign#4614, #2858, #1554: certificates of an own PKI have no extension that names an issuer of identities.
func TestAnIdentityWithoutFulciosIssuerIsAcceptedWhereARuleSaysSo(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	ca, err := fixture.NewAuthority("own root")
	require.NoError(t, err)
	tsa, err := fixture.NewTimestampAuthority("tsa", fixture.CertificateOptions{})
	require.NoError(t, err)
	leaf, key := ownCA(t, ca, &x509.Certificate{Subject: pkix.Name{CommonName: "release"}, EmailAddresses: []string{"release@example.com"}})
	img := e.signed(t, "app/x")
	bundle := byOwnPKI(t, leaf, key, tsa, sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{}))
	target, err := e.registry.Repository(t.Context(), "app/x")
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, img, bundle)
	require.NoError(t, err)
	for identity, c := range map[string]struct {
		problem string // with the resource
		denial  string
	}{
		"{insecureIgnoreIssuer: true, subject: release@example.com}":               {},
		"{insecureIgnoreIssuer: true, subjectRegExp: '.*@example.com'}":            {},
		"{insecureIgnoreIssuer: true, subject: other@example.com}":                 {denial: `the signature is by "release@example.com", an identity`},
		"{issuer: 'https://example.com', subject: release@example.com}":            {denial: `whose certificate names no issuer`},
		"{issuerRegExp: '.+', subject: release@example.com}":                       {denial: `whose certificate names no issuer`},
		"{issuerRegExp: '.*', subject: release@example.com}":                       {problem: "matches an empty issuer"},
		"{issuerRegExp: '(https://x)?', subject: release@example.com}":             {problem: "matches an empty issuer"},
		"{subject: release@example.com}":                                           {problem: "exactly one of"},
		"{issuer: x, insecureIgnoreIssuer: true, subject: release@example.com}":    {problem: "exactly one of"},
		"{insecureIgnoreIssuer: true, subject: a}, {issuer: x, subjectRegExp: .*}": {denial: `the signature is by "release@example.com"`},
	} {
		problems := e.keylessOwn(t, ownRoot(t, tsa, ca.Chain[0]), identity)
		if c.problem != "" {
			require.NotEmpty(t, problems, identity)
			require.Contains(t, fmt.Sprint(problems), c.problem, identity)
			continue
		}
		require.Empty(t, problems, identity)
		v := e.outcome(t, "team-a", img)
		require.Equal(t, c.denial == "", v.Outcome() == policy.Allowed, "%s: %s", identity, v.Reason)
		require.Contains(t, v.Reason, c.denial, identity)
	}
	public, err := fixture.NewAuthorityWith("sigstore", fixture.CertificateOptions{Organization: "sigstore.dev"})
	require.NoError(t, err)
	problems := e.keylessOwn(t, ownRoot(t, tsa, public.Chain[0]), "{insecureIgnoreIssuer: true, subject: release@example.com}")
	require.Contains(t, fmt.Sprint(problems), "anyone can get a certificate of Sigstore's public CA")
	require.Empty(t, e.keylessOwn(t, ownRoot(t, tsa, public.Chain[0]), "{issuerRegExp: '.*', subject: release@example.com}"),
		"all its certificates have an issuer")
}
