package scaffold

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		"a digest": {Chart{URL: url, Version: "0.1.0", Digest: digest}, map[string]any{"tag": "0.1.0", "digest": digest}, nil},
		"a digest and a key": {Chart{URL: url, Version: "0.1.0", Digest: digest, Verify: ChartVerify{Secret: "keys"}},
			map[string]any{"tag": "0.1.0", "digest": digest}, key},
		"the project's own chart": {Chart{}, map[string]any{"tag": LandwaiterVersion},
			map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": releaseKey}}},
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
	dir := light(t,
		example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"},
			Gatekeeper: Chart{URL: "oci://registry.example.com/charts/gatekeeper"}}}.write(t))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1)
	found := report.Findings[0]
	require.Equal(t, resource.Warning, found.Severity)
	require.Equal(t, "ChartNotVerified", found.ID)
	require.Equal(t, "infrastructure/gatekeeper/source.yaml", found.File)
	require.Contains(t, found.Message, "--set gatekeeper.digest=DIGEST")
}

func TestStagingTakesPreReleasesAndOtherEnvironmentsStableVersions(t *testing.T) {
	only := func(name, value string) map[string]any { return map[string]any{name: value} }
	for about, c := range map[string]struct {
		chart           Chart
		staging, stable map[string]any // spec.ref of the source, or the version of the release
	}{
		"a range of a Helm repository": {Chart{URL: "https://charts.example.com", Version: "6.x"}, only("version", "6.x-0"), only("version", "6.x")},
		"any version of one":           {Chart{URL: "https://charts.example.com", Version: "*"}, only("version", ">=0.0.0-0"), only("version", "*")},
		"a range in a registry": {Chart{URL: "oci://registry.example.com/charts/web", Version: "^1.2.0"}, only("semver", "^1.2.0-0"),
			only("semver", "^1.2.0")},
		"one version in a registry": {Chart{URL: "oci://registry.example.com/charts/web", Version: "1.2.0"}, only("tag", "1.2.0"), only("tag", "1.2.0")},
		"a range of tags in Git": {Chart{URL: "https://git.example.com/web.git", Version: ">=1.0.0 <2.0.0"}, only("semver", ">=1.0.0-0 <2.0.0-0"),
			only("semver", ">=1.0.0 <2.0.0")},
		"a branch in Git": {Chart{URL: "https://git.example.com/web.git", Version: "*"}, only("branch", "main"), only("branch", "main")},
		"a range up to a version": {Chart{URL: "https://charts.example.com", Version: ">=1.0.0, <=2.0.0"}, only("version", ">=1.0.0-0, <2.0.1-0"),
			only("version", ">=1.0.0, <=2.0.0")},
		"a range with a hyphen": {Chart{URL: "https://charts.example.com", Version: "1.2 - 1.4"}, only("version", ">=1.2-0 <1.5-0"),
			only("version", "1.2 - 1.4")},
		"two with hyphens": {Chart{URL: "oci://registry.example.com/charts/web", Version: "1.2.0 - 1.4.9 || v3 - v4"},
			only("semver", ">=1.2.0-0 <1.4.10-0 || >=v3-0 <v5-0"), only("semver", "1.2.0 - 1.4.9 || v3 - v4")},
		"one with a pre-release": {Chart{URL: "https://charts.example.com", Version: "1.2.0-rc.1 - 1.4"}, only("version", "1.2.0-rc.1 - 1.4"),
			only("version", "1.2.0-rc.1 - 1.4")},
		"a version with build metadata": {Chart{URL: "oci://registry.example.com/charts/web", Version: "104.1.2+up57.0.2"}, only("tag", "104.1.2_up57.0.2"),
			only("tag", "104.1.2_up57.0.2")},
		"a tag of Git with it": {Chart{URL: "https://git.example.com/web.git", Version: "104.1.2+up57.0.2"}, only("tag", "104.1.2+up57.0.2"),
			only("tag", "104.1.2+up57.0.2")},
		"a range that would mean more": {Chart{URL: "https://charts.example.com", Version: ">1.0.0"}, only("version", ">1.0.0"), only("version", ">1.0.0")},
		"a range that has pre-releases": {Chart{URL: "https://charts.example.com", Version: ">=1.0.0-alpha"}, only("version", ">=1.0.0-alpha"),
			only("version", ">=1.0.0-alpha")},
		"two ranges": {Chart{URL: "https://charts.example.com", Version: "1.x || ~3.1"}, only("version", "1.x-0 || ~3.1-0"),
			only("version", "1.x || ~3.1")},
	} {
		t.Run(about, func(t *testing.T) {
			dir := example{own: &Repository{Tenant: team("shop", nil), App: App{Name: "web", Chart: c.chart}, Places: []string{"staging", "production", "dev"}}}.write(t)
			for environment, want := range map[string]map[string]any{"staging": c.staging, "production": c.stable, "dev": c.stable} {
				var got map[string]any
				for _, o := range loaded(t, dir).build(environment).objects {
					if ref, ok, _ := unstructured.NestedMap(o.Object, "spec", "ref"); ok {
						got = ref
					}
					if version, ok, _ := unstructured.NestedString(o.Object, "spec", "chart", "spec", "version"); ok {
						require.Nil(t, got, "said twice")
						got = only("version", version)
					}
				}
				require.Equal(t, want, got, environment)
			}
			require.Equal(t, about == "a range that would mean more",
				strings.Contains(content(t, dir, "staging/values.yaml"), "The range takes stable versions here too"))
			require.NotRegexp(t, `(?m)^ +(version|ref):`, content(t, dir, "base/source.yaml")+content(t, dir, "base/release.yaml"), "each environment says it")
		})
	}
}

func TestOnlyVersionsAndRangesAreVersions(t *testing.T) {
	for text, is := range map[string]bool{
		"1.2.0": true, "v1.2": true, "1.x": true, "*": true, ">=0.0.0-0": true, "~1.2": true, "~> 1.2": true, "^1.2.0-rc.1": true, ">=1.0.0 <2.0.0": true,
		">= 1.2, < 3 || 5.x": true,
		"1.2 - 1.4":          true, "104.1.2+up57.0.2": true, "!=1.2.3": true, "0.20.X": true,
		"latest": false, "abc": false, "6.8.O": false, "v6.x.y": false, "": false, "1.2.3.4": false, "main": false, "1..2": false, ">": false,
	} {
		require.Equal(t, is, isVersion(text), text)
	}
	for _, version := range []string{"latest", "6.8.O", "v6.x.y"} {
		_, err := Platform{Landwaiter: Chart{Version: version}}.Complete()
		require.ErrorContains(t, err, "landwaiter.version: \""+version+"\" is neither a version nor a range")
		require.ErrorContains(t, App{Name: "web", Chart: Chart{URL: "https://charts.example.com", Version: version}}.checkChart(), "is no version")
	}
}
