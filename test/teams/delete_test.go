//go:build e2e

package teams

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

func TestDeletingATeamKeepsItsNamespacesUnlessItSaysOtherwise(t *testing.T) {
	makeNamespace(t, "kept-adopted", nil)
	add(t, append(green("kept"), "--namespace", "kept-adopted", "--adopt")...)
	t.Cleanup(func() {
		for _, name := range []string{"kept", "kept-web"} {
			_ = w.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	require.NoError(t, w.Client.Create(within(t), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kept-web", Name: "theirs"}}))

	preview := try(t, "tenant", "delete", "kept")
	require.Equal(t, 1, preview.code)
	require.Contains(t, preview.stderr, "nothing was deleted; add --yes to do it")
	require.NotEmpty(t, objectsOf(t, "kept"))

	out := must(t, "tenant", "delete", "kept", "--yes")
	require.Contains(t, out, "2 namespaces kept (onDelete: Keep), 1 adopted one untouched\n")
	require.Empty(t, objectsOf(t, "kept"), "nothing says that it is the team's")
	for _, namespace := range []string{"kept", "kept-web", "kept-adopted"} {
		require.True(t, exists(t, namespace))
	}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBindingList"}}} {
		require.NoError(t, w.Client.List(within(t), list, client.InNamespace("kept-web")))
	}
	bindings := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBindingList"}}
	require.NoError(t, w.Client.List(within(t), bindings, client.InNamespace("kept-web")))
	require.Empty(t, bindings.Items)
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "kept-web", Name: "theirs"}, &corev1.ConfigMap{}))
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "kept-web", Name: "tenant"}, &corev1.ResourceQuota{}), "what only restricts stays")

	again := try(t, "tenant", "delete", "kept", "--yes")
	require.Equal(t, 1, again.code)
	require.Contains(t, again.stderr, "there is no Tenant kept")
}

func TestRightsStayUntilFluxHasFinished(t *testing.T) {
	gone(t, "synced")
	add(t, green("synced")...)
	kustomization := objectsOf(t, "synced")["Kustomization synced/synced"]
	kustomization.SetFinalizers([]string{"finalizers.fluxcd.io"})
	require.NoError(t, w.Client.Update(within(t), kustomization))

	stuck := try(t, "tenant", "delete", "synced", "--yes", "--timeout", "3s")
	require.Equal(t, 1, stuck.code)
	require.Contains(t, stuck.stderr, "the finalizers of Kustomization synced/synced have not ended (is Flux running?)")
	require.Contains(t, objectsOf(t, "synced"), "RoleBinding synced-web/synced-reconciler")
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "synced"}, &v1alpha1.Tenant{}))
	require.NoError(t, w.Client.Get(within(t), client.ObjectKeyFromObject(kustomization), kustomization))
	suspended, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "suspend")
	policy, _, _ := unstructured.NestedString(kustomization.Object, "spec", "deletionPolicy")
	require.True(t, suspended, "what Flux applied stays")
	require.Equal(t, "Orphan", policy)

	kustomization.SetFinalizers(nil)
	require.NoError(t, w.Client.Update(within(t), kustomization))
	must(t, "tenant", "delete", "synced", "--delete-namespaces", "--yes")
	require.Empty(t, objectsOf(t, "synced"))
}

// The demo's bootstrap makes the source that all tenants share.
func demoSource(t *testing.T) {
	t.Helper()
	makeNamespace(t, "flux-system", nil)
	require.NoError(t, w.Client.Create(within(t), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"namespace": "flux-system", "name": "default"}, "spec": map[string]any{"url": "https://github.com/example/demo", "ref": map[string]any{"branch": "trunk"}}}}))
}

func TestTheFormsOfTheDemo(t *testing.T) {
	without := try(t, "tenant", "add", "--tenant-namespace", "foo", "--tenant-name", "sometenant")
	require.NotEqual(t, 0, without.code)
	require.Contains(t, without.stderr, "--git-url is missing, and there is no GitRepository flux-system/default to copy")
	demoSource(t)
	for _, team := range [][2]string{{"foo", "sometenant"}, {"tenant81", "anothertenant"}} {
		gone(t, team[1])
		t.Log("\n" + must(t, "tenant", "add", "--tenant-namespace", team[0], "--tenant-name", team[1]))
	}
	// What ctrl.py has made, and two namespaces of one name.
	for _, name := range []string{"bar", "baz"} {
		makeNamespace(t, name, map[string]string{"flux-multitenant-demo.ringerc.github.com/tenant-name": "shared"})
	}
	foo := objectsOf(t, "sometenant")
	for _, name := range []string{"Namespace /foo", "ServiceAccount foo/foo", "RoleBinding foo/foo-reconciler", "ConfigMap foo/tenant-vars", "Kustomization foo/dummy"} {
		require.Contains(t, foo, name)
	}
	require.Equal(t, "sometenant", foo["Namespace /foo"].GetLabels()["flux-multitenant-demo.ringerc.github.com/tenant-name"])
	branch, _, _ := unstructured.NestedString(foo["GitRepository foo/default"].Object, "spec", "ref", "branch")
	require.Equal(t, "trunk", branch, "the source is a copy")
	again := add(t, "--tenant-namespace", "foo", "--tenant-name", "sometenant")
	require.Zero(t, again.Created+again.Changed+again.Removed, "the second time nothing changes")
	require.Zero(t, add(t, "sometenant").Changed, "nor without the flags of the demo")
	require.Equal(t, "0 findings\n", must(t, "tenant", "check", "sometenant"))
	var lines []string
	for line := range strings.Lines(must(t, "tenant", "list", "--namespaces")) {
		if fields := strings.Fields(line); fields[0] == "NAMESPACE" || fields[1] == "sometenant" || fields[1] == "anothertenant" || fields[1] == "shared" {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	require.Equal(t, []string{"NAMESPACE NAME NS-STATUS", "bar shared Active", "baz shared Active", "foo sometenant Active", "tenant81 anothertenant Active"}, lines)

	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"none by name":       {[]string{"--tenant-name", "nobody"}, "no namespace has the tenant name nobody"},
		"none by namespace":  {[]string{"--tenant-namespace", "default"}, "no namespace default belongs to a tenant"},
		"two of one name":    {[]string{"--tenant-name", "shared"}, "2 namespaces have the tenant name shared (bar, baz): name one by --tenant-namespace"},
		"both, and no match": {[]string{"--tenant-name", "sometenant", "--tenant-namespace", "tenant81"}, "no namespace tenant81 belongs to a tenant of the name sometenant"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, append([]string{"tenant", "delete", "--delete-namespaces", "--yes"}, c.args...)...)
			require.Equal(t, 1, r.code, r.stderr)
			require.Contains(t, r.stderr, c.says)
			require.True(t, exists(t, "foo"))
			require.True(t, exists(t, "bar"))
		})
	}
	must(t, "tenant", "delete", "--tenant-name", "sometenant", "--delete-namespaces", "--yes")
	require.False(t, exists(t, "foo"))
	must(t, "tenant", "delete", "--tenant-namespace", "tenant81", "--delete-namespaces", "--yes")
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		if exists(t, "tenant81") {
			return context.DeadlineExceeded
		}
		return nil
	}))
}

// The document's own form works only where Flux is not locked down.
func TestASharedSourceIsTheDemosAndIsReported(t *testing.T) {
	gone(t, "sharing")
	r := try(t, "tenant", "add", "--tenant-namespace", "shares", "--tenant-name", "sharing", "--shared-source")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "this works only where kustomize-controller runs with --no-cross-namespace-refs=false")
	objects := objectsOf(t, "sharing")
	namespace, _, _ := unstructured.NestedString(objects["Kustomization shares/dummy"].Object, "spec", "sourceRef", "namespace")
	require.Equal(t, "flux-system", namespace)
	require.NotContains(t, objects, "GitRepository shares/default")
	require.Zero(t, add(t, "--tenant-namespace", "shares", "--tenant-name", "sharing", "--shared-source").Changed)
	found := try(t, "tenant", "check", "sharing")
	require.Equal(t, 1, found.code)
	require.Contains(t, found.stdout, "SharedSource")
	require.Contains(t, found.stdout, "1 finding\n")
}
