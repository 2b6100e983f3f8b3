//go:build e2e

package teams

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// operate runs the operator with the arguments of the chart's Deployment and the permissions of
// its account until the end of the test, and waits until it is ready.
func (w *installation) operate(t *testing.T, args ...string) (process *cluster.Process, metrics string) {
	t.Helper()
	operator := suite.Operate(t, w.Cluster, w.rendered, args...)
	return operator.Process, operator.MetricsURL + "/metrics"
}

// tenant makes a Tenant, as a cluster admin does who leaves the rest to the operator.
func (w *installation) tenant(t *testing.T, text string) *v1beta1.Tenant {
	t.Helper()
	suite.Apply(t, w.Cluster, "apiVersion: landwaiter.dev/v1beta1\nkind: Tenant\n"+text)
	made := &v1beta1.Tenant{}
	require.NoError(t, yaml.Unmarshal([]byte(text), made))
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(made), made))
	return made
}

func TestRightsFollowATenantAndItsNamespaces(t *testing.T) {
	w := installed(t)
	w.gone(t, "follow")
	w.vacant(t, "other-b")
	w.operate(t)
	w.tenant(t, "metadata: {name: follow}\nspec: {homeNamespace: follow, namespaces: [follow-a], namespacePrefix: follow-, access: {developers: [{kind: Group, "+
		"name: devs}]}, reconciler: {}, isolation: {quota: {pods: 5}}}")
	require.Contains(t, w.provisioned(t, "follow", metav1.ConditionTrue, "Provisioned"), "in 2 namespaces")
	equipped := func(namespace string) func(map[string]*unstructured.Unstructured) bool {
		return func(objects map[string]*unstructured.Unstructured) bool {
			for _, name := range []string{"RoleBinding " + namespace + "/follow-reconciler", "RoleBinding " + namespace + "/follow-developers",
				"ResourceQuota " + namespace + "/tenant", "NetworkPolicy " + namespace + "/default-deny", "Namespace /" + namespace} {
				if objects[name] == nil {
					return false
				}
			}
			return true
		}
	}
	w.follows(t, "follow", equipped("follow-a"))

	// A name more in the Tenant.
	w.patchTenant(t, "follow", `{"spec":{"namespaces":["follow-a","other-b"]}}`)
	w.follows(t, "follow", equipped("other-b"))

	// A namespace with the prefix that comes with the team's label, as the team's own
	// repository makes it.
	w.makeNamespace(t, "follow-c", map[string]string{v1beta1.LabelTenant: "follow"})
	w.follows(t, "follow", equipped("follow-c"))

	// One without is an admin's to give.
	w.makeNamespace(t, "follow-d", nil)
	said := w.provisioned(t, "follow", metav1.ConditionFalse, "NotOwned")
	require.Contains(t, said, "namespace follow-d exists and belongs to no Tenant: `landwaiter tenant add follow --set adopt=true` takes it over")
	require.False(t, equipped("follow-d")(w.objectsOf(t, "follow")))
	w.add(t, "follow", "--set", "adopt=true")
	w.provisioned(t, "follow", metav1.ConditionTrue, "Provisioned")
	require.True(t, equipped("follow-d")(w.objectsOf(t, "follow")))

	// Taken off, it loses the bindings and belongs to no Tenant.
	w.patchTenant(t, "follow", `{"spec":{"namespaces":["follow-a"]}}`)
	w.follows(t, "follow", func(objects map[string]*unstructured.Unstructured) bool {
		for name := range objects {
			if strings.Contains(name, "other-b") {
				return false
			}
		}
		return true
	})
	require.True(t, w.exists(t, "other-b"))

	// What somebody changes is put right.
	var quota corev1.ResourceQuota
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "follow-a", Name: "tenant"}, &quota))
	w.patch(t, &quota, `{"spec":{"hard":{"pods":"5000"}}}`)
	w.follows(t, "follow", func(objects map[string]*unstructured.Unstructured) bool {
		pods, _, _ := unstructured.NestedString(objects["ResourceQuota follow-a/tenant"].Object, "spec", "hard", "pods")
		return pods == "5"
	})
}

func TestTheOperatorDeletesAsTheTenantSays(t *testing.T) {
	w := installed(t)
	w.operate(t)
	for _, c := range []struct {
		name, namespaceReclaimPolicy string
		stays                        bool
	}{{"op-keep", "Retain", true}, {"op-made", "DeleteCreated", false}} {
		t.Run(c.namespaceReclaimPolicy, func(t *testing.T) {
			w.vacant(t, c.name, c.name+"-web")
			made := w.tenant(t,
				fmt.Sprintf("metadata: {name: %s}\nspec: {homeNamespace: %s, namespaces: [%s-web], namespaceReclaimPolicy: %s, reconciler: {source: {url: "+
					"'https://github.com/example/it'}}}", c.name, c.name, c.name, c.namespaceReclaimPolicy))
			w.provisioned(t, c.name, metav1.ConditionTrue, "Provisioned")
			kustomization := w.objectsOf(t, c.name)["Kustomization "+c.name+"/"+c.name]
			kustomization.SetFinalizers([]string{"finalizers.fluxcd.io"})
			require.NoError(t, w.Client.Update(suite.Within(t), kustomization))
			require.NoError(t, w.Client.Delete(suite.Within(t), made))
			require.Contains(t, w.provisioned(t, c.name, metav1.ConditionFalse, "Unfinished"), "waits for its finalizers")
			require.Contains(t, w.objectsOf(t, c.name), "RoleBinding "+c.name+"-web/"+c.name+"-reconciler", "its account still has its permissions")
			require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(kustomization), kustomization))
			suspended, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "suspend")
			require.Equal(t, c.stays, suspended, "what Flux applied stays with Keep alone")
			kustomization.SetFinalizers(nil)
			require.NoError(t, w.Client.Update(suite.Within(t), kustomization))

			suite.Eventually(t, func(ctx context.Context) error {
				if err := w.Client.Get(ctx, client.ObjectKeyFromObject(made), &v1beta1.Tenant{}); err == nil {
					return errors.New("the Tenant is still there")
				}
				if w.exists(t, c.name+"-web") != c.stays || w.exists(t, c.name) != c.stays {
					return errors.New("its namespaces are not as namespaceReclaimPolicy says")
				}
				return nil
			})
			require.Empty(t, w.objectsOf(t, c.name), "something still says that it is the team's")
		})
	}
}

func TestTheCommandLeavesDeletionToTheOperatorWhereOneRuns(t *testing.T) {
	w := installed(t)
	w.operate(t)
	w.add(t, typical("handed")...)
	w.provisioned(t, "handed", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, w.program.Must(t, "tenant", "delete", "handed", "--delete-namespaces", "--yes"), "2 namespaces deleted (handed, handed-web)")
	require.Empty(t, w.objectsOf(t, "handed"))
	require.False(t, w.exists(t, "handed-web"))
}

// withoutGuard returns what takes a guardrail away until the end of a test.
func (w *installation) withoutGuard(t *testing.T, name string) (remove func()) {
	t.Helper()
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: name}, &binding))
	return func() {
		require.NoError(t, w.Client.Delete(suite.Within(t), binding.DeepCopy()))
		t.Cleanup(func() {
			binding.ResourceVersion, binding.UID = "", ""
			require.NoError(t, w.Client.Create(suite.Within(t), &binding))
			if strings.HasPrefix(name, "landwaiter-operator-") { // the API server notices a moment later
				suite.Eventually(t, w.confined)
			}
		})
	}
}

// ends waits until the operator has ended by itself, and returns the end of its log.
func ends(t *testing.T, process *cluster.Process) string {
	t.Helper()
	select {
	case <-process.Ended():
	case <-suite.Within(t).Done():
		require.Fail(t, "the operator still runs", process.Tail(20))
	}
	return process.Tail(20)
}

func TestTheOperatorDoesNotStartWithoutItsGuardrails(t *testing.T) {
	w := installed(t)
	w.withoutGuard(t, operatorGuardrail)()
	suite.Eventually(t, func(ctx context.Context) error { // the API server notices a moment later
		if err := w.confined(ctx); !errors.Is(err, errNoGuardrail) {
			return fmt.Errorf("the operator guardrail may be in force: %w", err)
		}
		return nil
	})
	process := suite.LaunchOperator(t, w.Cluster, w.rendered).Process
	require.Contains(t, ends(t, process), "the operator guardrails are not in force: the operator may make anybody admin in kube-system; install the chart with "+
		"guardrails.enabled=true")
}

var refusals = regexp.MustCompile(`rest_client_requests_total\{code="403",[^}]*method="POST"\} (\d+)`)

// proven waits until the operator has asked again for what its guardrail refuses.
func proven(t *testing.T, process *cluster.Process, metrics string) {
	t.Helper()
	first := ""
	require.NoError(t, process.Await(suite.Within(t), func(ctx context.Context) error {
		text, err := stack.Get(ctx, metrics)
		if err != nil {
			return err
		}
		found := refusals.FindStringSubmatch(string(text))
		if found == nil || first == "" || first == found[1] {
			if found != nil && first == "" {
				first = found[1]
			}
			return fmt.Errorf("the API server has refused %v", found)
		}
		return nil
	}))
}

func TestTheOperatorStopsWhenOneOfItsGuardrailsIsTakenAway(t *testing.T) {
	w := installed(t)
	w.gone(t, "confined")
	w.add(t, "confined") // a policy about Tenants shows itself where there is one
	for _, name := range []string{operatorGuardrail, "landwaiter-operator-tenants"} {
		t.Run(name, func(t *testing.T) {
			remove := w.withoutGuard(t, name)
			process, metrics := w.operate(t, "--guardrail=interval=1s")
			proven(t, process, metrics) // it runs on
			remove()
			said := ends(t, process)
			require.Contains(t, said, "the operator guardrails are not in force")
			require.NotContains(t, said, "have not been proven since", "it ended at the first answer, not when it had none for long")
		})
	}
}

func TestAReservedNamespaceIsNobodys(t *testing.T) {
	w := installed(t)
	w.gone(t, "greedy")
	w.operate(t, "--reserved-namespace=monitoring")
	w.tenant(t, "metadata: {name: greedy}\nspec: {homeNamespace: greedy, namespaces: [monitoring]}")
	require.Contains(t, w.provisioned(t, "greedy", metav1.ConditionFalse, "Reserved"), "namespace monitoring is reserved: take it off Tenant greedy")
	require.True(t, w.exists(t, "greedy"))
	require.False(t, w.exists(t, "monitoring"))
}

func TestNobodyKeepsPermissionsInANamespaceThatBecomesReserved(t *testing.T) {
	w := installed(t)
	w.gone(t, "keys")
	bound := func(t *testing.T, want bool, namespace string) {
		t.Helper()
		w.follows(t, "keys", func(objects map[string]*unstructured.Unstructured) bool {
			return (objects["RoleBinding "+namespace+"/keys-admins"] != nil) == want
		})
	}
	process, _ := w.operate(t)
	w.tenant(t, "metadata: {name: keys}\nspec: {homeNamespace: keys, namespaces: [keys-all], access: {admins: [{kind: Group, name: a}]}}")
	w.provisioned(t, "keys", metav1.ConditionTrue, "Provisioned")
	bound(t, true, "keys-all")
	process.Terminate(suite.Patience)

	process, _ = w.operate(t, "--reserved-namespace=keys-all")
	w.provisioned(t, "keys", metav1.ConditionFalse, "Reserved")
	bound(t, false, "keys-all")
	bound(t, true, "keys")
	process.Terminate(suite.Patience)

	w.operate(t, "--reserved-namespace=keys")
	bound(t, false, "keys")
	w.follows(t, "keys", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["RoleBinding keys/landwaiter-reference-reader"] != nil // by which Landwaiter reads there
	})
}
