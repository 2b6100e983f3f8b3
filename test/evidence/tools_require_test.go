//go:build !e2e

package evidence

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const repository = "team-a/app"

// registries are those that run, by name.
var registries sync.Map

// start starts a registry. Its name is the same in each run, because signatures are for
// names. It is a private address, which cosign asks without TLS.
func start(t *testing.T, options fixture.RegistryOptions) *fixture.Registry {
	t.Helper()
	for n := 1; ; n++ {
		options.Name = fmt.Sprintf("10.0.0.%d:5000", n)
		if _, taken := registries.Load(options.Name); !taken {
			break
		}
	}
	registry, err := fixture.StartRegistry(options)
	require.NoError(t, err)
	registries.Store(options.Name, registry)
	t.Cleanup(func() {
		registries.Delete(options.Name)
		require.NoError(t, registry.Close())
	})
	return registry
}

// push pushes an image that is the same in each run.
func push(t *testing.T, registry *fixture.Registry, name, tag string) fixture.Image {
	t.Helper()
	img, err := registry.PushContent(t.Context(), name, tag, t.Name()+" "+tag)
	require.NoError(t, err)
	return img
}

// byKey trusts the keys of a trust store.
func byKey(store string) v1beta1.VerifierSpec {
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: store}},
			TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}}
}

// byCertificate is a verifier of notation signatures of the fixtures' signers.
func byCertificate() v1beta1.VerifierSpec {
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeNotation, Notation: &v1beta1.NotationVerifier{
		TrustStoreRefs:    []v1beta1.TrustStoreRef{{Name: trusted}},
		TrustedIdentities: []string{"x509.subject: C=US, ST=WA, O=Landwaiter Fixtures"},
	}}
}

// requireAllowed also wants that evidence of one kind was what counted.
func requireAllowed(t *testing.T, artifactType string, result verify.Result) {
	t.Helper()
	require.Equal(t, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
	require.True(t, slices.ContainsFunc(result.Findings, func(f policy.Finding) bool {
		return f.Result() == policy.Valid && f.ArtifactType == artifactType
	}), "no valid finding of type %s in %+v", artifactType, result.Findings)
}

// requireDenied wants one finding with the reason, and nothing valid.
func requireDenied(t *testing.T, reason string, result verify.Result) {
	t.Helper()
	require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
	require.NotEmpty(t, result.Verdict.Reason)
	var reasons []string
	for _, finding := range result.Findings {
		require.NotEqual(t, policy.Valid, finding.Result(), finding.Message)
		reasons = append(reasons, string(finding.Reason))
	}
	require.Contains(t, reasons, reason, result.Verdict.Reason)
}

// requireDeniedWithoutSignature wants a deny that says that there is none.
func requireDeniedWithoutSignature(t *testing.T, result verify.Result) {
	t.Helper()
	require.Equal(t, policy.Denied, result.Verdict.Outcome(), result.Verdict.Reason)
	require.Contains(t, result.Verdict.Reason, "no signature")
}
