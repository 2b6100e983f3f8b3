//go:build e2e

package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/suite"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A second release beside the first, as helm itself installs it; the CRDs belong
// to the first. Only without roles does the chart not notice the first one.
func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	w := installed(t)
	chart := suite.Root + "/charts/landwaiter"
	ns, helm := fmt.Sprintf("e2e-helm-%d", w.names.Add(1)), suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm"), Kubeconfig: w.Kubeconfig()}
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(context.Background(), suite.Namespace(ns))))
	})
	notes := helm.Must(t, "install", "second", chart, "--namespace", ns, "--create-namespace", "--set",
		"rbac.create=false,crds.install=false,fullnameOverride=second")
	require.Contains(t, notes, "kubectl label namespace "+ns+" admission.gatekeeper.sh/ignore=landwaiter")
	require.Contains(t, notes, "Exclude "+ns+" in yours instead")
	dry := helm.Must(t, "upgrade", "--install", "other", chart, "--namespace", "landwaiter-system", "--dry-run=server", "--set",
		"rbac.create=false,crds.install=false,fullnameOverride=other")
	require.NotContains(t, dry, "does not carry the label", "the namespace of the first has it")
	require.NotContains(t, dry, "The samples of constraints exclude")
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	require.EqualValues(t, 2, *deployment.Spec.Replicas)
	helm.Must(t, "upgrade", "second", chart, "--namespace", ns, "--reuse-values", "--set", "replicas=3,redis.install=true,redis.existingSecret.name=x")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	require.EqualValues(t, 3, *deployment.Spec.Replicas)
	require.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--redis-url=redis://second-redis:6379/0")
	helm.Must(t, "uninstall", "second", "--namespace", ns, "--wait")
	require.Error(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: ns, Name: "second"}, deployment))
	w.admitted(t, w.namespace(t), w.signed) // the first is still there
}
