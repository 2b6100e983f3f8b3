//go:build !e2e && !nightly

package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// cosign verify --key refuses a signature without a log entry, unless it is told to ignore logs.
func TestAKeySignatureOutsideTheLogIsDeniedByDefault(t *testing.T) {
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "app", "a")
	e.apply(t, func(o *resource.Objects) {
		o.Resources = append(o.Resources, trustStore("team-a", "keys", v1alpha1.TrustStoreTypePublicKeys, string(e.signer(t, "a").PEM)))
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
		require.Empty(t, e.apply(t, store("team-a", "ca", v1alpha1.TrustStoreTypeCertificates, root),
			verifier(t, "team-a", "release", "{type: Notation, notation: {trustStoreRefs: [{name: ca}], trustedIdentities: ['*'], level: "+level+"}}")))
		requireOutcome(t, want, e.outcome(t, "team-a", img))
	}
}
