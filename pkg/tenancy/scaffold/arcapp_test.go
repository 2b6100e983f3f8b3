package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

func TestALaterRunKeepsTheApplicationOfTheTree(t *testing.T) {
	for name, app := range map[string]App{
		"in a registry":       {Name: "app", Chart: ParseChart("oci://registry.example.com/charts/app@1.0.0")},
		"with build metadata": {Name: "app", Chart: ParseChart("oci://registry.example.com/charts/app@104.1.2+up57.0.2")},
		"a range":             {Name: "app", Chart: ParseChart("oci://registry.example.com/charts/app@1.x")},
		"in a repository":     {Name: "app", Chart: ParseChart("https://charts.example.com@1.0.0")},
		"in Git":              {Name: "app", Chart: ParseChart("https://git.example.com/app.git")},
		"in Git, with a tag":  {Name: "app", Chart: ParseChart("https://git.example.com/app.git@v1.0.0")},
		"shared, any version": {Name: "app", Shared: true, Chart: ParseChart("https://charts.example.com")},
		"shared":              {Name: "app", Shared: true, Chart: ParseChart("https://charts.example.com@1.0.0")},
	} {
		t.Run(name, func(t *testing.T) {
			a := arc(t, app)
			_, err := a.Run(t.Context())
			require.NoError(t, err)
			for _, later := range []App{{}, {Name: "app"}} {
				a.Team.App = later
				added, err := a.Run(t.Context())
				require.NoError(t, err)
				for _, file := range added.Files {
					require.Equal(t, Unchanged, file.Result, file.Path)
				}
			}

			a.Team.App, a.Team.WithoutApp = App{}, true
			_, err = a.Run(t.Context())
			require.ErrorContains(t, err, "Tenant shop is in clusters/cluster1/app/shop", "its folder is not moved unasked")
		})
	}
}

func TestASharedApplicationDoesNotBecomeAnotherUnasked(t *testing.T) {
	chart := ParseChart("https://charts.example.com@1.0.0")
	a := arc(t, App{Name: "app", Shared: true, Chart: chart})
	light(t, a.Dir)
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	before := kept(t, a.Dir)
	a.Team.App = App{Name: "app", Chart: chart}
	_, err = a.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "clusters/cluster1/app/shop is an overlay of base-deployments/app: give --shared, or first remove app-patch.yaml and "+
		"values-own.yaml there")
	require.Equal(t, before, kept(t, a.Dir))
	for _, name := range []string{"app-patch.yaml", "values-own.yaml"} {
		require.NoError(t, os.Remove(filepath.Join(a.Dir, "clusters/cluster1/app/shop", name)))
	}
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	for _, f := range found(t, a.Dir) {
		require.NotEqual(t, "DoesNotBuild", f.ID, f.Message)
	}
}

// An upgrade that somebody wrote into the file, as a pull request of the team does, is the tree's.
func TestALaterRunKeepsTheVersionThatSomebodyWrote(t *testing.T) {
	const file = "clusters/cluster1/app/shop/app.yaml"
	a := arc(t, App{Name: "app", Chart: ParseChart("oci://registry.example.com/charts/app@1.0.0")})
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	rewrite(t, a.Dir, file, "tag: 1.0.0", "tag: 1.1.0")
	a.Team.App = App{}
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	require.Contains(t, content(t, a.Dir, file), "tag: 1.1.0")
	require.True(t, readStamp(content(t, a.Dir, file)).intact)
}

func TestALaterRunNamesTheFlagsThatItCannotRead(t *testing.T) {
	one, two := "clusters/cluster1/app/shop/app.yaml", "clusters/cluster2/app/shop/app.yaml"
	for says, change := range map[string]func(t *testing.T, dir string){
		"shop --app app --app-chart URL@VERSION; the file stays as it is": func(t *testing.T, dir string) {
			for _, file := range []string{one, two} {
				rewrite(t, dir, file, "url: https://charts.example.com", "url: http://charts.example.com")
			}
		},
		"give the flags of its application again": func(t *testing.T, dir string) {
			for _, file := range []string{one, two} {
				rewrite(t, dir, file, "kind: HelmRelease", "kind: Other")
			}
		},
	} {
		a := addition(t, Platform{Layout: LayoutArc, Clusters: []string{"cluster1", "cluster2"}})
		a.Team.App = App{Name: "app", Chart: ParseChart("https://charts.example.com@1.0.0")}
		_, err := a.Run(t.Context())
		require.NoError(t, err)
		change(t, a.Dir)
		a.Team.App = App{}
		_, err = a.Run(t.Context())
		require.ErrorContains(t, err, says)
	}
}

func TestTheValuesOfAnApplicationSayWhereTheNameOfItsChartGoes(t *testing.T) {
	for chart, says := range map[string]string{
		"https://charts.example.com":                "# If the chart has another name than app, add spec.chart.spec.chart with its name.\n",
		"https://git.example.com/app.git":           "# If the chart is not in charts/app, add spec.chart.spec.chart with its folder.\n",
		"oci://registry.example.com/charts/app@1.x": "landwaiter never changes this file.\napiVersion",
	} {
		a := arc(t, App{Name: "app", Chart: ParseChart(chart)})
		_, err := a.Run(t.Context())
		require.NoError(t, err)
		require.Contains(t, content(t, a.Dir, "clusters/cluster1/app/shop/"+valuesFile), says)
	}
}

// The repository has the folders of the document on Arc, with the Helm Operator's releases.
func TestARepositoryOfTheDocumentOnArcSaysWhatIsOfTheHelmOperator(t *testing.T) {
	dir := filepath.Join(folder(t), "arc")
	archive, err := txtar.ParseFile("../../../test/gitops/testdata/arc-soft-multitenancy.txtar")
	require.NoError(t, err)
	require.NoError(t, txtar.Write(archive, dir))
	p, err := Prepare(dir, Told{Layout: LayoutArc, Settings: settings("clusters=cluster1", "constraints=images")})
	require.NoError(t, err)
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	_, err = Write(dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)

	left, err := p.LeftOvers(dir)
	require.NoError(t, err)
	require.Len(t, left, 5)
	require.Contains(t, left[0], "base-deployments/app2/app2-base-release.yaml: HelmRelease app2 is of the Helm Operator (helm.fluxcd.io/v1), which nothing "+
		"installs: remove it, run landwaiter platform scaffold DIR TENANT --app app2 --shared --app-chart URL@VERSION")
	require.Contains(t, left[1], "azure-arc/policy-addon.yaml: HelmRelease policy-addon is of the Helm Operator (helm.fluxcd.io/v1), which nothing installs: "+
		"remove it, or write it")
	require.Contains(t, left[3], "clusters/cluster1/app2/tenant2/app2-patch.yaml: HelmRelease app2")

	a := Addition{Dir: dir, Team: Team{Tenant: alone("tenant2"), App: App{Name: "app2", Shared: true, Chart: ParseChart("https://charts.example.com")}},
		Write: WriteOptions{Force: true}}
	_, err = a.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused, "the base stays as it is, so the tenant would be a patch of what nothing applies")
	require.ErrorContains(t, err, "--app app2 --shared --app-chart URL@VERSION")

	light(t, dir)
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	found := map[string]string{}
	for _, f := range report.Findings {
		if f.ID == "ObjectInvalid" {
			found[f.File] = f.Message
		}
	}
	require.Len(t, found, 5)
	require.Contains(t, found["base-deployments/app2/app2-base-release.yaml"], "HelmRelease app2 is of the Helm Operator")
}
