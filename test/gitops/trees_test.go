//go:build e2e || nightly

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/pods"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// member is a Tenant with a repository, and with namespaces besides the home namespace if asked for.
func member(name string, others bool) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{HomeNamespace: name,
		Reconciler: &v1beta1.TenantReconciler{Source: &v1beta1.TenantSource{URL: "https://github.com/example/" + name}}}}
	if others {
		tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = []string{name + "-web"}, name+"-"
		tenant.Spec.Reconciler.CreateNamespaces = true
		tenant.Spec.Isolation.Registries = []string{"registry.example.com/" + name + "/"}
	}
	return tenant
}

// grown is a platform's tree with teams.
type grown struct {
	platform scaffold.Platform
	teams    []scaffold.Team
}

// trees are platforms of every layout, by the folder they are written to. The one of Flux's
// layout has every kind of object.
func trees() map[string]grown {
	chart := scaffold.Chart{URL: "https://charts.example.com", Version: "1.2.3"}
	oci := scaffold.Chart{URL: "oci://registry.example.com/charts/web", Version: "1.x"}
	return map[string]grown{
		"flux": {scaffold.Platform{GitHubOrg: "example", SOPSAge: "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p", Gatekeeper: oci,
			Landwaiter: chart},
			[]scaffold.Team{{Tenant: member("iris-green", true)}, {Tenant: member("iris-red", true)}}},
		"operator": {scaffold.Platform{Operator: true, Enforcement: "deny", Gatekeeper: oci, Landwaiter: chart},
			[]scaffold.Team{{Tenant: member("iris-blue", true)}}},
		"groups": {scaffold.Platform{Layout: scaffold.LayoutGroups}, []scaffold.Team{{Tenant: member("iris-violet", true)}}},
		"arc": {scaffold.Platform{Layout: scaffold.LayoutArc}, []scaffold.Team{{Tenant: member("tenant1", false), App: scaffold.App{Name: "app1", Chart: oci}},
			{Tenant: member("tenant2", false), App: scaffold.App{Name: "app2", Chart: chart, Shared: true}}, {Tenant: member("tenant3", true)},
			{Tenant: member("tenant4", false), App: scaffold.App{Name: "app4", Chart: scaffold.Chart{URL: "https://github.com/example/app4.git", Version: "*"}}}}},
		"demo": {scaffold.Platform{Layout: scaffold.LayoutDemo}, nil},
	}
}

// written returns the objects of platforms and of teams' own repositories, as Flux applies them.
func written(t *testing.T, platforms map[string]grown, own ...scaffold.Layout) []*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	write := func(folder string, tree scaffold.Tree, err error) {
		require.NoError(t, err)
		_, err = scaffold.Write(filepath.Join(dir, folder), tree, scaffold.WriteOptions{})
		require.NoError(t, err)
	}
	for folder, g := range platforms {
		tree, err := scaffold.NewPlatform(g.platform)
		write(folder, tree, err)
		for _, team := range g.teams {
			tree, err := scaffold.NewTeam(g.platform, team)
			write(folder, tree, err)
		}
	}
	for _, layout := range own {
		tree, err := scaffold.NewRepository(scaffold.Repository{Layout: layout, Tenant: member("own", true)})
		write("team-"+string(layout), tree, err)
	}
	return built(t, dir)
}

// built returns the objects of every kustomization below dir, and of the Kustomizations that
// Flux begins with.
func built(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := pods.Built(dir)
	require.NoError(t, err)
	entries, err := filepath.Glob(filepath.Join(dir, "*/clusters/*", "infrastructure.yaml"))
	require.NoError(t, err)
	inArc, err := filepath.Glob(filepath.Join(dir, "*/clusters/*/platform", "infrastructure.yaml"))
	require.NoError(t, err)
	for _, infrastructure := range append(entries, inArc...) {
		folder := filepath.Dir(infrastructure)
		if _, err := os.Stat(filepath.Join(folder, "kustomization.yaml")); err == nil {
			continue // it was built
		}
		for _, file := range []string{"infrastructure.yaml", "tenants.yaml"} {
			found, err := cluster.DecodeFile(filepath.Join(folder, file))
			require.NoError(t, err)
			objects = append(objects, found...)
		}
	}
	return objects
}

// accepts shows objects to the API server, with the CRDs of Flux and Gatekeeper, as a dry
// run. What Flux does with them then is the matter of other tests here.
func (w *world) accepts(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	// What others need is applied; everything else is only shown.
	needed := []string{"CustomResourceDefinition", "ConstraintTemplate", "Namespace"}
	for _, kind := range needed {
		for _, o := range objects {
			if o.GetKind() == kind {
				// Gatekeeper's own webhook knows the exempt namespaces by its chart, which is not here.
				unstructured.RemoveNestedField(o.Object, "metadata", "labels", "admission.gatekeeper.sh/ignore")
				w.apply(t, o)
			}
		}
	}
	for _, o := range objects {
		if name := o.GetNamespace(); name != "" && w.get(t, "v1", "Namespace", "", name) == nil {
			w.apply(t, suite.Namespace(name))
		}
	}
	shown := map[string]int{}
	for _, o := range objects {
		if slices.Contains(needed, o.GetKind()) {
			continue
		}
		accept := func(ctx context.Context) error {
			return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.DryRunAll, client.FieldOwner("kustomize-controller"),
				client.ForceOwnership)
		}
		err := accept(suite.Within(t))
		if err != nil && o.GroupVersionKind().Group == "constraints.gatekeeper.sh" { // Gatekeeper makes the kind
			err = cluster.Until(suite.Within(t), accept)
		}
		require.NoError(t, err, "%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		shown[o.GetKind()]++
	}
	for _, kind := range []string{"Kustomization", "GitRepository", "OCIRepository", "HelmRepository", "HelmRelease", "Tenant", "VerifiedImages",
		"FluxAllowedSources", "ValidatingAdmissionPolicy", "RoleBinding", "NetworkPolicy", "TenantAllowedRegistries"} {
		require.Positive(t, shown[kind], "no %s was shown", kind)
	}
	t.Logf("%d objects accepted: %v", len(objects), shown)
}
