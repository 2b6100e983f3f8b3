//go:build !e2e && !nightly

package evidence

import (
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// store gives a namespace a trust store with one certificate.
func store(namespace, name string, kind v1beta1.TrustStoreType, authority *fixture.Authority) func(*resource.Objects) {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Chain[0].Raw})
	made := trustStore(namespace, name, kind, string(text))
	return func(o *resource.Objects) { o.Resources = append(o.Resources, made) }
}

// verifier gives a namespace a Verifier with a specification in YAML.
func verifier(t *testing.T, namespace, name, spec string) func(*resource.Objects) {
	t.Helper()
	made := &v1beta1.Verifier{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &made.Spec), spec)
	made.Namespace, made.Name = namespace, name
	return func(o *resource.Objects) { o.Resources = append(o.Resources, made) }
}

const fixtureIdentity = `"x509.subject: C=US, ST=WA, O=Landwaiter Fixtures, CN=release"`

// Each field of a notation verifier flips the verdict on one signature.
func TestEveryFieldOfANotationVerifierMatters(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	now := time.Now()
	then := now.AddDate(-1, 0, 0)
	root, err := fixture.NewAuthorityWith("root", fixture.CertificateOptions{NotBefore: now.AddDate(-2, 0, 0)})
	require.NoError(t, err)
	other, err := fixture.NewAuthority("other")
	require.NoError(t, err)
	expired, err := root.IssueSigner("release", fixture.CertificateOptions{NotBefore: then.Add(-time.Hour), NotAfter: then.Add(time.Hour)})
	require.NoError(t, err)
	valid, err := root.IssueSigner("release", fixture.CertificateOptions{NotBefore: now.Add(-48 * time.Hour)})
	require.NoError(t, err)
	stamps, err := fixture.NewTimestampAuthority("stamps", fixture.CertificateOptions{})
	require.NoError(t, err)
	strange, err := fixture.NewTimestampAuthority("strange", fixture.CertificateOptions{})
	require.NoError(t, err)
	stamps.Time = then
	images := map[string]fixture.Image{}
	for name, signed := range map[string]struct {
		by      *fixture.Certificate
		options fixture.NotationOptions
	}{
		"stamped": {expired, fixture.NotationOptions{Timestamps: stamps, COSE: true}},
		"plain":   {valid, fixture.NotationOptions{}},
		"overdue": {valid, fixture.NotationOptions{SigningTime: now.Add(-24 * time.Hour), Expiry: now.Add(-time.Hour)}},
	} {
		images[name] = e.signed(t, "app/"+name)
		_, err = e.registry.SignNotation(t.Context(), images[name], signed.by, signed.options)
		require.NoError(t, err)
	}
	const base = "trustStoreRefs: [{name: ca}], trustedIdentities: [" + fixtureIdentity + "]"
	for _, c := range []struct{ image, allowed, denied, says string }{
		{"plain", base, "trustStoreRefs: [{name: other}], trustedIdentities: [" + fixtureIdentity + "]", "does not lead to a trust store"},
		{"plain", base, "trustStoreRefs: [{name: ca}], trustedIdentities: [" + strings.Replace(fixtureIdentity, "release", "nightly", 1) + "]",
			"none of the trusted identities"},
		{"plain", base, base + ", timestamps: {trustStoreRefs: [{name: stamps}]}", "has no timestamp"},
		{"plain", base + ", timestamps: {trustStoreRefs: [{name: stamps}], verifyTimestamp: AfterCertificateExpiry}",
			base + ", timestamps: {trustStoreRefs: [{name: stamps}], verifyTimestamp: Always}", "has no timestamp"},
		{"stamped", base + ", timestamps: {trustStoreRefs: [{name: stamps}]}", base, "expired at"},
		{"stamped", base + ", timestamps: {trustStoreRefs: [{name: stamps}]}", base + ", timestamps: {trustStoreRefs: [{name: strange}]}",
			"no trusted timestamp authority"},
		{"stamped", base + ", level: Permissive", base + ", level: Strict", "expired at"},
		{"stamped", base + ", overrides: {authenticTimestamp: Log}", base + ", level: Permissive, overrides: {authenticTimestamp: Enforce}", "expired at"},
		{"overdue", base + ", overrides: {expiry: Log}", base + ", overrides: {expiry: Enforce}", "the signature expired"},
		{"overdue", base + ", level: Permissive", base + ", level: Permissive, overrides: {expiry: Enforce}", "the signature expired"},
	} {
		for spec, want := range map[string]policy.Outcome{c.allowed: policy.Allowed, c.denied: policy.Denied} {
			problems := e.apply(t, verifier(t, "team-a", "release", "{type: Notation, notation: {"+spec+"}}"),
				store("team-a", "ca", v1beta1.TrustStoreTypeCertificates, root),
				store("team-a", "other", v1beta1.TrustStoreTypeCertificates, other), store("team-a", "stamps", v1beta1.TrustStoreTypeTimestampAuthorities, stamps.Root),
				store("team-a", "strange", v1beta1.TrustStoreTypeTimestampAuthorities, strange.Root))
			require.Empty(t, problems)
			verdict := e.Verify(t.Context(), "team-a", images[c.image].Reference).Verdict
			require.Equal(t, want, verdict.Outcome(), "%s: %s", spec, verdict.Reason)
			if want == policy.Denied {
				require.Contains(t, verdict.Reason, c.says)
			}
		}
	}
}

// Nothing is asked on the request path: the first answer is undecided, and the
// retry finds what was fetched meanwhile.
func TestRevocationIsFetchedBesideRequests(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	responder := fixture.NewResponder()
	t.Cleanup(responder.Close)
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	responder.For(root)
	good, err := root.IssueSigner("release", fixture.CertificateOptions{Responder: responder.OCSP})
	require.NoError(t, err)
	bad, err := root.IssueSigner("release", fixture.CertificateOptions{Lists: responder.List})
	require.NoError(t, err)
	responder.Revoke(bad.Chain[0])
	byGood, byBad := e.signed(t, "good"), e.signed(t, "bad")
	for img, by := range map[*fixture.Image]*fixture.Certificate{&byGood: good, &byBad: bad} {
		_, err := e.registry.SignNotation(t.Context(), *img, by, fixture.NotationOptions{})
		require.NoError(t, err)
	}
	demand := func(more string) []func(*resource.Objects) {
		return []func(*resource.Objects){store("team-a", "ca", v1beta1.TrustStoreTypeCertificates, root),
			verifier(t, "team-a", "release", "{type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: ['*']"+more+"}}")}
	}
	verdict := func(img fixture.Image) policy.Verdict { return e.Verify(t.Context(), "team-a", img.Reference).Verdict }

	require.Empty(t, e.apply(t, demand(", revocation: Ignore")...))
	require.Equal(t, policy.Allowed, verdict(byBad).Outcome(), "revocation is not asked for")

	require.Empty(t, e.apply(t, demand("")...))
	denied := verdict(byGood)
	require.Equal(t, policy.Denied, denied.Outcome(), "nobody may be asked")
	require.Contains(t, denied.Reason, "--egress-host")
	require.Zero(t, responder.Asked())

	e.start(t, service.Options{EgressHosts: []string{responder.Host()}})
	release := responder.Hold()
	t.Cleanup(release)
	require.Empty(t, e.apply(t, demand(", revocation: Check, overrides: {revocation: Enforce}")...))
	require.Equal(t, policy.Undecided, verdict(byGood).Outcome())
	release()
	require.Eventually(t, func() bool { return verdict(byGood).Outcome() == policy.Allowed }, suite.Patience, time.Millisecond)
	require.Eventually(t, func() bool {
		got := verdict(byBad)
		return got.Outcome() == policy.Denied && strings.Contains(got.Reason, "is revoked")
	}, suite.Patience, time.Millisecond)

	require.Empty(t, e.apply(t, demand(", revocation: Check, overrides: {revocation: Log}")...))
	require.Equal(t, policy.Allowed, verdict(byBad).Outcome())
}
