//go:build e2e

package teams

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// green is the team of most tests.
func green(name string) []string {
	return []string{name, "--prefix", name + "-", "--namespace", name + "-web", "--admin-group", name + "-admins", "--developer-group", name + "-devs",
		"--git-url", "https://github.com/example/" + name, "--quota", "pods=50", "--variable", "REGION=eu"}
}

func TestAddingATeamASecondTimeChangesNothing(t *testing.T) {
	gone(t, "iris-green")
	preview := add(t, append(green("iris-green"), "--dry-run")...)
	require.Empty(t, objectsOf(t, "iris-green"), "a dry run writes nothing")
	require.False(t, exists(t, "iris-green"))

	first := add(t, green("iris-green")...)
	require.Equal(t, []string{"iris-green", "iris-green-web"}, first.Members)
	require.Equal(t, first.Created, preview.Created, "a dry run says what would happen")
	require.Greater(t, first.Created, 15)
	require.Zero(t, first.Changed+first.Unchanged)
	before := objectsOf(t, "iris-green")
	require.Len(t, before, first.Created-1, "all but the Tenant itself carry its label")
	for _, name := range []string{"Namespace /iris-green", "ServiceAccount iris-green/iris-green", "RoleBinding iris-green-web/iris-green-reconciler",
		"RoleBinding iris-green-web/iris-green-developers", "NetworkPolicy iris-green-web/default-deny", "ResourceQuota iris-green-web/tenant", "Kustomization iris-green/iris-green"} {
		require.Contains(t, before, name)
	}
	require.NotContains(t, before, "RoleBinding iris-green/iris-green-developers", "developers have no rights in home")

	second := add(t, green("iris-green")...)
	require.Zero(t, second.Created+second.Changed+second.Removed)
	require.Equal(t, first.Created, second.Unchanged)
	require.Equal(t, versions(before), versions(objectsOf(t, "iris-green")))
	require.Contains(t, must(t, append([]string{"tenant", "add"}, green("iris-green")...)...),
		fmt.Sprintf("tenant iris-green: home iris-green, 1 namespace, %d objects: 0 created, 0 changed, %d as they were\n", first.Created, first.Created))
}

func TestAddingPutsRightWhatDiffersAndRemovesWhatTheTenantNoLongerStandsFor(t *testing.T) {
	gone(t, "repair")
	add(t, append(green("repair"), "--namespace", "repair-old")...)
	var quota corev1.ResourceQuota
	key := client.ObjectKey{Namespace: "repair-web", Name: "tenant"}
	require.NoError(t, w.Client.Get(within(t), key, &quota))
	require.NoError(t, w.Client.Patch(within(t), &quota, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"pods":"5000"}}}`))))
	require.NoError(t, w.Client.Delete(within(t), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "repair-web", Name: "repair-developers"}}))

	found := try(t, "tenant", "check", "repair", "-o", "json")
	require.Equal(t, 1, found.code, found.stderr)
	require.Contains(t, found.stdout, `"Drift"`)
	require.Contains(t, found.stdout, `"ResourceQuota"`, "an object that differs, not only one that is missing")
	previewed := add(t, "repair", "--dry-run")
	require.Equal(t, [2]int{1, 1}, [2]int{previewed.Created, previewed.Changed})
	fixed := add(t, "repair")
	require.Equal(t, [2]int{1, 1}, [2]int{fixed.Created, fixed.Changed})
	require.NoError(t, w.Client.Get(within(t), key, &quota))
	require.Equal(t, "50", quota.Spec.Hard.Pods().String())

	// A role cannot be changed in a binding.
	changed := add(t, "repair", "--cluster-role", "edit")
	require.Equal(t, 4, changed.Changed, "the Tenant and the bindings in three namespaces: %+v", changed)
	for _, object := range []string{"RoleBinding repair-web/repair-reconciler", "RoleBinding repair/repair-reconciler"} {
		role, _, _ := unstructured.NestedString(objectsOf(t, "repair")[object].Object, "roleRef", "name")
		require.Equal(t, "edit", role)
	}

	// A file says all of it: repair-old is off the Tenant, and has no prefix any more.
	text := `{"apiVersion":"landwaiter.dev/v1alpha1","kind":"Tenant","metadata":{"name":"repair"},"spec":{"home":"repair","namespaces":["repair-web"],
		"people":{"developers":[{"kind":"Group","name":"repair-devs"}]}}}`
	r := tryWith(t, text, "tenant", "add", "-f", "-", "-o", "json")
	require.Equal(t, 0, r.code, r.stderr)
	after := objectsOf(t, "repair")
	for name := range after {
		require.NotContains(t, name, "repair-old", "it is no longer the team's")
		require.NotContains(t, name, "reconciler", "and the team has no Git account")
	}
	require.True(t, exists(t, "repair-old"), "namespaces are never pruned")
	t.Cleanup(func() {
		_ = w.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "repair-old"}})
	})
	var bindings rbacv1.RoleBindingList
	require.NoError(t, w.Client.List(within(t), &bindings, client.InNamespace("repair-old")))
	require.Empty(t, bindings.Items, "rights in it are gone")
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "repair-old", Name: "tenant"}, &quota), "what only restricts stays")
	require.NotContains(t, quota.Labels, v1alpha1.LabelOwner, "and is now the namespace's own")
}

func TestANamespaceThatExistsIsOnlyTakenOverWithConsent(t *testing.T) {
	gone(t, "web")
	makeNamespace(t, "payments", map[string]string{"owner": "finance", "pod-security.kubernetes.io/enforce": "restricted"})
	require.NoError(t, w.Client.Create(within(t), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "p"}, Spec: restricted()}))
	args := []string{"tenant", "add", "web", "--namespace", "payments", "--pod-security", "Baseline"}
	refused := try(t, args...)
	require.Equal(t, 1, refused.code)
	require.Equal(t, "landwaiter: Namespace payments exists and belongs to no Tenant; --adopt, or spec.adopt in a file, gives it to Tenant web (1 pod, labels kept)\n", refused.stderr)
	require.Empty(t, objectsOf(t, "web"))
	require.Error(t, w.Client.Get(within(t), client.ObjectKey{Name: "web"}, &v1alpha1.Tenant{}), "nothing was written")

	must(t, append(args, "--adopt")...)
	var namespace corev1.Namespace
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "payments"}, &namespace))
	require.Equal(t, "finance", namespace.Labels["owner"])
	require.Equal(t, "web", namespace.Labels[v1alpha1.LabelTenant])
	require.Equal(t, "restricted", namespace.Labels["pod-security.kubernetes.io/enforce"], "the stricter one stays")
	require.Equal(t, "web", namespace.Annotations[v1alpha1.AnnotationAdopted])
	require.NotContains(t, namespace.Annotations, v1alpha1.AnnotationMade)
	again := add(t, "web", "--namespace", "payments")
	require.Zero(t, again.Changed+again.Created)

	out := must(t, "tenant", "delete", "web", "--delete-namespaces", "--yes")
	require.Contains(t, out, "1 namespace deleted (web), 1 adopted one untouched")
	require.False(t, exists(t, "web"))
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "payments"}, &namespace))
	require.Nil(t, namespace.DeletionTimestamp)
	require.NotContains(t, namespace.Labels, v1alpha1.LabelTenant)
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "payments", Name: "p"}, &corev1.Pod{}))
}

// restricted is a pod that every level of pod security admits.
func restricted() corev1.PodSpec {
	no, yes := false, true
	return corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:v1", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}}
}

func TestTheOlderTeamKeepsANamespaceThatTwoName(t *testing.T) {
	gone(t, "elder", "younger")
	add(t, "elder", "--namespace", "contested")
	before := versions(objectsOf(t, "elder"))
	refused := try(t, "tenant", "add", "younger", "--namespace", "contested", "--adopt")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "namespace contested belongs to Tenant elder, which is older")
	require.Empty(t, objectsOf(t, "younger"))
	require.Equal(t, before, versions(objectsOf(t, "elder")))
}
