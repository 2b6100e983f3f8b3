package notation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/notation"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// A signature counts by the trust stores of its own scheme only (trust store and trust
// policy specification, "Trust Store").
func TestASignatureOfOneSchemeIsNeverTrustedByTheOther(t *testing.T) {
	first, second := authority(t, "first", fixture.CertificateOptions{}), authority(t, "second", fixture.CertificateOptions{})
	img := anImage(t, "image")
	both := notation.Options{Name: "Verifier team-a/release", Certificates: first.Chain, SigningAuthorities: second.Chain, TrustedIdentities: []string{"*"}}
	signing := notation.Options{Name: "Verifier team-a/release", SigningAuthorities: second.Chain, TrustedIdentities: []string{"*"}}
	for name, c := range map[string]struct {
		options notation.Options
		root    *fixture.Authority
		scheme  bool // that of signing authorities
		says    string
	}{
		"certificate by its scheme":                  {both, first, false, ""},
		"signing authority by its scheme":            {both, second, true, ""},
		"signing authority alone":                    {signing, second, true, ""},
		"certificate as signing authority":           {both, first, true, "for the scheme notary.x509 only"},
		"signing authority as certificate":           {both, second, false, "as a signing authority only"},
		"signing authority alone as certificate":     {signing, second, false, "as a signing authority only"},
		"certificate where there are no such stores": {trusting(first.Chain...), first, true, "for the scheme notary.x509 only"},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := signer(t, c.root, "release", fixture.CertificateOptions{})
			bothEnvelopes(t, func(t *testing.T, options fixture.NotationOptions) {
				options.SigningAuthority = c.scheme
				for _, level := range []notation.Level{notation.Strict, notation.Permissive} {
					c.options.Level = level
					finding := check(t, c.options, img, signed(t, img, leaf, options))
					if c.says == "" {
						require.Equal(t, policy.Valid, finding.Result(), finding.Message)
						continue
					}
					requireDenied(t, policy.ReasonUntrustedCertificate, finding)
					require.Contains(t, finding.Message, c.says)
				}
			})
		})
	}
}

func TestIdentitiesOfSigningAuthoritiesAreChecked(t *testing.T) {
	root := authority(t, "root", fixture.CertificateOptions{})
	img := anImage(t, "image")
	options := notation.Options{Name: "v", SigningAuthorities: root.Chain, TrustedIdentities: trusting().TrustedIdentities}
	good, other := signer(t, root, "release", fixture.CertificateOptions{}), signer(t, root, "release", fixture.CertificateOptions{Organization: "Mallory"})
	require.Equal(t, policy.Valid, check(t, options, img, signed(t, img, good, fixture.NotationOptions{SigningAuthority: true})).Result())
	requireDenied(t, policy.ReasonUntrustedIdentity, check(t, options, img, signed(t, img, other, fixture.NotationOptions{SigningAuthority: true})))
	options.TrustedIdentities = nil
	_, err := notation.New(options)
	require.ErrorContains(t, err, "without trusted identities", "only the profiles of AWS Signer can stand in for them")
}

// The certificate has expired since, as those of AWS Signer do within days.
func TestCertificatesOfSigningAuthoritiesAreJudgedAtTheTimeThatTheyState(t *testing.T) {
	now := time.Now()
	root := authority(t, "root", fixture.CertificateOptions{NotBefore: now.Add(-72 * time.Hour), NotAfter: now.Add(72 * time.Hour)})
	expired := signer(t, root, "release", fixture.CertificateOptions{NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-24 * time.Hour)})
	img := anImage(t, "image")
	stamps := timestamps(t, "trusted", fixture.CertificateOptions{})
	plain := notation.Options{Name: "v", SigningAuthorities: root.Chain, TrustedIdentities: []string{"*"}}
	stamped := plain
	stamped.Certificates, stamped.TimestampAuthorities = authority(t, "other", fixture.CertificateOptions{}).Chain, stamps.Root.Chain
	e := signed(t, img, expired, fixture.NotationOptions{SigningAuthority: true, SigningTime: now.Add(-36 * time.Hour)})
	for name, options := range map[string]notation.Options{"alone": plain, "where other signatures need timestamps": stamped} {
		finding := check(t, options, img, e)
		require.Equal(t, policy.Valid, finding.Result(), name+": "+finding.Message)
	}
	garbage := evidenceOf(notation.MediaTypeJWS, withTimestamp(t, e.blobs[e.signature.Layer.Digest], []byte(strings.Repeat("\x30\x80", 9))))
	require.Equal(t, policy.Valid, check(t, stamped, img, garbage).Result(), "timestamps play no part")

	h := awsHeaders().with(func(h headers) {
		h["crit"] = []string{schemeHeader, authenticTimeHeader}
		for _, name := range []string{expiryHeader, pluginHeader, profileHeader, jobHeader} {
			delete(h, name)
		}
	})
	for name, at := range map[string]time.Time{"after": now.Add(-12 * time.Hour), "before": now.Add(-60 * time.Hour)} {
		inBoth(t, func(t *testing.T, cose bool) {
			late := rawEnvelope(t, img, expired, h.with(func(h headers) { h[authenticTimeHeader] = at.UTC().Truncate(time.Second) }), cose)
			requireDenied(t, policy.ReasonTimestampOutOfTime, check(t, plain, img, evidenceOf(mediaType(cose), late)))
			permissive := plain
			permissive.Level = notation.Permissive
			finding := check(t, permissive, img, evidenceOf(mediaType(cose), late))
			require.Equal(t, policy.Valid, finding.Result(), name)
			require.Contains(t, finding.Message, "the verifier is permissive")
		})
	}
}
