package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// differs is a tree of two places with the team shop, and what a run for the team finds there.
func differs(t *testing.T, p Platform) (a *Addition, again func() error) {
	t.Helper()
	made := addition(t, p)
	a = &made
	light(t, a.Dir)
	a.Team.Tenant = shop(t, "reconciler.source.url=https://github.com/example/shop", "namespaces=shop-web", "isolation.quota.pods=10",
		"access.viewers=shop-viewers")
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	a.Team.Tenant, a.Settings = shop(t), onboard.Settings{}
	return a, func() error {
		_, err := a.Run(t.Context())
		return err
	}
}

// shopOf builds the team's objects of a place.
func shopOf(t *testing.T, dir, place string) map[string]*unstructured.Unstructured {
	t.Helper()
	b := loaded(t, dir).build("tenants/" + place)
	require.False(t, b.failed)
	objects := map[string]*unstructured.Unstructured{}
	for _, o := range b.objects {
		objects[identity(o)] = o
	}
	return objects
}

func sound(t *testing.T, dir string) {
	t.Helper()
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

// patchTenant writes a patch of the Tenant in the overlay of a place.
func patchTenant(t *testing.T, dir, place, spec string) {
	t.Helper()
	list := "tenants/" + place + "/kustomization.yaml"
	put1(t, dir, "tenants/"+place+"/shop-own.yaml", "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\nmetadata: {name: shop}\nspec: "+spec+"\n")
	text, err := os.ReadFile(filepath.Join(dir, list))
	require.NoError(t, err)
	if !strings.Contains(string(text), "shop-own.yaml") {
		added, err := Edit{Patches: []string{"shop-own.yaml"}}.apply(string(text))
		require.NoError(t, err)
		put1(t, dir, list, added)
	}
}

// What an overlay says of a Tenant changes the objects of that place, and of no other: values, objects that
// the base has and the place not, and objects that the place alone has.
func TestATenantCanDifferByEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		platform      Platform
		place, others string
	}{
		"flux":   {Platform{Environments: []string{"staging", "production"}}, "production", "staging"},
		"groups": {Platform{Layout: LayoutGroups, Groups: []string{"a", "b"}, Clusters: []string{"a/one", "b/two"}}, "b", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			a, again := differs(t, c.platform)
			before := shopOf(t, a.Dir, c.others)
			patchTenant(t, a.Dir, c.place, "{namespaces: [shop-web, shop-api], isolation: {podSecurity: Baseline, network: Open, quota: {pods: '50'}}, access: "+
				"{viewers: [], developers: [{kind: Group, name: devs}]}}")
			wrong{func(*testing.T, string) {}, "tenants/base/shop/tenant.yaml", "Tenant shop: ResourceQuota shop-web/tenant in tenants/" + c.place +
				" is not what the Tenant stands for there: run landwaiter platform scaffold DIR shop again"}.isFound(t, a.Dir)
			wrong{func(*testing.T, string) {}, "tenants/base/shop/tenant.yaml", "the Tenant does not stand for NetworkPolicy shop-web/default-deny"}.isFound(t, a.Dir)

			require.NoError(t, again())
			sound(t, a.Dir)
			require.Equal(t, before, shopOf(t, a.Dir, c.others))
			there := shopOf(t, a.Dir, c.place)
			pods, _, _ := unstructured.NestedString(there["ResourceQuota shop-web/tenant"].Object, "spec", "hard", "pods")
			require.Equal(t, "50", pods)
			for _, namespace := range []string{"shop", "shop-web", "shop-api"} {
				made := there["Namespace "+namespace]
				require.Equal(t, "baseline", made.GetLabels()["pod-security.kubernetes.io/enforce"])
				require.Equal(t, pruneDisabled, made.GetAnnotations()[pruneAnnotation])
				require.NotContains(t, there, "NetworkPolicy "+namespace+"/default-deny")
			}
			require.Contains(t, there, "RoleBinding shop-api/shop-reconciler")
			require.Contains(t, there, "RoleBinding shop-web/shop-developers")
			require.NotContains(t, there, "RoleBinding shop-web/shop-viewers")

			var stale []string
			for _, spec := range []string{"{isolation: {podSecurity: Baseline}}", "{namespaces: [shop-web, shop-api]}", "{}"} { // less and less of the files is needed
				patchTenant(t, a.Dir, c.place, spec)
				added, err := a.Run(t.Context())
				require.NoError(t, err)
				for _, file := range added.Files {
					if file.Result == Stale { // as the page says
						stale = append(stale, file.Path)
						require.NoError(t, os.Remove(filepath.Join(a.Dir, file.Path)))
					}
				}
				sound(t, a.Dir)
			}
			require.Subset(t, stale, []string{"tenants/" + c.place + "/shop-objects.yaml", "tenants/" + c.place + "/shop-objects-patch.yaml"})
			there = shopOf(t, a.Dir, c.place)
			require.Equal(t, "restricted", there["Namespace shop-web"].GetLabels()["pod-security.kubernetes.io/enforce"])
			require.NotContains(t, there, "Namespace shop-api")
		})
	}
}

func TestARunKeepsWhatAPlaceSaysWhenTheBaseChanges(t *testing.T) {
	a, again := differs(t, Platform{Environments: []string{"staging", "production"}})
	patchTenant(t, a.Dir, "production", "{isolation: {network: Open}}")
	require.NoError(t, again())
	rewrite(t, a.Dir, "tenants/base/shop/tenant.yaml", "  - shop-web\n", "  - shop-shop\n")
	require.NoError(t, again(), "what the patch was about is gone")
	sound(t, a.Dir)
	require.Contains(t, shopOf(t, a.Dir, "staging"), "NetworkPolicy shop-shop/default-deny")
	require.NotContains(t, shopOf(t, a.Dir, "production"), "NetworkPolicy shop-shop/default-deny")
}

func TestWhatAPlaceCannotSayOfATenantIsRefused(t *testing.T) {
	for spec, message := range map[string]string{
		"{homeNamespace: other}":               "it must be the same everywhere: remove homeNamespace from the patch",
		"{isolation: {podSecurity: Whatever}}": "tenants/production/kustomization.yaml patches the Tenant, which cannot be used then",
	} {
		a, again := differs(t, Platform{Environments: []string{"staging", "production"}})
		patchTenant(t, a.Dir, "production", spec)
		before := kept(t, a.Dir)
		var refused *RefusedError
		err := again()
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, message)
		require.Equal(t, before, kept(t, a.Dir))
	}
}

func TestAnOverlayCannotClaimWhatAnotherTeamHas(t *testing.T) {
	a, again := differs(t, Platform{Environments: []string{"staging", "production"}})
	other, err := onboard.Description{Name: "web", Settings: settings("namespaces=web-api")}.Tenant()
	require.NoError(t, err)
	own := a.Team.Tenant
	a.Team.Tenant = other
	require.NoError(t, again())
	a.Team.Tenant = own
	patchTenant(t, a.Dir, "production", "{namespaces: [shop-web, web-api]}")
	before := kept(t, a.Dir)
	var refused *RefusedError
	err = again()
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "tenants/base/web/tenant.yaml: namespace web-api is in Tenant web, so Tenant shop cannot have it too")
	require.Equal(t, before, kept(t, a.Dir))
}

// As in a repository of flux2-multi-tenancy to which somebody added the team's folder and rbac.yaml.
func TestATeamThatTheOverlaysListGetsTheFolderOfEachPlace(t *testing.T) {
	a := addition(t, Platform{Environments: []string{"staging", "production"}})
	light(t, a.Dir)
	put1(t, a.Dir, "tenants/base/shop/rbac.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	put1(t, a.Dir, "tenants/base/shop/kustomization.yaml", kustomize("resources: [rbac.yaml]\n"))
	for _, place := range []string{"staging", "production"} {
		put1(t, a.Dir, "tenants/"+place+"/kustomization.yaml", kustomize("resources:\n- ../base/shop\n"))
	}
	a.Team.Tenant, a.Write.Force = shop(t, "reconciler.source.url=https://github.com/example/shop"), true
	_, err := a.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(a.Dir, "tenants/base/shop/rbac.yaml")))
	for _, place := range []string{"staging", "production"} {
		sync := shopOf(t, a.Dir, place)["Kustomization shop/shop"]
		require.Equal(t, "./"+place, sync.Object["spec"].(map[string]any)["path"])
	}
	sound(t, a.Dir)
}

// In the layout arc, each cluster has the Tenant in a file of its own.
func TestATenantCanDifferByCluster(t *testing.T) {
	a, again := differs(t, Platform{Layout: LayoutArc, Clusters: []string{"one", "two"}})
	rewrite(t, a.Dir, "clusters/two/shop/tenant.yaml", "spec:\n", "spec:\n  namespacePrefix: shop-\n")
	rewrite(t, a.Dir, "clusters/two/shop/tenant.yaml", `pods: "10"`, `pods: "50"`)
	a.Settings = settings("namespaces=shop-api")
	a.Team.Tenant = shop(t, a.Settings.Values...)
	require.NoError(t, again())
	for cluster, want := range map[string]string{"one": `pods: "10"`, "two": `pods: "50"`} {
		for _, file := range []string{"tenant.yaml", "namespace.yaml"} {
			text, err := os.ReadFile(filepath.Join(a.Dir, "clusters", cluster, "shop", file))
			require.NoError(t, err)
			require.Contains(t, string(text), want)
			require.Contains(t, string(text), "shop-api", "what was asked for is in both")
		}
		text, err := os.ReadFile(filepath.Join(a.Dir, "clusters", cluster, "shop/sync.yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "path: ./clusters/"+cluster+"/shop\n")
	}
	sound(t, a.Dir)
}
