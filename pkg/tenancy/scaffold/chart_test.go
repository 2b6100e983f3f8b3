package scaffold

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// landwaiterSpec returns the spec of the tree's source of Landwaiter's chart.
func landwaiterSpec(t *testing.T, platform Platform) map[string]any {
	t.Helper()
	platform.Constraints = []string{imagesSet}
	for _, o := range loaded(t, example{platform: &platform}.write(t)).build("infrastructure/landwaiter").objects {
		if o.GetKind() == "OCIRepository" {
			return o.Object["spec"].(map[string]any)
		}
	}
	t.Fatal("there is no OCIRepository")
	return nil
}

func TestTheSourceOfTheChartIsBoundToAKeyAnIdentityOrADigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("5", 64)
	url := "oci://registry.example.com/charts/landwaiter"
	key := map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": "keys"}}
	for about, c := range map[string]struct {
		chart       Chart
		ref, verify map[string]any
	}{
		"a key": {Chart{URL: url, Verify: ChartVerify{Secret: "keys"}}, map[string]any{"tag": LandwaiterVersion}, key},
		"an identity": {Chart{URL: url, Verify: ChartVerify{Issuer: "^a$", Subject: "^b$"}}, map[string]any{"tag": LandwaiterVersion},
			map[string]any{"provider": "cosign", "matchOIDCIdentity": []any{map[string]any{"issuer": "^a$", "subject": "^b$"}}}},
		"a digest":                {Chart{URL: url, Version: "0.1.0", Digest: digest}, map[string]any{"tag": "0.1.0", "digest": digest}, nil},
		"a digest and a key":      {Chart{URL: url, Version: "0.1.0", Digest: digest, Verify: ChartVerify{Secret: "keys"}}, map[string]any{"tag": "0.1.0", "digest": digest}, key},
		"the project's own chart": {Chart{}, map[string]any{"tag": LandwaiterVersion}, map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": releaseKey}}},
	} {
		t.Run(about, func(t *testing.T) {
			spec := landwaiterSpec(t, Platform{Landwaiter: c.chart})
			require.Equal(t, c.ref, spec["ref"])
			if c.verify == nil {
				require.NotContains(t, spec, "verify")
				return
			}
			require.Equal(t, c.verify, spec["verify"])
		})
	}
}

func TestAChartThatNobodyVerifiesIsAWarning(t *testing.T) {
	dir := light(t, example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}, Gatekeeper: Chart{URL: "oci://registry.example.com/charts/gatekeeper"}}}.write(t))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	found := report.Findings[0]
	require.Equal(t, resource.Warning, found.Severity)
	require.Equal(t, "ChartNotVerified", found.ID)
	require.Equal(t, "infrastructure/gatekeeper/source.yaml", found.File)
	require.Contains(t, found.Message, "--set gatekeeper.digest=DIGEST")
}
