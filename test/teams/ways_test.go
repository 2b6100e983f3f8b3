//go:build e2e

package teams

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// ways uses most fields of a Tenant.
const ways = `
homeNamespace: NAME
namespaces: [NAME-web, NAME-db]
namespacePrefix: NAME-
namespaceReclaimPolicy: DeleteCreated
access:
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

// plain returns objects without what the API server, and who applied them, add. The team of
// each way has another name, so that none waits for the end of namespaces.
func plain(t *testing.T, name string, objects map[string]*unstructured.Unstructured) (made map[string]any) {
	t.Helper()
	all := map[string]any{}
	for key, object := range objects {
		content := map[string]any{"labels": object.GetLabels()}
		for field, value := range object.Object {
			if field != "metadata" && field != "status" {
				content[field] = value
			}
		}
		all[key] = content
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(bytes.ReplaceAll(text, []byte(name), []byte("NAME")), &made))
	return made
}

func TestThreeWaysMakeTheSameObjects(t *testing.T) {
	w := installed(t)
	w.gone(t, "ways-1", "ways-2", "ways-3")
	of := func(name string) map[string]any {
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(ways, "NAME", name)), &spec))
		return spec
	}
	written := func(content map[string]any) string {
		text, err := yaml.Marshal(content)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "content.yaml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return file
	}
	w.program.Must(t, "tenant", "add", "-f",
		written(map[string]any{"apiVersion": "landwaiter.dev/v1beta1", "kind": "Tenant", "metadata": map[string]any{"name": "ways-1"}, "spec": of("ways-1")}))
	byCommand := plain(t, "ways-1", w.objectsOf(t, "ways-1"))
	require.Greater(t, len(byCommand), 20)
	require.Contains(t, byCommand, "Kustomization NAME/NAME")

	// The chart's objects are what the command would make.
	spec := of("ways-2")
	spec["name"] = "ways-2"
	rendered, err := suite.Chart(suite.Within(t), "tenant", "--values", written(map[string]any{"objects": true, "tenants": []any{spec}}))
	require.NoError(t, err)
	require.NoError(t, w.Apply(suite.Within(t), rendered...))
	require.Equal(t, byCommand, plain(t, "ways-2", w.objectsOf(t, "ways-2")))

	w.operate(t)
	text, err := json.Marshal(of("ways-3"))
	require.NoError(t, err)
	w.tenant(t, fmt.Sprintf("metadata: {name: ways-3}\nspec: %s", text))
	w.provisioned(t, "ways-3", metav1.ConditionTrue, "Provisioned")
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} { // which the operator may not make
		require.Contains(t, byCommand, kind+" /NAME-tenant-reader")
		delete(byCommand, kind+" /NAME-tenant-reader")
	}
	require.Equal(t, byCommand, plain(t, "ways-3", w.objectsOf(t, "ways-3")))
	require.Zero(t, w.add(t, "ways-3").Changed, "the command finds nothing to do after the operator")
}

// trust is a TrustStore whose key is in a Secret.
func trust(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "landwaiter.dev/v1beta1", "kind": "TrustStore",
		"metadata": map[string]any{"namespace": namespace, "name": "keys"},
		"spec":     map[string]any{"type": "PublicKeys", "source": map[string]any{"secretKeyRef": map[string]any{"name": "cosign", "key": "cosign.pub"}}}}}
}

func TestCheckFindsWhatReachesTooFar(t *testing.T) {
	w := installed(t)
	w.gone(t, "checked")
	w.add(t, append(typical("checked"), "--set", "namespaces=checked-db")...)
	clean := func() {
		t.Helper()
		r := w.program.Run(t, "", "check", "--tenant", "checked")
		require.Equal(t, 0, r.Code, r.Stdout+r.Stderr)
		require.Equal(t, "0 findings, 0 kinds not checked\n", r.Stdout)
	}
	clean()

	for _, object := range []client.Object{
		trust("checked-web"), trust("checked"),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "ops"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "ops"}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "tmp"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "checked-web", Name: "default"}}},
		suite.Restricted(suite.Pod("checked", "tool", "registry.example.com/app:v1")),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"namespace": "checked-web", "name": "dummy"},
			"spec":     map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "default", "namespace": "flux-system"}}}},
	} {
		require.NoError(t, w.Client.Create(suite.Within(t), object))
	}
	for _, object := range w.objectsOf(t, "checked") {
		if object.GetKind() == "NetworkPolicy" && object.GetNamespace() == "checked-web" && object.GetName() == "default-deny" {
			require.NoError(t, w.Client.Delete(suite.Within(t), object))
		}
	}
	w.makeNamespace(t, "checked-late", nil)

	found := w.program.Run(t, "", "check", "--tenant", "checked")
	require.Equal(t, 1, found.Code)
	t.Log("\n" + found.Stdout)
	var printed struct {
		Findings []struct {
			ID, Command string
			Object      struct{ Kind, Namespace, Name string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(w.program.Run(t, "", "check", "--tenant", "checked", "-o", "json").Stdout), &printed))
	var said []string
	for _, f := range printed.Findings {
		said = append(said, f.ID+" "+f.Object.Kind+" "+f.Object.Namespace+"/"+f.Object.Name)
	}
	require.ElementsMatch(t, []string{
		"NotOwned Namespace /checked-late", "TrustWithinReach TrustStore checked-web/keys", "NamespaceReach RoleBinding checked-web/ops",
		"DefaultAccount ServiceAccount checked-web/default", "NoDefaultDeny Namespace /checked-web", "Drift NetworkPolicy checked-web/default-deny",
		"HomeNamespaceHasPods Pod checked/tool", "SharedSource Kustomization checked-web/dummy", "OtherAccount Kustomization checked-web/dummy",
	}, said)

	// What findings say mends them: a command runs as it is printed, and what is a matter of the team's
	// is done here.
	for _, object := range []client.Object{
		trust("checked-web"), trust("checked"),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "ops"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "tmp"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "checked", Name: "tool"}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"namespace": "checked-web", "name": "dummy"}}},
	} {
		require.NoError(t, w.Client.Delete(suite.Within(t), object, client.GracePeriodSeconds(0)))
	}
	w.program.Must(t, "tenant", "add", "checked", "--set", "adopt=true") // as NotOwned says
	clean()
	require.NoError(t,
		w.Client.Delete(suite.Within(t), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "checked-web", Name: "default-deny"}}))
	require.NoError(t, yaml.Unmarshal([]byte(w.program.Run(t, "", "check", "--tenant", "checked", "-o", "json").Stdout), &printed))
	require.Len(t, printed.Findings, 2, "%+v", printed)
	for _, f := range printed.Findings {
		require.Equal(t, "landwaiter tenant add checked", f.Command)
		w.program.Must(t, strings.Fields(f.Command)[1:]...)
	}
	clean()

	// Without the guardrails a label says nothing.
	remove := w.withoutGuard(t, "landwaiter-tenant-labels")
	remove()
	require.Contains(t, w.program.Run(t, "", "check", "--tenant", "checked").Stdout, "GuardrailMissing")
	missing := w.program.Run(t, "", "check", "--tenant", "nobody")
	require.Equal(t, 1, missing.Code)
	require.Equal(t, "landwaiter: there is no Tenant nobody: see landwaiter tenant list\n", missing.Stderr)
}
