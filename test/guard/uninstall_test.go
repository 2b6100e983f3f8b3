//go:build e2e

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// onTheirOwn starts a cluster for one test.
func onTheirOwn(t *testing.T) *cluster.Cluster {
	t.Helper()
	tools := os.Getenv("LANDWAITER_CLUSTER_TOOLS")
	c, err := cluster.Start(t.Context(), cluster.Options{Tools: tools, Dir: t.TempDir(), Progress: os.Stderr, WithoutGatekeeper: true,
		ManagerArgs: []string{"--use-service-account-credentials=true"}})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	definitions, err := gatekeepers(tools)
	require.NoError(t, err)
	require.NoError(t, c.Apply(within(t), append(definitions, of("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", cluster.GatekeeperNamespace))...))
	return c
}

func command(t *testing.T, c *cluster.Cluster, tools, name string, args ...string) string {
	t.Helper()
	process := exec.CommandContext(within(t), filepath.Join(os.Getenv(tools), name), append(args, "--kubeconfig", c.Kubeconfig())...)
	output, err := process.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, output)
	return string(output)
}

func helm(t *testing.T, c *cluster.Cluster, args ...string) {
	t.Helper()
	command(t, c, "LANDWAITER_CHART_TOOLS", "helm", append(args, "--namespace", system)...)
}

// canMake says whether a namespace can be made; a dry run asks the same rules.
func canMake(c *cluster.Cluster, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.Client.Create(ctx, of("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name), client.DryRunAll)
	}
}

// isGuarded waits until a Tenant's names are guarded, which needs the Tenant.
func isGuarded(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	require.NoError(t, c.Apply(within(t), of("{apiVersion: landwaiter.dev/v1alpha1, kind: Tenant, metadata: {name: iris}, spec: {home: iris, namespacePrefix: iris-}}"),
		of("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: maker}, rules: [{apiGroups: [''], resources: [namespaces], verbs: [create]}]}"),
		binding("", "maker", "maker", user("maker"))))
	maker, err := c.NewClient(c.As("maker"))
	require.NoError(t, err)
	eventually(t, "the name is free", func(ctx context.Context) error {
		err := create("{apiVersion: v1, kind: Namespace, metadata: {name: iris-evil}}")(ctx, maker)
		if refusedBy(err, "namespace-names") {
			return nil
		}
		return fmt.Errorf("it was not refused: %w", err)
	})
}

// withoutTheKind deletes the definition of Tenants.
func withoutTheKind(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	kind := of("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tenants.landwaiter.dev}}")
	require.NoError(t, c.Client.Delete(within(t), kind))
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(kind), kind.DeepCopy()); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the kind is there"))
		}
		return nil
	}))
}

// What docs/upgrade.md says: the guardrails go first.
func TestNamespacesCanBeMadeAfterTheGuardrailsAndTheirKindAreGone(t *testing.T) {
	c := onTheirOwn(t)
	helm(t, c, "install", "landwaiter", root+"/charts/landwaiter", "--create-namespace", "--set", "guardrails.enabled=true,operator.enabled=true,crds.keep=false")
	isGuarded(t, c)
	helm(t, c, "upgrade", "landwaiter", root+"/charts/landwaiter", "--reset-then-reuse-values", "--set", "operator.enabled=false,guardrails.enabled=false")
	helm(t, c, "uninstall", "landwaiter")
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		err := c.Client.Get(ctx, types.NamespacedName{Name: "tenants.landwaiter.dev"}, of("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}"))
		if !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("the kind is there"))
		}
		return canMake(c, "iris-free")(ctx)
	}))
	// Nobody guards the label any more.
	require.NoError(t, c.Client.Create(within(t), of("{apiVersion: v1, kind: Namespace, metadata: {name: iris-free, labels: {landwaiter.dev/tenant: x}}}")))
	require.NoError(t, c.Client.Delete(within(t), of("{apiVersion: v1, kind: Namespace, metadata: {name: iris-free}}")))

	// Also if somebody forgets to.
	helm(t, c, "install", "landwaiter", root+"/charts/landwaiter", "--set", "guardrails.enabled=true,crds.keep=false")
	isGuarded(t, c)
	helm(t, c, "uninstall", "landwaiter")
	eventually(t, "make a namespace", canMake(c, "iris-free2"))
}

// Why the order matters, what goes on nevertheless, and the two ways out.
func TestWithoutTheirKindGuardrailsRefuseNamespacesAndNothingThatAControlPlaneNeeds(t *testing.T) {
	c := onTheirOwn(t)
	command(t, c, "LANDWAITER_CLUSTER_TOOLS", "kubectl", "apply", "--server-side", "-f", root+"/charts/landwaiter/files/crds")
	command(t, c, "LANDWAITER_CLUSTER_TOOLS", "kubectl", "apply", "--server-side", "-k", root+"/config/guardrails")
	isGuarded(t, c)
	withoutTheKind(t, c)
	refusesNamespaces := func() {
		t.Helper()
		eventually(t, "namespaces can be made", func(ctx context.Context) error {
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
			require.True(t, apierrors.IsAlreadyExists(canMake(c, name)(within(t))), name)
		}
		require.NoError(t, c.Apply(within(t), of("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: x}}"),
			of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: default, name: x}}"),
			of("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: kube-node-lease, name: x}}"),
			of("%s", pod("default")), binding("default", "x", "view", user("x"))))
	}
	needed()
	c.Kill("kube-apiserver")
	require.NoError(t, c.Restart(within(t), "kube-apiserver"))
	refusesNamespaces() // until then it goes on with what it knew of the kind
	t.Log(canMake(c, "free")(within(t)))
	needed()

	// If the kind comes back, nothing else is to be done. The API server looks every 30 s.
	command(t, c, "LANDWAITER_CLUSTER_TOOLS", "kubectl", "apply", "--server-side", "-f", root+"/charts/landwaiter/files/crds")
	require.NoError(t, cluster.Until(within(t), canMake(c, "free")))
	isGuarded(t, c)
	withoutTheKind(t, c)
	command(t, c, "LANDWAITER_CLUSTER_TOOLS", "kubectl", "delete", "-k", root+"/config/guardrails")
	eventually(t, "make a namespace", canMake(c, "free"))
}
