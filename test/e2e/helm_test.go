//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helm runs the real helm against the cluster.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(within(t), filepath.Join(os.Getenv("LANDWAITER_CHART_TOOLS"), "helm"), append(args, "--kubeconfig", w.Kubeconfig())...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "helm %v: %s", args, output)
	return string(output)
}

// A second release beside the first, as helm itself installs it; the CRDs belong
// to the first.
func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	const ns, chart = "e2e-helm", "../../charts/landwaiter"
	t.Cleanup(func() {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
	})
	notes := helm(t, "install", "second", chart, "--namespace", ns, "--create-namespace", "--set", "crds.install=false,fullnameOverride=second")
	require.Contains(t, notes, "kubectl label namespace "+ns+" admission.gatekeeper.sh/ignore=landwaiter")
	require.Contains(t, notes, "Exclude "+ns+" in yours instead")
	dry := helm(t, "upgrade", "--install", "other", chart, "--namespace", "landwaiter-system", "--dry-run=server", "--set", "crds.install=false,fullnameOverride=other")
	require.NotContains(t, dry, "does not carry the label", "the namespace of the first has it")
	require.NotContains(t, dry, "The samples of constraints exclude")
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	require.EqualValues(t, 2, *deployment.Spec.Replicas)
	helm(t, "upgrade", "second", chart, "--namespace", ns, "--reuse-values", "--set", "replicas=3,redis.install=true,redis.existingSecret.name=x")
	require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	require.EqualValues(t, 3, *deployment.Spec.Replicas)
	require.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--redis-url=redis://second-redis:6379/0")
	helm(t, "uninstall", "second", "--namespace", ns, "--wait")
	require.Error(t, w.Client.Get(within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	admitted(t, namespace(t), w.signed) // the first is still there
}
