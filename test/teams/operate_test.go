//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// follow bounds how long rights may take to follow a Tenant.
const follow = 5 * time.Second

// launch runs the operator with the arguments of the chart's Deployment and the rights of
// its account.
func launch(t *testing.T, args ...string) (process *cluster.Process, health string) {
	t.Helper()
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "operator.kubeconfig")
	require.NoError(t, w.AccountKubeconfig(within(t), landwaiter, "landwaiter-operator", kubeconfig))
	own := append(w.operatorArgs(t), "--kubeconfig="+kubeconfig, fmt.Sprintf("--health-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[1]))
	process, err = cluster.StartProcess(w.LogDir(), cluster.Command{Name: "operator-" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"), Path: w.binary, Args: append(own, args...)})
	require.NoError(t, err)
	t.Cleanup(func() { process.Terminate(settle) }) // it releases its lease
	return process, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0])
}

// operate launches the operator and waits until it is ready.
func operate(t *testing.T, args ...string) *cluster.Process {
	t.Helper()
	process, health := launch(t, args...)
	require.NoError(t, process.Await(within(t), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, health, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}))
	return process
}

// operatorArgs are the arguments of the chart's Deployment.
func (w *world) operatorArgs(t *testing.T) []string {
	t.Helper()
	for _, object := range w.rendered {
		if object.GetKind() != "Deployment" || object.GetName() != "landwaiter-operator" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		container, _ := containers[0].(map[string]any)
		args, _, err := unstructured.NestedStringSlice(container, "args")
		require.NoError(t, err)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(POD_NAMESPACE)", landwaiter)
		}
		return args
	}
	require.Fail(t, "the chart has no Deployment of the operator")
	return nil
}

// tenant makes a Tenant, as a cluster admin does who leaves the rest to the operator.
func tenant(t *testing.T, text string) *v1alpha1.Tenant {
	t.Helper()
	objects, err := cluster.Decode([]byte("apiVersion: landwaiter.dev/v1alpha1\nkind: Tenant\n" + text))
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), objects...))
	made := &v1alpha1.Tenant{}
	require.NoError(t, w.Client.Get(within(t), client.ObjectKeyFromObject(objects[0]), made))
	return made
}

func TestRightsFollowATenantWithinFiveSeconds(t *testing.T) {
	operate(t)
	gone(t, "follow")
	tenant(t, "metadata: {name: follow}\nspec: {home: follow, namespaces: [follow-a], namespacePrefix: follow-, people: {developers: [{kind: Group, name: devs}]}, reconciler: {}, isolation: {quota: {pods: 5}}}")
	require.Contains(t, provisioned(t, "follow", metav1.ConditionTrue, "Provisioned"), "in 2 namespaces")
	equipped := func(namespace string) func(map[string]*unstructured.Unstructured) bool {
		return func(objects map[string]*unstructured.Unstructured) bool {
			for _, name := range []string{"RoleBinding " + namespace + "/follow-reconciler", "RoleBinding " + namespace + "/follow-developers", "ResourceQuota " + namespace + "/tenant", "NetworkPolicy " + namespace + "/default-deny", "Namespace /" + namespace} {
				if objects[name] == nil {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "follow", follow, equipped("follow-a"))

	// A name more in the Tenant.
	live := &v1alpha1.Tenant{}
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "follow"}, live))
	require.NoError(t, w.Client.Patch(within(t), live, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"namespaces":["follow-a","other-b"]}}`))))
	eventually(t, "follow", follow, equipped("other-b"))

	// A namespace with the prefix that comes with the team's label, as the team's own
	// repository makes it.
	makeNamespace(t, "follow-c", map[string]string{v1alpha1.LabelTenant: "follow"})
	eventually(t, "follow", follow, equipped("follow-c"))

	// One without is an admin's to give.
	makeNamespace(t, "follow-d", nil)
	said := provisioned(t, "follow", metav1.ConditionFalse, "NotOwned")
	require.Contains(t, said, "namespace follow-d exists and belongs to no Tenant: `landwaiter tenant add follow --adopt` takes it over")
	require.False(t, equipped("follow-d")(objectsOf(t, "follow")))
	add(t, "follow", "--adopt")
	provisioned(t, "follow", metav1.ConditionTrue, "Provisioned")
	require.True(t, equipped("follow-d")(objectsOf(t, "follow")))

	// Taken off, it loses the bindings, and is nobody's.
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "follow"}, live))
	require.NoError(t, w.Client.Patch(within(t), live, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"namespaces":["follow-a"]}}`))))
	eventually(t, "follow", follow, func(objects map[string]*unstructured.Unstructured) bool {
		for name := range objects {
			if strings.Contains(name, "other-b") {
				return false
			}
		}
		return true
	})
	require.True(t, exists(t, "other-b"))
	require.NoError(t, w.Client.Delete(within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other-b"}}))

	// What somebody changes is put right.
	var quota corev1.ResourceQuota
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: "follow-a", Name: "tenant"}, &quota))
	require.NoError(t, w.Client.Patch(within(t), &quota, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"pods":"5000"}}}`))))
	eventually(t, "follow", follow, func(objects map[string]*unstructured.Unstructured) bool {
		pods, _, _ := unstructured.NestedString(objects["ResourceQuota follow-a/tenant"].Object, "spec", "hard", "pods")
		return pods == "5"
	})
}

func TestTheOperatorDeletesAsTheTenantSays(t *testing.T) {
	operate(t)
	for _, c := range []struct {
		name, onDelete string
		stays          bool
	}{{"op-keep", "Keep", true}, {"op-made", "DeleteMade", false}} {
		t.Run(c.onDelete, func(t *testing.T) {
			made := tenant(t, fmt.Sprintf("metadata: {name: %s}\nspec: {home: %s, namespaces: [%s-web], onDelete: %s, reconciler: {source: {url: 'https://github.com/example/it'}}}", c.name, c.name, c.name, c.onDelete))
			provisioned(t, c.name, metav1.ConditionTrue, "Provisioned")
			kustomization := objectsOf(t, c.name)["Kustomization "+c.name+"/"+c.name]
			kustomization.SetFinalizers([]string{"finalizers.fluxcd.io"})
			require.NoError(t, w.Client.Update(within(t), kustomization))
			require.NoError(t, w.Client.Delete(within(t), made))
			require.Contains(t, provisioned(t, c.name, metav1.ConditionFalse, "Unfinished"), "waits for its finalizers")
			require.Contains(t, objectsOf(t, c.name), "RoleBinding "+c.name+"-web/"+c.name+"-reconciler", "its account still has its rights")
			require.NoError(t, w.Client.Get(within(t), client.ObjectKeyFromObject(kustomization), kustomization))
			suspended, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "suspend")
			require.Equal(t, c.stays, suspended, "what Flux applied stays with Keep alone")
			kustomization.SetFinalizers(nil)
			require.NoError(t, w.Client.Update(within(t), kustomization))

			require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
				if err := w.Client.Get(ctx, client.ObjectKeyFromObject(made), &v1alpha1.Tenant{}); err == nil {
					return errors.New("the Tenant is still there")
				}
				if exists(t, c.name+"-web") != c.stays {
					return errors.New("its namespace is not as onDelete says")
				}
				return nil
			}))
			if !c.stays {
				require.Empty(t, objectsOf(t, c.name))
				return
			}
			for name := range objectsOf(t, c.name) {
				require.Fail(t, "something still says that it is the team's", name)
			}
			for _, namespace := range []string{c.name, c.name + "-web"} {
				require.NoError(t, w.Client.Delete(within(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			}
		})
	}
}

func TestTheCommandLeavesDeletionToTheOperatorWhereOneRuns(t *testing.T) {
	operate(t)
	add(t, green("handed")...)
	provisioned(t, "handed", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, must(t, "tenant", "delete", "handed", "--delete-namespaces", "--yes"), "2 namespaces deleted (handed, handed-web)")
	require.Empty(t, objectsOf(t, "handed"))
	require.False(t, exists(t, "handed-web"))
}

// fence is the guardrail of the operator.
const fence = "landwaiter-operator-fence"

// withoutGuard returns what takes a guardrail away until the end of a test.
func withoutGuard(t *testing.T, name string) (remove func()) {
	t.Helper()
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: name}, &binding))
	return func() {
		require.NoError(t, w.Client.Delete(within(t), binding.DeepCopy()))
		t.Cleanup(func() {
			binding.ResourceVersion, binding.UID = "", ""
			ctx, cancel := context.WithTimeout(context.Background(), settle)
			defer cancel()
			err := w.Client.Create(ctx, &binding)
			if err == nil && strings.HasPrefix(name, "landwaiter-operator-") { // the API server notices a moment later
				err = cluster.Until(ctx, fenced)
			}
			if err != nil {
				t.Errorf("restore %s: %v", name, err)
			}
		})
	}
}

// fenced returns nil if the operator's account may not make anybody admin in kube-system.
func fenced(ctx context.Context) error {
	account, err := w.NewClient(w.As("system:serviceaccount:" + landwaiter + ":landwaiter-operator"))
	if err != nil {
		return err
	}
	err = account.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "probe"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}}, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), fence) {
		return fmt.Errorf("the fence is not in force: %w", err)
	}
	return nil
}

// ends waits until the operator has ended by itself, and returns the end of its log.
func ends(t *testing.T, process *cluster.Process) string {
	t.Helper()
	select {
	case <-process.Ended():
	case <-within(t).Done():
		require.Fail(t, "the operator still runs", process.Tail(20))
	}
	return process.Tail(20)
}

func TestTheOperatorDoesNotStartWithoutItsFence(t *testing.T) {
	withoutGuard(t, fence)()
	// The API server notices a moment later.
	var said string
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		process, _ := launch(t)
		select {
		case <-process.Ended():
			said = process.Tail(5)
			return nil
		case <-time.After(8 * time.Second):
			process.Kill()
			return errors.New("it runs")
		}
	}))
	require.Contains(t, said, "the fence of the operator is not in force: it may make anybody admin in kube-system; install the chart with guardrails.enabled=true")
}

func TestTheOperatorStopsWhenAPolicyOfItsFenceIsTakenAway(t *testing.T) {
	for _, name := range []string{fence, "landwaiter-operator-tenants"} {
		t.Run(name, func(t *testing.T) {
			gone(t, "fenced")
			add(t, "fenced") // a policy about Tenants shows itself where there is one
			remove := withoutGuard(t, name)
			process := operate(t, "--fence-interval=1s")
			require.Never(t, func() bool {
				select {
				case <-process.Ended():
					return true
				default:
					return false
				}
			}, 3*time.Second, 500*time.Millisecond, "with the fence it runs")
			remove()
			require.Contains(t, ends(t, process), "the fence of the operator is not in force")
		})
	}
}

func TestAReservedNamespaceIsNobodys(t *testing.T) {
	operate(t, "--reserved-namespace=monitoring")
	gone(t, "greedy")
	tenant(t, "metadata: {name: greedy}\nspec: {home: greedy, namespaces: [monitoring]}")
	require.Contains(t, provisioned(t, "greedy", metav1.ConditionFalse, "Reserved"), "namespace monitoring is reserved: take it off Tenant greedy")
	require.True(t, exists(t, "greedy"))
	require.False(t, exists(t, "monitoring"))
}
