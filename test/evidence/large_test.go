//go:build !e2e && !nightly && !race

// The race detector makes each check ten times slower, and checks end by time.

package evidence

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

// GitHub stores attestations with predicates of up to 16 MiB (actions/attest).
func TestALargeBillOfMaterialsCounts(t *testing.T) {
	asTheChart(t)
	e := newEnvironment(t, fixture.RegistryOptions{})
	for name, c := range map[string]struct {
		files, padding int
		expression     string
	}{
		"long names":                 {10_000, 300, ""},
		"long names, an expression":  {16_000, 300, "predicate.files.exists(f, f.SPDXID == 'SPDXRef-File-15999')"},
		"short names":                {20_000, 10, ""},
		"short names, an expression": {32_000, 10, "predicate.spdxVersion == 'SPDX-2.3' && size(predicate.files) == 32000"},
	} {
		t.Run(name, func(t *testing.T) {
			img := e.signed(t, "app/"+strings.NewReplacer(" ", "-", ",", "").Replace(name))
			statement := sigstore.Statement(img.Descriptor.Digest, spdx, billOfMaterials(c.files, c.padding))
			t.Logf("a statement of %d bytes", len(statement))
			_, err := e.registry.SignCosignBundle(t.Context(), img, e.signer(t, "a"), fixture.CosignOptions{Payload: statement})
			require.NoError(t, err)
			require.Empty(t, e.apply(t, attestationBy("team-a", string(e.signer(t, "a").PEM), spdx, c.expression), e.policy(t, "team-a", "p", releaseNeeded)))
			requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
		})
	}
}

func TestTheLargestAttestationsOfGitHubCountIfAClusterAdminSaysSo(t *testing.T) {
	asTheChart(t)
	e := newEnvironment(t, fixture.RegistryOptions{})
	img := e.signed(t, "app/x")
	statement := sigstore.Statement(img.Descriptor.Digest, spdx, billOfMaterials(32_000, 308))
	require.InDelta(t, 16<<20, len(statement), 1<<18)
	_, err := e.registry.SignCosignBundle(t.Context(), img, e.signer(t, "a"), fixture.CosignOptions{Payload: statement})
	require.NoError(t, err)
	apply := func() {
		require.Empty(t, e.apply(t, attestationBy("team-a", string(e.signer(t, "a").PEM), spdx, ""), e.policy(t, "team-a", "p", releaseNeeded)))
	}
	apply()
	refused := e.outcome(t, "team-a", img)
	requireOutcome(t, policy.Denied, refused)
	require.Contains(t, refused.Reason, "at most 16777216 bytes for one image")
	result := e.Verify(t.Context(), "team-a", digestOf(img))
	require.Contains(t, result.Findings[0].Remediation, "--limit evidence-bytes")
	e.start(t, service.Options{Engine: verify.Options{EvidenceBytes: 256 << 20}})
	apply()
	requireOutcome(t, policy.Allowed, e.outcome(t, "team-a", img))
}

// asTheChart has Go collect garbage as the chart sets it: with that of make test, each check would take memory that
// nothing used before, which can be ten times slower than what it does there.
func asTheChart(t *testing.T) {
	t.Helper()
	percent, limit := debug.SetGCPercent(300), debug.SetMemoryLimit(400<<20)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}
