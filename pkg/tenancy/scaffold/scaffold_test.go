package scaffold

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/library"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/generated"
)

const fingerprint = "1F3D1CED2F865F5E59CA564553241F147E7C5FA4"

const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// team is a Tenant with a repository and a namespace for its workloads.
func team(name string, change func(*v1beta1.TenantSpec)) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{
		HomeNamespace: name, Namespaces: []string{name + "-web"}, NamespacePrefix: name + "-",
		Reconciler: &v1beta1.TenantReconciler{CreateNamespaces: true, Source: &v1beta1.TenantSource{URL: "https://github.com/example/" + name}}}}
	if change != nil {
		change(&tenant.Spec)
	}
	return tenant
}

// alone is a Tenant whose home namespace is its only namespace, with an account for its charts.
func alone(name string) *v1beta1.Tenant {
	return &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.TenantSpec{HomeNamespace: name, Reconciler: &v1beta1.TenantReconciler{ServiceAccount: name}}}
}

func web(shared bool) App {
	return App{Name: "web", Shared: shared, Chart: Chart{URL: "https://charts.example.com", Version: "1.2.3"}}
}

// example is one use of the package: a platform with teams, or a team's own repository.
type example struct {
	platform *Platform
	teams    []Team
	own      *Repository
}

func irises() []Team {
	return []Team{{Tenant: team("iris-green", nil)}, {Tenant: team("iris-red", nil)}, {Tenant: team("iris-blue", nil)}}
}

func examples() map[string]example {
	key := "-----BEGIN PUBLIC " +
		"KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAElLR5J2/gChOz9L7k9Lwgc9WnOwRv\n70GNTrOrl/geRCx33lChfIvG3GiHOBqDyKFYXSxx5kqlgMJaEyd7r5DgQg==\n-----END " +
		"PUBLIC KEY-----\n"
	images := []string{imagesSet}
	return map[string]example{
		"flux": {platform: &Platform{Constraints: []string{imagesSet, fluxImagesSet}, GitHubOrg: "Example",
			Landwaiter: Chart{URL: "oci://mirror.example.com/charts/landwaiter", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("5", 64)}}, teams: irises()},
		"flux-operator": {platform: &Platform{Constraints: images, Operator: true, SOPSAge: recipient, Environments: []string{"prod"},
			Enforcement: "deny", LandwaiterImage: "mirror.example.com/landwaiter",
			Gatekeeper: Chart{URL: "oci://mirror.example.com/charts/gatekeeper", Version: "3.x",
				Verify: ChartVerify{Issuer: "^https://issuer$", Subject: "^https://github.com/mirror/.*$"}},
			Landwaiter: Chart{URL: "https://charts.example.com"}}, teams: irises()[:1]},
		"groups": {platform: &Platform{Layout: LayoutGroups, Constraints: images}, teams: irises()},
		"arc": {platform: &Platform{Layout: LayoutArc, Constraints: images},
			teams: []Team{{Tenant: alone("tenant1"), App: App{Name: "app1", Chart: Chart{URL: "oci://registry.example.com/charts/app1", Version: "1.0.0"}}},
				{Tenant: alone("tenant2"), App: web(true)}, {Tenant: alone("tenant3"), App: web(true)}, {Tenant: team("tenant4", nil)},
				{Tenant: team("tenant5", nil), App: web(false)},
				{Tenant: alone("tenant6"), App: App{Name: "app6", Chart: Chart{URL: "https://github.com/example/app6.git", Version: "*"}}}}},
		"demo":        {platform: &Platform{Layout: LayoutDemo}},
		"team-flux":   {own: &Repository{Tenant: team("iris-green", nil), PublicKey: key, Images: "registry.example.com/iris-green/**"}},
		"team-groups": {own: &Repository{Layout: LayoutGroups, Tenant: team("iris-green", nil)}},
		"team-arc":    {own: &Repository{Layout: LayoutArc, Tenant: alone("tenant1"), App: App{Name: "app1"}}},
		"team-demo":   {own: &Repository{Layout: LayoutDemo, Tenant: alone("foo")}},
	}
}

// trees returns what an example generates, in the order in which it is written.
func (e example) trees(t *testing.T) []Tree {
	t.Helper()
	if e.own != nil {
		tree, err := NewRepository(*e.own)
		require.NoError(t, err)
		return []Tree{tree}
	}
	tree, err := NewPlatform(*e.platform)
	require.NoError(t, err)
	trees := []Tree{tree}
	for _, team := range e.teams {
		tree, err := NewTeam(*e.platform, team)
		require.NoError(t, err)
		trees = append(trees, tree)
	}
	return trees
}

// written has the files of each example that a test wrote, so that the next one only copies them.
var written sync.Map

// write writes an example into a new folder.
func (e example) write(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	key, err := json.Marshal([]any{e.platform, e.teams, e.own})
	require.NoError(t, err)
	if files, ok := written.Load(string(key)); ok {
		require.NoError(t, os.CopyFS(dir, files.(fstest.MapFS)))
		return dir
	}
	for _, tree := range e.trees(t) {
		_, err := Write(dir, tree, WriteOptions{})
		require.NoError(t, err)
	}
	written.Store(string(key), kept(t, dir))
	return dir
}

// kept returns the files of a folder.
func kept(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		info, err := entry.Info()
		files[name] = &fstest.MapFile{Data: text, Mode: info.Mode()}
		return err
	}))
	return files
}

// copies are folders whose files come from elsewhere in this repository as they are.
func isCopy(name string) bool {
	for _, folder := range []string{"infrastructure/crds/", "infrastructure/templates/", "infrastructure/guardrails/guardrails.yaml",
		"infrastructure/policies/images/verified-images.yaml", "infrastructure/policies/flux-images/flux-images.yaml"} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

// TestTreesAreGolden holds every generated file to testdata; LANDWAITER_UPDATE=1 writes it.
func TestTreesAreGolden(t *testing.T) {
	for name, example := range examples() {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, tree := range example.trees(t) {
				for _, file := range tree.Files {
					if !isCopy(file.Path) {
						fmt.Fprintf(&text, "-- %s (%s) --\n%s", file.Path, tree.By, file.Text)
					}
				}
				for _, edit := range tree.Edits {
					fmt.Fprintf(&text, "-- %s (%s) adds %s %s --\n", edit.Path, tree.By, strings.Join(edit.Resources, " "), strings.Join(edit.Patches, " "))
				}
			}
			require.NoError(t, generated.Check(filepath.Join("testdata", name+".txt"), "", "", text.String()))
		})
	}
}

// On each change, one example has its long manifests; with LANDWAITER_NIGHTLY set, all have them.
func TestTreesBuild(t *testing.T) {
	for name, example := range examples() {
		t.Run(name, func(t *testing.T) {
			dir := example.write(t)
			if example.platform != nil && os.Getenv("LANDWAITER_NIGHTLY") == "" && name != "flux" {
				light(t, dir)
			}
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			require.Positive(t, report.Kustomizations)
			if example.platform != nil && example.platform.Layout != LayoutDemo {
				require.NotEmpty(t, report.Clusters)
			}
		})
	}
}

// yaml is the text of a build.
func (b *built) yaml(t *testing.T) string {
	t.Helper()
	text, err := b.text()
	require.NoError(t, err)
	return text
}

func TestTreesWithEverySetBuild(t *testing.T) {
	sets := constraintSets()
	require.Contains(t, sets, imagesSet)
	for _, organisation := range []string{"", "Acme"} {
		dir := light(t, example{platform: &Platform{GitHubOrg: organisation, Enforcement: "warn"}}.write(t))
		report, err := Check(t.Context(), dir, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Findings)
		text := loaded(t, dir).build("infrastructure/policies").yaml(t)
		require.Equal(t, organisation != "", strings.Contains(text, "https://github.com/Acme/"))
		require.NotContains(t, text, "example", "values that stand for the platform's own")
		require.NotContains(t, text, "enforcementAction: dryrun")
		require.NotContains(t, text, "ProtectedNamespaceLabels")
	}
}

func TestNoConstraintIsCalledByAnEnforcementItDoesNotHave(t *testing.T) {
	for _, enforcement := range []string{"dryrun", "warn", "deny"} {
		dir := light(t, example{platform: &Platform{Constraints: []string{imagesSet}, Enforcement: enforcement}}.write(t))
		text := loaded(t, dir).build("infrastructure/policies").yaml(t)
		require.Contains(t, text, "name: verified-images\n", enforcement)
		require.Contains(t, text, "enforcementAction: "+enforcement+"\n")
	}
}

func TestAllTemplatesAreInTheTree(t *testing.T) {
	templates, err := fs.Glob(library.Files, "*/template.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, templates)
	var kinds []string
	for _, o := range loaded(t, examples()["flux"].write(t)).build("infrastructure/templates").objects {
		kinds = append(kinds, o.GetName())
	}
	require.Len(t, kinds, len(templates))
}

func TestANewerProgramBringsItsOwnVersions(t *testing.T) {
	text, err := NewPlatform(Platform{})
	require.NoError(t, err)
	i := slices.IndexFunc(text.Files, func(file File) bool { return file.Path == SettingsFile })
	require.GreaterOrEqual(t, i, 0, "%s is not among the files", SettingsFile)
	require.NotContains(t, text.Files[i].Text, LandwaiterVersion)
	require.NotContains(t, text.Files[i].Text, "constraints")
	require.Contains(t, text.Files[i].Text, "staging")
}

func TestASecondRunChangesNothing(t *testing.T) {
	for name, example := range examples() {
		t.Run(name, func(t *testing.T) {
			dir := example.write(t)
			for _, tree := range example.trees(t) {
				outcomes, err := Write(dir, tree, WriteOptions{})
				require.NoError(t, err)
				for _, outcome := range outcomes {
					require.Equal(t, Unchanged, outcome.Result, outcome.Path)
				}
			}
		})
	}
}

func TestEveryFileSaysWhoGeneratedIt(t *testing.T) {
	dir := examples()["arc"].write(t)
	require.NoError(t, filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) == ".json" { // which has no comments
			return err
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		found := readStamp(string(text))
		require.True(t, found.intact, name)
		require.NotEmpty(t, found.by, name)
		return nil
	}))
}

func TestTheOverlaysDifferInThePathOnly(t *testing.T) {
	c := loaded(t, examples()["flux"].write(t))
	staging, production := c.build("tenants/staging"), c.build("tenants/production")
	require.False(t, staging.failed || production.failed)
	require.NotEqual(t, staging.yaml(t), production.yaml(t))
	require.Equal(t, strings.ReplaceAll(staging.yaml(t), "path: ./staging", "path: ./production"), production.yaml(t))
}

func TestAnAppGivesItsTeamAnAccount(t *testing.T) {
	tree, err := NewTeam(Platform{Layout: LayoutArc}, Team{Tenant: team("a-a", func(s *v1beta1.TenantSpec) { s.Reconciler = nil }), App: web(false)})
	require.NoError(t, err)
	texts := map[string]string{}
	for _, file := range tree.Files {
		texts[filepath.Base(file.Path)] = file.Text
	}
	require.Contains(t, texts["web.yaml"], "serviceAccountName: a-a\n")
	require.Contains(t, texts["rbac.yaml"], "kind: ServiceAccount")
}

func TestASharedAppIsBuiltForEachTenant(t *testing.T) {
	dir := examples()["arc"].write(t)
	replicas := func(tenant string) int64 {
		for _, o := range loaded(t, dir).build("clusters/cluster1/web/" + tenant).objects {
			if o.GetKind() == "HelmRelease" {
				require.Equal(t, tenant, o.GetNamespace())
				replicas, _, err := unstructured.NestedInt64(o.Object, "spec", "values", "replicaCount")
				require.NoError(t, err)
				return replicas
			}
		}
		return 0
	}
	require.Zero(t, replicas("tenant2"), "the chart's own number counts")
	rewrite(t, dir, "base-deployments/web/web-base-release.yaml", "values: {}", "values: {replicaCount: 2}")
	rewrite(t, dir, "clusters/cluster1/web/tenant3/values-own.yaml", "values: {}", "values: {replicaCount: 5}")
	require.EqualValues(t, 5, replicas("tenant3"))
	require.EqualValues(t, 2, replicas("tenant2"))
	rewrite(t, dir, "base-deployments/web/web-base-release.yaml", "version: 1.2.3", "version: 1.3.0")
	for _, tenant := range []string{"tenant2", "tenant3"} {
		require.Contains(t, loaded(t, dir).build("clusters/cluster1/web/"+tenant).yaml(t), "version: 1.3.0")
	}
}

// What people chose wins over what the tree says, and leaves the rest of it.
func TestValuesOfOnesOwnAreMergedOverThoseOfTheTree(t *testing.T) {
	dir := light(t, example{platform: &Platform{Layout: LayoutGroups, Constraints: []string{imagesSet}}}.write(t))
	values := func(chart string) map[string]any {
		for _, o := range loaded(t, dir).build("infrastructure/" + chart).objects {
			if o.GetKind() == "HelmRelease" {
				return o.Object["spec"].(map[string]any)["values"].(map[string]any)
			}
		}
		return nil
	}
	before := values("gatekeeper")
	require.EqualValues(t, 5, before["validatingWebhookTimeoutSeconds"])
	for _, chart := range []string{"gatekeeper", "landwaiter", "external-secrets"} {
		rewrite(t, dir, "infrastructure/"+chart+"/values-own.yaml", "values: {}", "values: {validatingWebhookTimeoutSeconds: 9, controllerManager: {replicas: 5}}")
		after := values(chart)
		require.EqualValues(t, 9, after["validatingWebhookTimeoutSeconds"])
		require.EqualValues(t, 5, after["controllerManager"].(map[string]any)["replicas"])
	}
	after := values("gatekeeper")
	require.Equal(t, before["validatingWebhookFailurePolicy"], after["validatingWebhookFailurePolicy"])
	require.Equal(t, before["controllerManager"].(map[string]any)["exemptNamespaces"], after["controllerManager"].(map[string]any)["exemptNamespaces"])
}

// TestTheVersionIsThatOfTheChart holds what trees install to what this repository has.
func TestTheVersionIsThatOfTheChart(t *testing.T) {
	chart, err := os.ReadFile("../../../charts/landwaiter/Chart.yaml")
	require.NoError(t, err)
	require.Contains(t, string(chart), "\nversion: "+LandwaiterVersion+"\nappVersion: "+LandwaiterVersion+"\n")
}

func TestRefusesPlatformsThatMeanNothing(t *testing.T) {
	for name, c := range map[string]struct {
		platform Platform
		message  string
	}{
		"unknown layout":             {Platform{Layout: "big"}, `layout is "big", it must be flux, groups, arc or demo`},
		"environment that is a path": {Platform{Environments: []string{"../../etc"}}, `environments: ".." is not a name`},
		"environment twice":          {Platform{Environments: []string{"a", "a"}}, "environments: a is given twice"},
		"group in another layout":    {Platform{Groups: []string{"dev"}}, "groups means nothing in the layout flux"},
		"cluster without a group":    {Platform{Layout: LayoutGroups, Groups: []string{"dev"}, Clusters: []string{"c1"}}, "give GROUP/NAME"},
		"cluster of no group": {Platform{Layout: LayoutGroups, Groups: []string{"dev"}, Clusters: []string{"test/c1"}},
			"there is no group test; add test to groups"},
		"cluster with a group":       {Platform{Layout: LayoutArc, Clusters: []string{"dev/c1"}}, "has no groups"},
		"enforcement":                {Platform{Enforcement: "audit"}, "it must be dryrun, warn or deny"},
		"organisation":               {Platform{GitHubOrg: "a/b"}, "githubOrg: "},
		"recipient":                  {Platform{SOPSAge: "AGE-SECRET-KEY-1"}, "sopsAge: "},
		"key that is no fingerprint": {Platform{SOPSPGP: "fleet@example.com"}, "sopsPGP: "},
		"key of no known service":    {Platform{SOPSKMS: "vault://keys/fleet"}, "sopsKMS: "},
		"two keys":                   {Platform{SOPSAge: recipient, SOPSPGP: fingerprint}, "sopsAge and sopsPGP name two keys"},
		"digest of any version":      {Platform{Landwaiter: Chart{Digest: "sha256:" + strings.Repeat("5", 64)}}, "landwaiter.digest: set landwaiter.version"},
		"digest that is none":        {Platform{Landwaiter: Chart{Version: "0.1.0", Digest: "sha256:5"}}, "landwaiter.digest: "},
		"digest outside of registry": {Platform{Gatekeeper: Chart{Version: "3.23.1", Digest: "sha256:" + strings.Repeat("5", 64)}}, "give a chart in a registry"},
		"key outside of registry": {Platform{Landwaiter: Chart{URL: "https://charts.example.com", Verify: ChartVerify{Secret: "keys"}}},
			"give a chart in a registry"},
		"issuer without subject":     {Platform{Landwaiter: Chart{Verify: ChartVerify{Issuer: "^a$"}}}, "issuer and subject belong together"},
		"subject found anywhere":     {Platform{Landwaiter: Chart{Verify: ChartVerify{Issuer: "^a$", Subject: "github.com/example"}}}, "from ^ to $"},
		"subject that is no pattern": {Platform{Landwaiter: Chart{Verify: ChartVerify{Issuer: "^a$", Subject: "^a(b$"}}}, "landwaiter.verify.subject: "},
		"key and identity": {Platform{Landwaiter: Chart{Verify: ChartVerify{Secret: "keys", Issuer: "^a$", Subject: "^a$"}}},
			"set either secret, or issuer and subject"},
		"chart over http":    {Platform{Gatekeeper: Chart{URL: "http://charts.example.com"}}, "gatekeeper.url: "},
		"set of constraints": {Platform{Constraints: []string{"strict"}}, "constraints: strict: there is no such set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPlatform(c.platform)
			require.ErrorContains(t, err, c.message)
		})
	}
}

func TestRefusesTeamsThatThePlatformCannotHave(t *testing.T) {
	for name, c := range map[string]struct {
		platform Platform
		team     Team
		message  string
	}{
		"unknown environment": {Platform{}, Team{Tenant: team("a-a", nil), Places: []string{"dev"}},
			"--place dev: the platform has no such environment for teams; use staging, production"},
		"group of the platform": {Platform{Layout: LayoutGroups}, Team{Tenant: team("a-a", nil), Places: []string{GroupOps}},
			"--place infra-ops: the platform has no such group for teams"},
		"app in another layout": {Platform{}, Team{Tenant: team("a-a", nil), App: web(false)}, "--app means nothing in the layout flux"},
		"app over http": {Platform{Layout: LayoutArc}, Team{Tenant: alone("a"), App: App{Name: "web", Chart: Chart{URL: "http://charts.example.com"}}},
			"--app-chart"},
		"app without a chart": {Platform{Layout: LayoutArc}, Team{Tenant: team("a-a", func(s *v1beta1.TenantSpec) { s.Reconciler = nil }), App: App{Name: "web"}},
			"--app needs --app-chart"},
		"app that is a path":     {Platform{Layout: LayoutArc}, Team{Tenant: alone("a"), App: App{Name: "../x"}}, `--app "../x" is not a name`},
		"Tenant that is refused": {Platform{}, Team{Tenant: team("kube-a", nil)}, "is a namespace of the system"},
		"demo":                   {Platform{Layout: LayoutDemo}, Team{Tenant: alone("a")}, "use landwaiter tenant add --tenant-name a"},
		"none":                   {Platform{}, Team{}, "no Tenant is described"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewTeam(c.platform, c.team)
			require.ErrorContains(t, err, c.message)
		})
	}
}

// Without its form, an operator would give the objects other names than the tree does.
func TestATenantOfTheDemoKeepsItsForm(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "sometenant", Annotations: map[string]string{v1beta1.AnnotationForm: onboard.FormDemo}},
		Spec: v1beta1.TenantSpec{HomeNamespace: "foo",
			Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "foo", Source: &v1beta1.TenantSource{URL: "https://github.com/example/demo"}}}}
	tree, err := NewTeam(Platform{Layout: LayoutFlux}, Team{Tenant: tenant})
	require.NoError(t, err)
	files := map[string]string{}
	for _, file := range tree.Files {
		files[file.Path] = file.Text
	}
	require.Contains(t, files["tenants/base/sometenant/tenant.yaml"], v1beta1.AnnotationForm+": "+onboard.FormDemo)
	require.Contains(t, files["tenants/base/sometenant/sync.yaml"], "name: dummy")
}

// The platform's half and the team's half come from two commands.
func TestFluxAppliesTheFolderThatATeamsRepositoryHasForTheCluster(t *testing.T) {
	tenant := team("tenant4", nil)
	for layout, want := range map[Layout]string{LayoutArc: "path: ./clusters/cluster1/tenant4\n", LayoutGroups: "path: ./clusters/${cluster_name}\n"} {
		platform, err := NewTeam(Platform{Layout: layout}, Team{Tenant: tenant})
		require.NoError(t, err)
		var sync string
		for _, file := range platform.Files {
			if filepath.Base(file.Path) == "sync.yaml" {
				sync += file.Text
			}
		}
		require.Contains(t, sync, want, layout)
	}
	repository, err := NewRepository(Repository{Layout: LayoutArc, Tenant: tenant, App: App{Name: "app1"}})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(repository.Files, func(f File) bool { return f.Path == "clusters/cluster1/tenant4/kustomization.yaml" }),
		"the folder is in the team's repository")
	chosen := team("tenant4", func(s *v1beta1.TenantSpec) { s.Reconciler.Path = "./here" })
	tree, err := NewTeam(Platform{Layout: LayoutArc}, Team{Tenant: chosen})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(tree.Files, func(f File) bool { return strings.Contains(f.Text, "path: ./here\n") }), "a path that is given stays")
}

func TestASharedAppWhoseChartIsInGitKeepsItsSource(t *testing.T) {
	app := App{Name: "web", Shared: true, Chart: Chart{URL: "https://git.example.com/web.git", Version: "*"}}
	dir := example{platform: &Platform{Layout: LayoutArc}, teams: []Team{{Tenant: alone("tenant2"), App: app}, {Tenant: alone("tenant3"), App: app}}}.write(t)
	for _, tenant := range []string{"tenant2", "tenant3"} {
		for _, o := range loaded(t, dir).build("clusters/cluster1/web/" + tenant).objects {
			if kind := o.GetKind(); kind == "GitRepository" || kind == "HelmRelease" {
				require.Equal(t, tenant, o.GetNamespace(), kind)
			}
		}
	}
}

func TestClustersMayHaveDotsInTheirNames(t *testing.T) {
	for name, allowed := range map[string]bool{"aks.00439d3b.tmc-clusters.iris-test": true, "c1": true, "..": false, "a..b": false, ".a": false, "a.": false,
		"A.b": false, strings.Repeat("a.", 127) + "a": false} {
		_, err := NewPlatform(Platform{Layout: LayoutArc, Clusters: []string{name}})
		_, grouped := NewPlatform(Platform{Layout: LayoutGroups, Groups: []string{"dev"}, Clusters: []string{"dev/" + name}})
		_, own := NewRepository(Repository{Layout: LayoutGroups, Tenant: team("iris", nil), Places: []string{name}})
		if allowed {
			require.NoError(t, own, name)
			require.NoError(t, err, name)
			require.NoError(t, grouped, name)
			continue
		}
		require.ErrorContains(t, err, "is not a name", name)
		require.ErrorContains(t, grouped, "is not a name", name)
		require.ErrorContains(t, own, "is not a name", name)
	}
}
