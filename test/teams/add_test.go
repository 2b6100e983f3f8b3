//go:build e2e

package teams

import (
	"fmt"
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

func TestAddingATeamASecondTimeChangesNothing(t *testing.T) {
	w := installed(t)
	w.gone(t, "iris-green")
	preview := w.add(t, append(typical("iris-green"), "--dry-run")...)
	require.Contains(t, w.program.Must(t, append([]string{"tenant", "add", "--dry-run"}, typical("iris-green")...)...),
		" would be created, 0 would be changed, 0 would be unchanged\n")
	require.Empty(t, w.objectsOf(t, "iris-green"), "a dry run writes nothing")
	require.False(t, w.exists(t, "iris-green"))

	first := w.add(t, typical("iris-green")...)
	require.Equal(t, []string{"iris-green", "iris-green-web"}, first.Namespaces)
	require.Equal(t, first.Created, preview.Created, "a dry run says what would happen")
	require.Greater(t, first.Created, 15)
	require.Zero(t, first.Changed+first.Unchanged)
	before := w.objectsOf(t, "iris-green")
	require.Len(t, before, first.Created-1, "all but the Tenant itself carry its label")
	for _, name := range []string{"Namespace /iris-green", "ServiceAccount iris-green/iris-green", "RoleBinding iris-green-web/iris-green-reconciler",
		"RoleBinding iris-green-web/iris-green-developers", "NetworkPolicy iris-green-web/default-deny", "ResourceQuota iris-green-web/tenant",
		"Kustomization iris-green/iris-green"} {
		require.Contains(t, before, name)
	}
	require.NotContains(t, before, "RoleBinding iris-green/iris-green-developers", "developers have no permissions in the home namespace")

	second := w.add(t, typical("iris-green")...)
	require.Zero(t, second.Created+second.Changed+second.Removed)
	require.Equal(t, first.Created, second.Unchanged)
	require.Equal(t, resourceVersions(before), resourceVersions(w.objectsOf(t, "iris-green")))
	require.Contains(t, w.program.Must(t, append([]string{"tenant", "add"}, typical("iris-green")...)...),
		fmt.Sprintf("tenant iris-green: home namespace iris-green, 1 namespace, %d objects: 0 created, 0 changed, %d unchanged\n", first.Created, first.Created))
}

func TestAddingPutsRightWhatDiffersAndRemovesWhatTheTenantNoLongerStandsFor(t *testing.T) {
	w := installed(t)
	w.gone(t, "repair")
	w.vacant(t, "repair-old")
	w.add(t, append(typical("repair"), "--set", "namespaces=repair-old")...)
	var quota corev1.ResourceQuota
	key := client.ObjectKey{Namespace: "repair-web", Name: "tenant"}
	require.NoError(t, w.Client.Get(suite.Within(t), key, &quota))
	w.patch(t, &quota, `{"spec":{"hard":{"pods":"5000"}}}`)
	require.NoError(t, w.Client.Delete(suite.Within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "repair-web", Name: "repair-developers"}}))

	found := w.program.Run(t, "", "check", "--tenant", "repair", "-o", "json")
	require.Equal(t, 1, found.Code, found.Stderr)
	require.Contains(t, found.Stdout, `"Drift"`)
	require.Contains(t, found.Stdout, `"ResourceQuota"`, "an object that differs, not only one that is missing")
	previewed := w.add(t, "repair", "--dry-run")
	require.Equal(t, [2]int{1, 1}, [2]int{previewed.Created, previewed.Changed})
	fixed := w.add(t, "repair")
	require.Equal(t, [2]int{1, 1}, [2]int{fixed.Created, fixed.Changed})
	require.NoError(t, w.Client.Get(suite.Within(t), key, &quota))
	require.Equal(t, "50", quota.Spec.Hard.Pods().String())

	// A role cannot be changed in a binding.
	changed := w.add(t, "repair", "--set", "reconciler.clusterRole=edit")
	require.Equal(t, 4, changed.Changed, "the Tenant and the bindings in three namespaces: %+v", changed)
	for _, object := range []string{"RoleBinding repair-web/repair-reconciler", "RoleBinding repair/repair-reconciler"} {
		role, _, _ := unstructured.NestedString(w.objectsOf(t, "repair")[object].Object, "roleRef", "name")
		require.Equal(t, "edit", role)
	}

	// A file says all of it: repair-old is off the Tenant, and has no prefix any more.
	text := `{"apiVersion":"landwaiter.dev/v1beta1","kind":"Tenant","metadata":{"name":"repair"},"spec":{"homeNamespace":"repair","namespaces":["repair-web"],
		"access":{"developers":[{"kind":"Group","name":"repair-devs"}]}}}`
	r := w.program.Run(t, text, "tenant", "add", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.Code, r.Stderr)
	after := w.objectsOf(t, "repair")
	for name := range after {
		require.NotContains(t, name, "repair-old", "it is no longer the team's")
		require.NotContains(t, name, "reconciler", "and the team has no Git account")
	}
	require.True(t, w.exists(t, "repair-old"), "namespaces are never pruned")
	var bindings rbacv1.RoleBindingList
	require.NoError(t, w.Client.List(suite.Within(t), &bindings, client.InNamespace("repair-old")))
	require.Empty(t, bindings.Items, "permissions in it are gone")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "repair-old", Name: "tenant"}, &quota), "what only restricts stays")
	require.NotContains(t, quota.Labels, v1beta1.LabelOwner, "and is now the namespace's own")
}

func TestANamespaceThatExistsIsOnlyTakenOverWithConsent(t *testing.T) {
	w := installed(t)
	w.gone(t, "web")
	w.makeNamespace(t, "payments", map[string]string{"owner": "finance", "pod-security.kubernetes.io/enforce": "restricted"})
	require.NoError(t, w.Client.Create(suite.Within(t), suite.Restricted(suite.Pod("payments", "p", "registry.example.com/app:v1"))))
	args := []string{"tenant", "add", "web", "--set", "namespaces=payments", "--set", "isolation.podSecurity=Baseline"}
	refused := w.program.Run(t, "", args...)
	require.Equal(t, 1, refused.Code)
	require.Equal(t, "landwaiter: Namespace payments exists and belongs to no Tenant; --set adopt=true, or spec.adopt in a file, gives it to Tenant web (1 pod, "+
		"labels kept)\n", refused.Stderr)
	require.Empty(t, w.objectsOf(t, "web"))
	require.Error(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "web"}, &v1beta1.Tenant{}), "nothing was written")

	w.program.Must(t, append(args, "--set", "adopt=true")...)
	var namespace corev1.Namespace
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "payments"}, &namespace))
	require.Equal(t, "finance", namespace.Labels["owner"])
	require.Equal(t, "web", namespace.Labels[v1beta1.LabelTenant])
	require.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"], "the stricter one stays")
	require.Equal(t, "web", namespace.Annotations[v1beta1.AnnotationAdopted])
	require.NotContains(t, namespace.Annotations, v1beta1.AnnotationCreated)
	again := w.add(t, "web", "--set", "namespaces=payments")
	require.Zero(t, again.Changed+again.Created)

	out := w.program.Must(t, "tenant", "delete", "web", "--delete-namespaces", "--yes")
	require.Contains(t, out, "1 namespace deleted (web), 1 adopted namespace kept")
	require.False(t, w.exists(t, "web"))
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "payments"}, &namespace))
	require.Nil(t, namespace.DeletionTimestamp)
	require.NotContains(t, namespace.Labels, v1beta1.LabelTenant)
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "payments", Name: "p"}, &corev1.Pod{}))
}

func TestTheOlderTeamKeepsANamespaceThatTwoName(t *testing.T) {
	w := installed(t)
	w.gone(t, "elder", "younger")
	w.add(t, "elder", "--set", "namespaces=contested")
	before := resourceVersions(w.objectsOf(t, "elder"))
	refused := w.program.Run(t, "", "tenant", "add", "younger", "--set", "namespaces=contested", "--set", "adopt=true")
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "namespace contested belongs to Tenant elder, which its label landwaiter.dev/tenant names")
	require.Empty(t, w.objectsOf(t, "younger"))
	require.Equal(t, before, resourceVersions(w.objectsOf(t, "elder")))
}

// The operator would refuse it, but an admin with consent does what it does not.
func TestAddGivesNobodyWhatClusterResourcesReference(t *testing.T) {
	w := installed(t)
	w.gone(t, "keeper")
	w.makeNamespace(t, "keys-of-all", nil)
	w.makeNamespace(t, "lw-elsewhere", nil)
	suite.Apply(t, w.Cluster,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: landwaiter, namespace: lw-elsewhere, labels: {app.kubernetes.io/name: landwaiter}},
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: landwaiter, image: i, args: [serve, --cluster-resource-namespace=keys-of-all]}]}}}}`)
	refused := w.program.Run(t, "", "tenant", "add", "keeper", "--set", "namespaces=keys-of-all", "--set", "adopt=true", "--landwaiter-account",
		"lw-elsewhere/landwaiter")
	require.NotZero(t, refused.Code)
	require.Contains(t, refused.Stdout+refused.Stderr, "namespace keys-of-all is reserved: take it off Tenant keeper")
	require.NotContains(t, refused.Stderr, "the namespace of the Secrets and ConfigMaps of cluster resources is unknown")

	suite.Apply(t, w.Cluster,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: landwaiter, namespace: lw-elsewhere, labels: {app.kubernetes.io/name: landwaiter}},
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: landwaiter, image: i, args: [serve, --cluster-resource-namespace=$(KEYS)]}]}}}}`)
	unsure := w.program.Run(t, "", "tenant", "add", "keeper", "--set", "namespaces=keeper", "--dry-run", "--landwaiter-account", "lw-elsewhere/landwaiter")
	require.Contains(t, unsure.Stderr, "the namespace of the Secrets and ConfigMaps of cluster resources is unknown (serve has $(KEYS)): lw-elsewhere is assumed")
}
