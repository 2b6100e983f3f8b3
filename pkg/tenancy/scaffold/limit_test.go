package scaffold

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// beyond returns the files of a tree that are not below a folder.
func beyond(files fstest.MapFS, folder string) fstest.MapFS {
	left := maps.Clone(files)
	maps.DeleteFunc(left, func(name string, _ *fstest.MapFile) bool { return within(name, folder) })
	return left
}

// inTwoClusters is a team with an application of its own in two clusters.
func inTwoClusters(t *testing.T, app App) Addition {
	t.Helper()
	a := addition(t, Platform{Layout: LayoutArc, Clusters: []string{"staging", "production"}})
	light(t, a.Dir)
	a.Team.Tenant, a.Team.App = shop(t, "isolation.quota.pods=10"), app
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	a.Team.Tenant, a.Team.App = shop(t), App{}
	return a
}

func TestARunForOneClusterChangesNoOther(t *testing.T) {
	web := func(version string) App {
		return App{Name: "web", Chart: ParseChart("oci://registry.example.com/charts/web@" + version)}
	}
	for name, ask := range map[string]func(t *testing.T, a *Addition){
		"a setting": func(t *testing.T, a *Addition) {
			a.Settings = settings("isolation.registries=registry.example.com/shop/", "namespaces=shop-api")
			a.Team.Tenant = shop(t, a.Settings.Values...)
		},
		"a version":    func(_ *testing.T, a *Addition) { a.Team.App = web("1.1.0") },
		"a whole file": func(t *testing.T, a *Addition) { a.Whole, a.Team.Tenant = true, shop(t, "isolation.quota.pods=50") },
		"a version too": func(t *testing.T, a *Addition) {
			a.Team.App, a.Team.Tenant = web("1.1.0"), shop(t, "namespaces=shop-api")
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := inTwoClusters(t, web("1.0.0"))
			rewrite(t, a.Dir, "clusters/production/web/shop/tenant.yaml", `pods: "10"`, `pods: "20"`) // not applied yet
			before := kept(t, a.Dir)
			a.Team.Places = []string{"staging"}
			ask(t, &a)
			added, err := a.Run(t.Context())
			require.NoError(t, err)
			after := kept(t, a.Dir)
			require.Equal(t, beyond(before, "clusters/staging"), beyond(after, "clusters/staging"))
			require.NotEqual(t, before, after)
			for _, file := range added.Files {
				require.NotEqual(t, Stale, file.Result, file.Path)
			}
		})
	}
}

// A version that one cluster has stays there, whatever a later run is about.
func TestALaterRunKeepsTheVersionOfEachCluster(t *testing.T) {
	a := inTwoClusters(t, App{Name: "web", Chart: ParseChart("https://charts.example.com@1.2.0")})
	const staging, production = "clusters/staging/web/shop/web.yaml", "clusters/production/web/shop/web.yaml"
	rewrite(t, a.Dir, staging, "version: 1.2.0", "version: 1.3.0")
	for _, run := range []struct {
		places, asked []string
	}{{nil, nil}, {[]string{"staging"}, []string{"namespaces=shop-api"}}, {[]string{"production"}, []string{"isolation.network=Open"}},
		{nil, []string{"namespaces=shop-web"}}} {
		a.Team.Places, a.Settings = run.places, settings(run.asked...)
		a.Team.Tenant = shop(t, run.asked...)
		_, err := a.Run(t.Context())
		require.NoError(t, err)
		require.Contains(t, content(t, a.Dir, staging), "version: 1.3.0")
		require.Contains(t, content(t, a.Dir, production), "version: 1.2.0")
		sound(t, a.Dir)
	}
	require.True(t, readStamp(content(t, a.Dir, staging)).intact)

	// A cluster that is new has no version, and two are possible.
	p, err := Prepare(a.Dir, Told{Settings: settings("clusters=third")})
	require.NoError(t, err)
	tree, err := NewPlatform(p)
	require.NoError(t, err)
	_, err = Write(a.Dir, tree, WriteOptions{Force: true})
	require.NoError(t, err)
	a.Team.Places = []string{"third"}
	_, err = a.Run(t.Context())
	require.ErrorContains(t, err, "give --app web --app-chart URL@VERSION for third")
	a.Team.App = App{Name: "web", Chart: ParseChart("https://charts.example.com@1.2.0")}
	_, err = a.Run(t.Context())
	require.NoError(t, err)
	require.Contains(t, content(t, a.Dir, staging), "version: 1.3.0")
}

// The base is every cluster's: what the refusal says changes one cluster's version, and no other's.
func TestTheVersionOfASharedApplicationIsChangedForOneClusterAsTheRefusalSays(t *testing.T) {
	for chart, want := range map[string]string{"oci://registry.example.com/charts/web@1.x": "tag: 1.1.0", "https://charts.example.com@1.0.0": "version: 1.1.0",
		"https://git.example.com/web.git": "tag: 1.1.0"} {
		a := inTwoClusters(t, App{Name: "web", Shared: true, Chart: ParseChart(chart)})
		a.Team.Places = []string{"staging"}
		a.Team.App = App{Name: "web", Shared: true, Chart: ParseChart(strings.SplitN(chart, "@", 2)[0] + "@1.1.0")}
		before := kept(t, a.Dir)
		_, err := a.Run(t.Context())
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "base-deployments/web/web-base-release.yaml changes it for all tenants of all clusters")
		require.Equal(t, before, kept(t, a.Dir))

		_, todo, ok := strings.Cut(err.Error(), "in one cluster, run ")
		require.True(t, ok, err.Error())
		require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", todo).Run())
		staging, production := loaded(t, a.Dir).build("clusters/staging").yaml(t), loaded(t, a.Dir).build("clusters/production").yaml(t)
		require.Contains(t, staging, want)
		require.NotContains(t, staging, "semver")
		require.NotContains(t, staging, "branch: main\n      tag")
		require.NotContains(t, production, "1.1.0")
		sound(t, a.Dir)
	}
}

// In the layouts with one base, a run for one place patches the Tenant there.
func TestARunForOneEnvironmentPatchesTheTenantThere(t *testing.T) {
	for name, c := range map[string]struct {
		platform      Platform
		place, others string
	}{
		"flux":     {Platform{Environments: []string{"staging", "production"}}, "staging", "production"},
		"groups":   {Platform{Layout: LayoutGroups, Groups: []string{"a", "b"}, Clusters: []string{"a/one", "b/two"}}, "a", "b"},
		"operator": {Platform{Environments: []string{"staging", "production"}, Operator: true}, "staging", "production"},
	} {
		t.Run(name, func(t *testing.T) {
			a, again := differs(t, c.platform)
			before, other := kept(t, a.Dir), shopOf(t, a.Dir, c.others)
			a.Team.Places = []string{c.place}
			a.Settings = settings("namespaces=shop-api", "isolation.quota.pods=50")
			a.Team.Tenant = shop(t, a.Settings.Values...)
			require.NoError(t, again())
			sound(t, a.Dir)
			require.Equal(t, beyond(before, "tenants/"+c.place), beyond(kept(t, a.Dir), "tenants/"+c.place))
			require.Equal(t, other, shopOf(t, a.Dir, c.others))
			there := shopOf(t, a.Dir, c.place)
			spec, _, _ := unstructured.NestedMap(there["Tenant shop"].Object, "spec")
			require.Equal(t, []any{"shop-web", "shop-api"}, spec["namespaces"])
			if c.platform.Operator {
				return
			}
			pods, _, _ := unstructured.NestedString(there["ResourceQuota shop-web/tenant"].Object, "spec", "hard", "pods")
			require.Equal(t, "50", pods)
			require.Equal(t, pruneDisabled, there["Namespace shop-api"].GetAnnotations()[pruneAnnotation])
			require.Equal(t, "enabled", there["RoleBinding shop-api/shop-reconciler"].GetAnnotations()[forceAnnotation])

			// Another run adds to the patch; one without a place keeps it.
			a.Settings = settings("isolation.network=Open")
			a.Team.Tenant = shop(t, a.Settings.Values...)
			require.NoError(t, again())
			a.Team.Places, a.Settings, a.Team.Tenant = nil, onboard.Settings{}, shop(t)
			require.NoError(t, again())
			sound(t, a.Dir)
			there = shopOf(t, a.Dir, c.place)
			require.Contains(t, there, "Namespace shop-api")
			require.NotContains(t, there, "NetworkPolicy shop-web/default-deny")
			require.Equal(t, other, shopOf(t, a.Dir, c.others))
		})
	}
}

func TestARunForOneEnvironmentIsRefusedWhereItWouldChangeOthers(t *testing.T) {
	for says, change := range map[string]func(t *testing.T, a *Addition){
		"tenants/base/shop/objects.yaml is for other places too, and would change": func(t *testing.T, a *Addition) {
			rewrite(t, a.Dir, "tenants/base/shop/tenant.yaml", "  - shop-web\n", "  - shop-web\n  - shop-new\n")
		},
		"the login is for all places": func(_ *testing.T, a *Addition) { a.Login = LoginOptions{Kind: "token", File: "-", Out: "x"} },
		"it must be the same everywhere": func(t *testing.T, a *Addition) {
			a.Whole, a.Team.Tenant = true, shop(t, "homeNamespace=other")
		},
		"another patch": func(t *testing.T, a *Addition) {
			put1(t, a.Dir, "tenants/staging/shop-own.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: shop}\n")
			patchTenant(t, a.Dir, "staging", "{}")
			put1(t, a.Dir, "tenants/staging/last.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: shop}\nspec: {isolation: {quota: "+
				"{pods: '5'}}}\n")
			added, err := Edit{Patches: []string{"last.yaml"}}.apply(content(t, a.Dir, "tenants/staging/kustomization.yaml"))
			require.NoError(t, err)
			put1(t, a.Dir, "tenants/staging/kustomization.yaml", added)
			a.Settings = settings("isolation.quota.pods=50")
			a.Team.Tenant = shop(t, a.Settings.Values...)
		},
		"is in production too": func(t *testing.T, a *Addition) {
			require.NoError(t, os.Remove(filepath.Join(a.Dir, "tenants/base/shop/tenant.yaml")))
		},
		"is no patch of Tenant shop": func(t *testing.T, a *Addition) {
			put1(t, a.Dir, "tenants/staging/shop-own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\n")
			a.Settings = settings("isolation.quota.pods=50")
			a.Team.Tenant = shop(t, a.Settings.Values...)
		},
	} {
		t.Run(says, func(t *testing.T) {
			a, again := differs(t, Platform{Environments: []string{"staging", "production"}})
			a.Team.Places = []string{"staging"}
			change(t, a)
			before := kept(t, a.Dir)
			require.ErrorContains(t, again(), says)
			require.Equal(t, before, kept(t, a.Dir))
		})
	}
}

// A team's own repository: a version goes to one environment, and later to the next.
func TestAVersionOfATeamsApplicationGoesToOneEnvironmentFirst(t *testing.T) {
	o := Own{Dir: filepath.Join(folder(t), "web"),
		Repository: Repository{Tenant: shop(t), App: App{Name: "web", Chart: ParseChart("oci://registry.example.com/charts/web@1.4.0")}}}
	_, err := o.Run(t.Context())
	require.NoError(t, err)
	o.Repository.App.Chart.Version = "1.5.0"
	for _, step := range []struct{ place, staging, production string }{{"staging", "1.5.0", "1.4.0"}, {"production", "1.5.0", "1.5.0"}} {
		before := kept(t, o.Dir)
		o.Repository.Places = []string{step.place}
		outcomes, err := o.Run(t.Context())
		require.NoError(t, err)
		for _, outcome := range outcomes {
			require.NotEqual(t, Stale, outcome.Result, outcome.Path)
		}
		require.Contains(t, content(t, o.Dir, "staging/values.yaml"), "tag: "+step.staging)
		require.Contains(t, content(t, o.Dir, "production/values.yaml"), "tag: "+step.production)
		require.Equal(t, beyond(before, step.place), beyond(kept(t, o.Dir), step.place))
	}

	before := kept(t, o.Dir)
	o.Repository.App.Chart.URL = "oci://registry.example.com/charts/other"
	_, err = o.Run(t.Context())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "base/source.yaml is for other places too, and would change")
	require.Equal(t, before, kept(t, o.Dir))
}

func TestAnEntryThatARunAddedIsTakenOffItsList(t *testing.T) {
	const with = "resources:\n  - ../base/shop\n  # keep\n  - shop-objects.yaml\npatches:\n- path: shop-objects-patch.yaml\n"
	text, err := Edit{Gone: []string{"shop-objects.yaml", "shop-objects-patch.yaml", "absent.yaml"}}.apply(with)
	require.NoError(t, err)
	require.Equal(t, "resources:\n  - ../base/shop\n  # keep\npatches: []\n", text)
	for _, otherwise := range []string{"resources: [shop-objects.yaml]\n", "patches:\n- path: shop-objects.yaml\n  target: {kind: Tenant}\n"} {
		_, err = Edit{Gone: []string{"shop-objects.yaml"}}.apply(otherwise)
		require.ErrorContains(t, err, "take the entry off the list")
	}
}

func TestANamespaceThatIsAddedMovesNoApplication(t *testing.T) {
	for namespaces, want := range map[string]string{"shop-web": "shop-web", "[shop-web, shop-api]": "shop-web", "[shop, shop-api]": "shop-api", "": "shop"} {
		var values []string
		if namespaces != "" {
			values = []string{"namespaces=" + namespaces}
		}
		require.Equal(t, want, workloads(shop(t, values...)))
	}
}
