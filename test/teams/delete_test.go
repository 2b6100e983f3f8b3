//go:build e2e

package teams

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestDeletingATeamKeepsItsNamespacesUnlessItSaysOtherwise(t *testing.T) {
	w := installed(t)
	w.gone(t, "kept-not")
	w.vacant(t, "kept", "kept-web")
	w.add(t, "kept-not")
	others := resourceVersions(w.objectsOf(t, "kept-not"))
	w.makeNamespace(t, "kept-adopted", nil)
	w.add(t, append(typical("kept"), "--set", "namespaces=kept-adopted", "--set", "adopt=true")...)
	require.NoError(t, w.Client.Create(suite.Within(t), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kept-web", Name: "theirs"}}))

	preview := w.program.Run(t, "", "tenant", "delete", "kept")
	require.Equal(t, 1, preview.Code)
	require.Contains(t, preview.Stdout, "would be removed, 2 namespaces would be kept")
	require.Contains(t, preview.Stderr, "nothing was deleted; add --yes to delete")
	require.NotEmpty(t, w.objectsOf(t, "kept"))

	out := w.program.Must(t, "tenant", "delete", "kept", "--yes")
	require.Contains(t, out, "2 namespaces kept (namespaceReclaimPolicy: Retain), 1 adopted namespace kept, with its quota and network policies\n")
	require.Empty(t, w.objectsOf(t, "kept"), "nothing says that it is the team's")
	require.Equal(t, others, resourceVersions(w.objectsOf(t, "kept-not")), "another team is not touched")
	for _, namespace := range []string{"kept", "kept-web", "kept-adopted"} {
		require.True(t, w.exists(t, namespace))
	}
	var bindings rbacv1.RoleBindingList
	require.NoError(t, w.Client.List(suite.Within(t), &bindings, client.InNamespace("kept-web")))
	require.Empty(t, bindings.Items)
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "kept-web", Name: "theirs"}, &corev1.ConfigMap{}))
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "kept-web", Name: "tenant"}, &corev1.ResourceQuota{}),
		"what only restricts stays")

	again := w.program.Run(t, "", "tenant", "delete", "kept", "--yes")
	require.Equal(t, 1, again.Code)
	require.Contains(t, again.Stderr, "there is no Tenant kept")
}

func TestRightsStayUntilFluxHasFinished(t *testing.T) {
	w := installed(t)
	w.gone(t, "synced")
	w.vacant(t, "synced", "synced-web")
	w.add(t, typical("synced")...)
	kustomization := w.objectsOf(t, "synced")["Kustomization synced/synced"]
	kustomization.SetFinalizers([]string{"finalizers.fluxcd.io"})
	require.NoError(t, w.Client.Update(suite.Within(t), kustomization))

	stuck := w.program.Run(t, "", "tenant", "delete", "synced", "--yes", "--timeout", "3s")
	require.Equal(t, 1, stuck.Code)
	require.Contains(t, stuck.Stderr, "the finalizers of Kustomization synced/synced have not ended (is Flux running?)")
	require.Contains(t, w.objectsOf(t, "synced"), "RoleBinding synced-web/synced-reconciler")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "synced"}, &v1beta1.Tenant{}))
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(kustomization), kustomization))
	suspended, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "suspend")
	policy, _, _ := unstructured.NestedString(kustomization.Object, "spec", "deletionPolicy")
	require.True(t, suspended, "what Flux applied stays")
	require.Equal(t, "Orphan", policy)

	kustomization.SetFinalizers(nil)
	require.NoError(t, w.Client.Update(suite.Within(t), kustomization))
	w.program.Must(t, "tenant", "delete", "synced", "--yes")
	require.Empty(t, w.objectsOf(t, "synced"))
}

// The demo's bootstrap makes the source that all tenants share.
func (w *installation) demoSource(t *testing.T) {
	t.Helper()
	w.makeNamespace(t, "flux-system", nil)
	require.NoError(t,
		w.Client.Create(suite.Within(t), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
			"metadata": map[string]any{"namespace": "flux-system", "name": "default"},
			"spec":     map[string]any{"url": "https://github.com/example/demo", "ref": map[string]any{"branch": "trunk"}}}}))
}

func TestTheFormsOfTheDemo(t *testing.T) {
	w := installed(t)
	w.vacant(t, "flux-system")
	without := w.program.Run(t, "", "tenant", "add", "--tenant-namespace", "foo", "--tenant-name", "sometenant")
	require.NotEqual(t, 0, without.Code)
	require.Contains(t, without.Stderr, "--set reconciler.source.url=URL is missing, and there is no GitRepository flux-system/default to copy")
	w.demoSource(t)
	for _, team := range [][2]string{{"foo", "sometenant"}, {"tenant81", "anothertenant"}} {
		w.gone(t, team[1])
		t.Log("\n" + w.program.Must(t, "tenant", "add", "--tenant-namespace", team[0], "--tenant-name", team[1]))
	}
	// What ctrl.py has made, and two namespaces of one name.
	for _, name := range []string{"bar", "baz"} {
		w.makeNamespace(t, name, map[string]string{"flux-multitenant-demo.ringerc.github.com/tenant-name": "shared"})
	}
	foo := w.objectsOf(t, "sometenant")
	for _, name := range []string{"Namespace /foo", "ServiceAccount foo/foo", "RoleBinding foo/foo-reconciler", "ConfigMap foo/tenant-vars",
		"Kustomization foo/dummy"} {
		require.Contains(t, foo, name)
	}
	require.Equal(t, "sometenant", foo["Namespace /foo"].GetLabels()["flux-multitenant-demo.ringerc.github.com/tenant-name"])
	branch, _, _ := unstructured.NestedString(foo["GitRepository foo/default"].Object, "spec", "ref", "branch")
	require.Equal(t, "trunk", branch, "the source is a copy")
	again := w.add(t, "--tenant-namespace", "foo", "--tenant-name", "sometenant")
	require.Zero(t, again.Created+again.Changed+again.Removed, "the second time nothing changes")
	require.Zero(t, w.add(t, "sometenant").Changed, "nor without the flags of the demo")
	require.Equal(t, "0 findings, 0 kinds not checked\n", w.program.Must(t, "check", "--tenant", "sometenant"))
	var lines []string
	for line := range strings.Lines(w.program.Must(t, "tenant", "list", "--namespaces")) {
		if fields := strings.Fields(line); fields[0] == "NAMESPACE" || fields[1] == "sometenant" || fields[1] == "anothertenant" || fields[1] == "shared" {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	require.Equal(t, []string{"NAMESPACE NAME NS-STATUS", "bar shared Active", "baz shared Active", "foo sometenant Active", "tenant81 anothertenant Active"},
		lines)

	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"none by name":      {[]string{"--tenant-name", "nobody"}, "no namespace has the tenant name nobody"},
		"none by namespace": {[]string{"--tenant-namespace", "default"}, "no namespace default belongs to a tenant"},
		"two of one name":   {[]string{"--tenant-name", "shared"}, "2 namespaces have the tenant name shared (bar, baz): choose one with --tenant-namespace"},
		"both, and no match": {[]string{"--tenant-name", "sometenant", "--tenant-namespace", "tenant81"},
			"no namespace tenant81 belongs to a tenant of the name sometenant"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.program.Run(t, "", append([]string{"tenant", "delete", "--delete-namespaces", "--yes"}, c.args...)...)
			require.Equal(t, 1, r.Code, r.Stderr)
			require.Contains(t, r.Stderr, c.says)
			require.True(t, w.exists(t, "foo"))
			require.True(t, w.exists(t, "bar"))
		})
	}
	for flag, value := range map[string]string{"--tenant-name": "sometenant", "--tenant-namespace": "tenant81"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel() // the end of a namespace takes five seconds
			w.program.Must(t, "tenant", "delete", flag, value, "--delete-namespaces", "--yes")
			require.False(t, w.exists(t, map[string]string{"sometenant": "foo", "tenant81": "tenant81"}[value]))
		})
	}
}

// The document's own form works only where Flux is not locked down.
func TestASharedSourceIsTheDemosAndIsReported(t *testing.T) {
	w := installed(t)
	w.gone(t, "sharing")
	r := w.program.Run(t, "", "tenant", "add", "--tenant-namespace", "shares", "--tenant-name", "sharing", "--shared-source")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, "this works only where kustomize-controller runs with --no-cross-namespace-refs=false")
	objects := w.objectsOf(t, "sharing")
	namespace, _, _ := unstructured.NestedString(objects["Kustomization shares/dummy"].Object, "spec", "sourceRef", "namespace")
	require.Equal(t, "flux-system", namespace)
	require.NotContains(t, objects, "GitRepository shares/default")
	require.Zero(t, w.add(t, "--tenant-namespace", "shares", "--tenant-name", "sharing", "--shared-source").Changed)
	found := w.program.Run(t, "", "check", "--tenant", "sharing")
	require.Equal(t, 1, found.Code)
	require.Contains(t, found.Stdout, "SharedSource")
	require.Contains(t, found.Stdout, "1 finding, 0 kinds not checked\n")
}
