package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsWithoutAMeaningAreRefused(t *testing.T) {
	for says, p := range map[string]Platform{
		"operator means nothing in the layout demo":       {Layout: LayoutDemo, Operator: true},
		"githubOrg means nothing in the layout demo":      {Layout: LayoutDemo, GitHubOrg: "example"},
		"sharedSource means nothing in the layout demo":   {Layout: LayoutDemo, SharedSource: true},
		"enforcement means nothing in the layout demo":    {Layout: LayoutDemo, Enforcement: "deny"},
		"allowedSources means nothing in the layout demo": {Layout: LayoutDemo, AllowedSources: []string{"https://charts.example.com/"}},
		"clusters: c1 is in the groups dev and test: take " +
			"it out of one": {Layout: LayoutGroups, Groups: []string{"dev", "test"}, Clusters: []string{"dev/c1", "test/c1"}},
		"environments means nothing in the layout arc; use clusters":             {Layout: LayoutArc, Environments: []string{"dev"}},
		`allowedSources: "https://charts.example.com/stable" is no prefix; give`: {AllowedSources: []string{"https://charts.example.com/stable"}},
	} {
		_, err := NewPlatform(p)
		require.ErrorContains(t, err, says)
	}
}

func TestPrefixesAreAllowedBesideTheOrganisation(t *testing.T) {
	tree, err := NewPlatform(Platform{Constraints: []string{"flux"}, GitHubOrg: "Example",
		AllowedSources: []string{"https://charts.example.com/", "ssh://git@git.example.com/", "oci://registry.example.com/charts/", "https://s3.example.com/ours/",
			"https://git.example.com/a/b/"}})
	require.NoError(t, err)
	text := textOfFile(t, tree, "infrastructure/policies/kustomization.yaml")
	require.Contains(t, strings.Join(strings.Fields(text), " "), "bucketEndpoints: - charts.example.com - s3.example.com/ours gitPrefixes: - "+
		"https://github.com/Example/ - ssh://git@github.com/Example/ - https://charts.example.com/ - ssh://git@git.example.com/ - https://s3.example.com/ours/ - "+
		"https://git.example.com/a/b/ "+
		"helmPrefixes: - https://example.github.io/ - https://charts.example.com/ - https://s3.example.com/ours/ - https://git.example.com/a/b/ ociPrefixes: - "+
		"oci://ghcr.io/example/ - oci://registry.example.com/charts/ ")
}

// arc is a run for a team in a new tree of that layout.
func arc(t *testing.T, app App) Addition {
	t.Helper()
	a := addition(t, Platform{Layout: LayoutArc, Clusters: []string{"cluster1"}})
	a.Team.App = app
	return a
}

func TestAChartThatNobodyCouldFetchIsRefused(t *testing.T) {
	for says, chart := range map[string]string{
		`"master" is no version`:                          "https://git.example.com/app.git@master",
		`"git@github.com:example/app.git" cannot be used`: "git@github.com:example/app.git",
	} {
		_, err := arc(t, App{Name: "app", Chart: ParseChart(chart)}).Run(t.Context())
		require.ErrorContains(t, err, says)
	}
}

func TestTheSharedApplicationKeepsItsChart(t *testing.T) {
	a := arc(t, App{Name: "app", Shared: true, Chart: ParseChart("https://git.example.com/app.git")})
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	a.Team.Tenant.Name, a.Team.Tenant.Spec.HomeNamespace = "other", "other"
	a.Team.App.Chart = ParseChart("https://git.example.com/another.git")
	_, err = a.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "base-deployments/app has the chart https://git.example.com/app.git for all tenants")
	a.Team.App.Chart = Chart{}
	_, err = a.Run(t.Context())
	require.NoError(t, err, "the base says which chart")
}

func TestTheTeamsOwnRepositoryTakesNoChartThatItWouldDrop(t *testing.T) {
	_, err := NewRepository(Repository{Layout: LayoutArc, Tenant: shop(t, "reconciler.source.url=https://github.com/example/shop"),
		App: App{Name: "app", Chart: ParseChart("https://charts.example.com")}})
	require.ErrorContains(t, err, "--app-chart means nothing with --own in the layout arc")
}

func TestManifestsOfTheDemoThatAreThereStayAsTheyAre(t *testing.T) {
	dir := folder(t)
	put1(t, dir, "kustomizations/wrong-namespace/kustomization.yaml", kustomization("", []string{"configmap.yaml"}, nil))
	p, err := Prepare(dir, Told{Layout: LayoutDemo})
	require.NoError(t, err)
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	for _, file := range tree.Files {
		require.NotContains(t, file.Path, "kustomizations/")
	}
}

func TestCheckFindsWhatNothingCanApplyOrNobodyHas(t *testing.T) {
	a := arc(t, App{Name: "app", Chart: ParseChart("https://charts.example.com@1.0.0")})
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	light(t, a.Dir)
	put1(t, a.Dir, "clusters/cluster1/app/gone/kustomization.yaml", kustomization("", nil, nil))
	put1(t, a.Dir, "clusters/cluster1/app/shop/old.yaml", "apiVersion: helm.fluxcd.io/v1\nkind: HelmRelease\nmetadata: {name: old, namespace: shop}\nspec: {}\n")
	put1(t, a.Dir, "clusters/cluster1/app/shop/all.yaml", "apiVersion: "+sealedValue+"\nkind: "+sealedValue+"\n")
	rewrite(t, a.Dir, "clusters/cluster1/app/shop/kustomization.yaml", "resources:\n", "resources:\n- old.yaml\n")
	report, err := Check(t.Context(), a.Dir, CheckOptions{})
	require.NoError(t, err)
	found := map[string]string{}
	for _, f := range report.Findings {
		found[f.ID+" "+f.File] = f.Message
	}
	require.Contains(t, found["ObjectInvalid clusters/cluster1/app/shop/old.yaml"], "is of the Helm Operator")
	require.Contains(t, found["NotApplied clusters/cluster1/app/gone/kustomization.yaml"], "no cluster applies this folder")
	require.Contains(t, found["NotApplicable clusters/cluster1/app/shop/all.yaml"], "encrypted too")
}

func TestFluxThatWatchesItsOwnNamespaceAloneIsRefused(t *testing.T) {
	b := Bootstrap{URL: "https://github.com/example/demo", Branch: "main",
		Components: []byte(strings.ReplaceAll(trialFlux(), "--log-level=info", "--watch-all-namespaces=false"))}
	_, err := b.Manifest()
	require.ErrorContains(t, err, "run flux install --watch-all-namespaces=true --export")
}

func TestABucketIsAllowedAsTheTemplateReadsIt(t *testing.T) {
	entries := []string{"minio.example.com", "s3.example.com/ours", "https://acct.blob.core.windows.net/", "storage.googleapis.com/ours"}
	for spec, allowed := range map[string]bool{
		"endpoint: minio.example.com, bucketName: any":                                     true,
		"endpoint: s3.example.com, bucketName: ours":                                       true,
		"endpoint: s3.example.com, bucketName: others":                                     false,
		"endpoint: s3.example.com/ours, bucketName: others":                                false,
		"endpoint: 'https://acct.blob.core.windows.net', provider: azure, bucketName: any": true,
		"endpoint: minio.example.com, provider: gcp, bucketName: strangers":                false,
		"endpoint: elsewhere.example.com, provider: gcp, bucketName: ours":                 true,
		"bucketName: any": false,
	} {
		found, err := decode("kind: Bucket\nspec: {" + spec + "}\n")
		require.NoError(t, err)
		host, bucket := bucketOf(found[0])
		require.Equal(t, allowed, listedBucket(entries, host, bucket), spec)
	}
}

func TestAListThatCannotBeReadIsNotTakenForAnEmptyOne(t *testing.T) {
	for name, c := range map[string]struct {
		layout     Platform
		file, text string
		says       string
	}{
		"no YAML": {Platform{}, "tenants/production/kustomization.yaml", kustomize("resources:\n- ../base/shop\n  patches: [\n"),
			"tenants/production/kustomization.yaml:"},
		"no list": {Platform{}, "tenants/production/kustomization.yaml", kustomize("resources: {a: b}\n"),
			"tenants/production/kustomization.yaml:3: nothing was written, because the list cannot be read"},
		"a patch of the Tenant": {Platform{}, "tenants/production/shop-patch.yaml", "a: [\n", "tenants/production"},
		"a cluster": {Platform{Layout: LayoutArc, Clusters: []string{"cluster1"}}, "clusters/cluster1/kustomization.yaml", kustomize("resources: [\n"),
			"clusters/cluster1/kustomization.yaml:"},
		"a group": {Platform{Layout: LayoutGroups, Groups: []string{"production"}, Clusters: []string{"production/one"}},
			"tenants/production/kustomization.yaml", kustomize("resources: [\n"), "production/kustomization.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			a := addition(t, c.layout)
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			require.FileExists(t, filepath.Join(a.Dir, c.file))
			put1(t, a.Dir, c.file, c.text)
			before := kept(t, a.Dir)
			_, err = a.Run(t.Context())
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, kept(t, a.Dir))
		})
	}
}
