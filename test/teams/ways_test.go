//go:build e2e

package teams

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// waysSpec uses most fields of a Tenant.
const waysSpec = `
home: ways
namespaces: [ways-web, ways-db]
namespacePrefix: ways-
onDelete: DeleteMade
people:
  admins: [{kind: Group, name: ways-admins}]
  developers: [{kind: Group, name: ways-devs}, {kind: User, name: jo}]
  viewers: [{kind: ServiceAccount, name: dashboard, namespace: monitoring}]
reconciler:
  source: {url: 'https://github.com/example/ways', branch: main, interval: 2m, secretRef: {name: git}}
  path: ./apps
  variables: {REGION: eu}
isolation:
  podSecurity: Baseline
  quota: {pods: "50", requests.cpu: "8"}
`

// plain returns objects without what the API server, and who applied them, add.
func plain(objects map[string]*unstructured.Unstructured) map[string]map[string]any {
	made := map[string]map[string]any{}
	for name, object := range objects {
		content := map[string]any{"labels": object.GetLabels()}
		for field, value := range object.Object {
			if field != "metadata" && field != "status" {
				content[field] = value
			}
		}
		made[name] = content
	}
	return made
}

func TestThreeWaysMakeTheSameObjects(t *testing.T) {
	text := "apiVersion: landwaiter.dev/v1alpha1\nkind: Tenant\nmetadata: {name: ways}\nspec:\n"
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(waysSpec), &spec))
	whole, err := yaml.Marshal(map[string]any{"apiVersion": "landwaiter.dev/v1alpha1", "kind": "Tenant", "metadata": map[string]any{"name": "ways"}, "spec": spec})
	require.NoError(t, err, text)

	// The command.
	file := filepath.Join(t.TempDir(), "ways.yaml")
	require.NoError(t, os.WriteFile(file, whole, 0o600))
	must(t, "tenant", "add", "-f", file)
	byCommand := plain(objectsOf(t, "ways"))
	require.Greater(t, len(byCommand), 20)
	require.Contains(t, byCommand, "Kustomization ways/ways")
	must(t, "tenant", "delete", "ways", "--delete-namespaces", "--yes")
	require.Empty(t, objectsOf(t, "ways"))

	// The chart, and its objects are what the command would make.
	spec["name"] = "ways"
	values, err := yaml.Marshal(map[string]any{"objects": true, "tenants": []any{spec}})
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, values, 0o600))
	rendered, err := w.template(within(t), "tenant", "--values", file)
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), rendered...))
	require.Equal(t, byCommand, plain(objectsOf(t, "ways")))
	require.NoError(t, w.Client.Delete(within(t), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "ways"}}))
	for _, namespace := range []string{"ways", "ways-web", "ways-db"} {
		require.NoError(t, w.Client.Delete(within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if exists(t, "ways") || exists(t, "ways-web") || exists(t, "ways-db") {
			return errors.New("namespaces are ending")
		}
		return nil
	}))

	// The operator.
	operate(t)
	tenant(t, string(whole[len("apiVersion: landwaiter.dev/v1alpha1\nkind: Tenant\n"):]))
	gone(t, "ways")
	provisioned(t, "ways", metav1.ConditionTrue, "Provisioned")
	require.Equal(t, byCommand, plain(objectsOf(t, "ways")))
	require.Zero(t, add(t, "ways").Changed, "the command finds nothing to do after the operator")
	must(t, "tenant", "delete", "ways", "--yes")
}

// trust is a TrustStore whose key is in a Secret.
func trust(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "landwaiter.dev/v1alpha1", "kind": "TrustStore", "metadata": map[string]any{"namespace": namespace, "name": "keys"},
		"spec": map[string]any{"type": "PublicKeys", "source": map[string]any{"secretKeyRef": map[string]any{"name": "cosign", "key": "cosign.pub"}}}}}
}

func TestCheckFindsWhatReachesTooFar(t *testing.T) {
	gone(t, "checked")
	add(t, append(green("checked"), "--namespace", "checked-db")...)
	clean := try(t, "tenant", "check", "checked")
	require.Equal(t, 0, clean.code, clean.stdout+clean.stderr)
	require.Equal(t, "0 findings\n", clean.stdout)

	for _, object := range []client.Object{
		trust("checked-web"), trust("checked"),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "ops"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "ops"}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "tmp"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "checked-web", Name: "default"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "checked", Name: "tool"}, Spec: restricted()},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "checked-web", "name": "dummy"},
			"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "default", "namespace": "flux-system"}}}},
	} {
		require.NoError(t, w.Client.Create(within(t), object))
	}
	for _, object := range objectsOf(t, "checked") {
		if object.GetKind() == "NetworkPolicy" && object.GetNamespace() == "checked-web" && object.GetName() == "default-deny" {
			require.NoError(t, w.Client.Delete(within(t), object))
		}
	}
	makeNamespace(t, "checked-late", nil)

	found := try(t, "tenant", "check", "checked")
	require.Equal(t, 1, found.code)
	t.Log("\n" + found.stdout)
	var printed struct {
		Findings []struct {
			Finding string
			Where   struct{ Kind, Namespace, Name string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(try(t, "tenant", "check", "checked", "-o", "json").stdout), &printed))
	var said []string
	for _, f := range printed.Findings {
		said = append(said, f.Finding+" "+f.Where.Kind+" "+f.Where.Namespace+"/"+f.Where.Name)
	}
	require.ElementsMatch(t, []string{
		"NotOwned Namespace /checked-late", "TrustWithinReach TrustStore checked-web/keys", "NamespaceReach RoleBinding checked-web/ops",
		"DefaultAccount ServiceAccount checked-web/default", "NoDefaultDeny Namespace /checked-web", "Drift NetworkPolicy checked-web/default-deny",
		"HomeHasPods Pod checked/tool", "SharedSource Kustomization checked-web/dummy", "OtherAccount Kustomization checked-web/dummy",
	}, said)

	// Without the guardrails a label says nothing.
	remove := withoutGuard(t, "landwaiter-tenant-labels")
	remove()
	require.Contains(t, try(t, "tenant", "check", "checked").stdout, "UnguardedLabels")
	missing := try(t, "tenant", "check", "nobody")
	require.Equal(t, 1, missing.code)
	require.Equal(t, "landwaiter: there is no Tenant nobody: see landwaiter tenant list\n", missing.stderr)
}
