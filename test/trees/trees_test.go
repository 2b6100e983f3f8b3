//go:build e2e

// Package trees shows every object of every generated tree to a real API server, with the
// definitions of Flux and Gatekeeper, as a dry run. What Flux then does with them is the
// business of test/gitops.
package trees

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

const settle = 2 * time.Minute

// team is a Tenant with a repository, and with namespaces besides home if asked for.
func team(name string, others bool) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{Home: name,
		Reconciler: &v1alpha1.TenantReconciler{Source: &v1alpha1.TenantSource{URL: "https://github.com/example/" + name}}}}
	if others {
		tenant.Spec.Namespaces, tenant.Spec.NamespacePrefix = []string{name + "-web"}, name+"-"
		tenant.Spec.Reconciler.CreateNamespaces = true
		tenant.Spec.Isolation.Registries = []string{"registry.example.com/" + name + "/"}
	}
	return tenant
}

// trees writes every layout with tenants, and teams' own repositories, into folders of dir.
func trees(t *testing.T, dir string) {
	t.Helper()
	write := func(folder string, tree scaffold.Tree, err error) {
		require.NoError(t, err)
		_, err = scaffold.Write(filepath.Join(dir, folder), tree, scaffold.WriteOptions{})
		require.NoError(t, err)
	}
	chart := scaffold.Chart{URL: "https://charts.example.com", Version: "1.2.3"}
	oci := scaffold.Chart{URL: "oci://registry.example.com/charts/web", Version: "1.x"}
	for folder, c := range map[string]struct {
		platform scaffold.Platform
		teams    []scaffold.Team
	}{
		"flux":     {scaffold.Platform{GitHubOrg: "example", SOPSAge: "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}, []scaffold.Team{{Tenant: team("iris-green", true)}, {Tenant: team("iris-red", true)}}},
		"operator": {scaffold.Platform{Operator: true, Enforcement: "deny", Gatekeeper: oci, Landwaiter: chart}, []scaffold.Team{{Tenant: team("iris-blue", true)}}},
		"groups":   {scaffold.Platform{Layout: scaffold.LayoutGroups}, []scaffold.Team{{Tenant: team("iris-violet", true)}}},
		"arc": {scaffold.Platform{Layout: scaffold.LayoutArc}, []scaffold.Team{{Tenant: team("tenant1", false), App: scaffold.App{Name: "app1", Chart: oci}},
			{Tenant: team("tenant2", false), App: scaffold.App{Name: "app2", Chart: chart, Shared: true}}, {Tenant: team("tenant3", true)},
			{Tenant: team("tenant4", false), App: scaffold.App{Name: "app4", Chart: scaffold.Chart{URL: "https://github.com/example/app4.git", Version: "*"}}}}},
		"demo": {scaffold.Platform{Layout: scaffold.LayoutDemo}, nil},
	} {
		tree, err := scaffold.NewPlatform(c.platform)
		write(folder, tree, err)
		for _, member := range c.teams {
			tree, err := scaffold.NewTeam(c.platform, member)
			write(folder, tree, err)
		}
	}
	for _, layout := range []scaffold.Layout{scaffold.LayoutFlux, scaffold.LayoutGroups, scaffold.LayoutArc, scaffold.LayoutDemo} {
		tree, err := scaffold.NewRepository(scaffold.Repository{Layout: layout, Tenant: team("own", true)})
		write("team-"+string(layout), tree, err)
	}
}

// built returns the objects of every kustomization below dir.
func built(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	var objects []*unstructured.Unstructured
	require.NoError(t, filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		// What is only included by others has no namespace yet.
		part := regexp.MustCompile(`/(components|base-deployments|deployments)/`).MatchString(name)
		if err != nil || entry.Name() != "kustomization.yaml" || part {
			return err
		}
		made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Dir(name))
		require.NoError(t, err, name)
		text, err := made.AsYaml()
		require.NoError(t, err, name)
		found, err := cluster.Decode(text)
		require.NoError(t, err, name)
		objects = append(objects, found...)
		return nil
	}))
	for _, folder := range []string{"flux/clusters/staging", "arc/clusters/cluster1/platform"} {
		for _, file := range []string{"infrastructure.yaml", "tenants.yaml"} {
			found, err := cluster.DecodeFile(filepath.Join(dir, folder, file))
			require.NoError(t, err)
			objects = append(objects, found...)
		}
	}
	return objects
}

// fluxDefinitions are those of the modules that test/tools/flux pins.
func fluxDefinitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, controller := range []string{"source-controller", "kustomize-controller", "helm-controller"} {
		command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/fluxcd/"+controller)
		command.Dir = "../tools/flux"
		output, err := command.Output()
		require.NoError(t, err, "%s", output)
		var module struct{ Dir string }
		require.NoError(t, json.Unmarshal(output, &module))
		files, err := filepath.Glob(filepath.Join(module.Dir, "config/crd/bases/*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			found, err := cluster.DecodeFile(file)
			require.NoError(t, err)
			objects = append(objects, found...)
		}
	}
	return objects
}

func TestTreesAreAccepted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tools := os.Getenv("LANDWAITER_CLUSTER_TOOLS")
	require.NotEmpty(t, tools, "run make e2e")
	c, err := cluster.Start(ctx, cluster.Options{Tools: tools, Dir: t.TempDir()})
	require.NoError(t, err)
	defer c.Stop()
	require.NoError(t, c.Apply(ctx, fluxDefinitions(t)...))
	dir := t.TempDir()
	trees(t, dir)
	objects := built(t, dir)

	// What others need is applied; everything else is only shown.
	needed := func(kinds ...string) []*unstructured.Unstructured {
		return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
	}
	require.NoError(t, c.Apply(ctx, needed("CustomResourceDefinition", "ConstraintTemplate")...))
	for _, namespace := range append(needed("Namespace"), namespaces(objects)...) {
		// Gatekeeper's own webhook knows the exempt namespaces by its chart, which is not here.
		unstructured.RemoveNestedField(namespace.Object, "metadata", "labels", "admission.gatekeeper.sh/ignore")
		require.NoError(t, c.Apply(ctx, namespace))
	}
	shown := map[string]int{}
	for _, object := range objects {
		if slices.Contains([]string{"CustomResourceDefinition", "ConstraintTemplate", "Namespace"}, object.GetKind()) {
			continue
		}
		accept := func(ctx context.Context) error {
			return c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.DryRunAll, client.FieldOwner("kustomize-controller"), client.ForceOwnership)
		}
		if object.GroupVersionKind().Group == "constraints.gatekeeper.sh" { // Gatekeeper makes the kind
			err = await(ctx, accept)
		} else {
			err = accept(ctx)
		}
		require.NoError(t, err, "%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		shown[object.GetKind()]++
	}
	for _, kind := range []string{"Kustomization", "GitRepository", "OCIRepository", "HelmRepository", "HelmRelease", "Tenant", "VerifiedImages",
		"FluxAllowedSources", "ValidatingAdmissionPolicy", "RoleBinding", "NetworkPolicy", "TenantAllowedRegistries"} {
		require.Positive(t, shown[kind], "no %s was shown", kind)
	}
	t.Logf("%d objects accepted: %v", len(objects), shown)
}

// namespaces are those that objects are in, as bare objects.
func namespaces(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	made := map[string]bool{}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			made[o.GetName()] = true
		}
	}
	for _, o := range objects {
		if name := o.GetNamespace(); name != "" && !made[name] {
			made[name] = true
			all = append(all, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		}
	}
	return all
}

func await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	return cluster.Until(ctx, ready)
}
