//go:build nightly

package teams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// onTheirOwn starts a cluster for one test, and returns helm and kubectl for it.
func onTheirOwn(t *testing.T) (c *cluster.Cluster, helm, kubectl suite.Program) {
	t.Helper()
	c, err := suite.ForTest(t).Cluster(t.Context(), cluster.Options{WithoutGatekeeper: true, ManagerArgs: []string{"--use-service-account-credentials=true"}})
	require.NoError(t, err)
	kinds, err := foreignKinds()
	require.NoError(t, err)
	require.NoError(t, c.Apply(suite.Within(t), kinds...))
	helm = suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm"), Kubeconfig: c.Kubeconfig(), Env: []string{"HELM_NAMESPACE=" + suite.System}}
	return c, helm, suite.Program{Path: suite.MustTool(t, suite.ClusterTools, "kubectl"), Kubeconfig: c.Kubeconfig()}
}

// canMake says whether a namespace can be made; a dry run asks the same rules.
func canMake(c *cluster.Cluster, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Client.Create(ctx, suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name), client.DryRunAll)
	}
}

// isGuarded waits until a Tenant's names are guarded, which needs the Tenant.
func isGuarded(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	require.NoError(t,
		c.Apply(suite.Within(t),
			suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: iris}, spec: {homeNamespace: iris, namespacePrefix: iris-}}"),
			suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: maker}, rules: [{apiGroups: [''], resources: [namespaces], "+
				"verbs: [create]}]}"),
			binding("", "maker", "maker", user("maker"))))
	maker, err := c.NewClient(c.As("maker"))
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error {
		err := create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-evil}}")(ctx, maker)
		if refusedBy(err, "namespace-names") {
			return nil
		}
		return fmt.Errorf("it was not refused: %w", err)
	})
}

// withoutTheKind deletes the CRD of Tenants.
func withoutTheKind(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	kind := suite.Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tenants.landwaiter.dev}}")
	require.NoError(t, c.Client.Delete(suite.Within(t), kind))
	suite.Eventually(t, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(kind), kind.DeepCopy()); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the kind is there"))
		}
		return nil
	})
}

// What docs/operate/uninstall.md says: the guardrails go first.
func TestNamespacesCanBeMadeAfterTheGuardrailsAndTheirKindAreGone(t *testing.T) {
	c, helm, _ := onTheirOwn(t)
	helm.Must(t, "install", "landwaiter", chart, "--create-namespace", "--set", "guardrails.enabled=true,operator.enabled=true,crds.keep=false")
	isGuarded(t, c)
	helm.Must(t, "upgrade", "landwaiter", chart, "--reset-then-reuse-values", "--set", "operator.enabled=false,guardrails.enabled=false")
	helm.Must(t, "uninstall", "landwaiter")
	suite.Eventually(t, func(ctx context.Context) error {
		err := c.Client.Get(ctx, types.NamespacedName{Name: "tenants.landwaiter.dev"},
			suite.Object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}"))
		if !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the kind is there"))
		}
		return canMake(c, "iris-free")(ctx)
	})
	// Nobody guards the label any more.
	require.NoError(t,
		c.Client.Create(suite.Within(t), suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: iris-free, labels: {landwaiter.dev/tenant: x}}}")))
	require.NoError(t, c.Client.Delete(suite.Within(t), suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: iris-free}}")))

	// Also if somebody forgets to.
	helm.Must(t, "install", "landwaiter", chart, "--set", "guardrails.enabled=true,crds.keep=false")
	isGuarded(t, c)
	helm.Must(t, "uninstall", "landwaiter")
	suite.Eventually(t, canMake(c, "iris-free2"))
}

// Why the order matters, what goes on nevertheless, and the two ways out.
func TestWithoutTheirKindGuardrailsRefuseNamespacesAndNothingThatAControlPlaneNeeds(t *testing.T) {
	c, _, kubectl := onTheirOwn(t)
	kubectl.Must(t, "apply", "--server-side", "-f", chart+"/files/crds")
	kubectl.Must(t, "apply", "--server-side", "-k", suite.Root+"/config/guardrails")
	isGuarded(t, c)
	withoutTheKind(t, c)
	refusesNamespaces := func() {
		t.Helper()
		suite.Eventually(t, func(ctx context.Context) error {
			if err := canMake(c, "free")(ctx); err == nil || !strings.Contains(err.Error(), "landwaiter-namespace-names") {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		})
	}
	// A control plane starts: its own namespaces are there again, and controllers work.
	needed := func() {
		t.Helper()
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			require.True(t, apierrors.IsAlreadyExists(canMake(c, name)(suite.Within(t))), name)
		}
		require.NoError(t, c.Apply(suite.Within(t), suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: x}}"),
			suite.Object("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: default, name: x}}"),
			suite.Object("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: kube-node-lease, name: x}}"),
			suite.Object("%s", pod("default")), binding("default", "x", "view", user("x"))))
	}
	needed()
	c.Kill("kube-apiserver")
	require.NoError(t, c.Restart(suite.Within(t), "kube-apiserver"))
	refusesNamespaces() // until then it goes on with what it knew of the kind
	t.Log(canMake(c, "free")(suite.Within(t)))
	needed()

	// If the kind comes back, nothing else is to be done. The API server looks every 30 s.
	kubectl.Must(t, "apply", "--server-side", "-f", chart+"/files/crds")
	require.NoError(t, cluster.Until(suite.Within(t), canMake(c, "free")))
	isGuarded(t, c)
	withoutTheKind(t, c)
	kubectl.Must(t, "delete", "-k", suite.Root+"/config/guardrails")
	suite.Eventually(t, canMake(c, "free"))
}
