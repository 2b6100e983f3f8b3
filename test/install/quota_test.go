//go:build e2e

package install

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// limited makes an API server refuse pods of a critical priority where no ResourceQuota allows
// them, as GKE's does outside of kube-system.
const limited = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-cluster-critical, system-node-critical]}
`

func TestPodsAreMadeWhereACriticalPriorityNeedsAQuota(t *testing.T) {
	e := suite.ForTest(t)
	file := e.Path("admission.yaml")
	require.NoError(t, os.WriteFile(file, []byte(limited), 0o600))
	c, err := e.Cluster(t.Context(), cluster.Options{Workloads: true, WithoutGatekeeper: true, ServerArgs: []string{"--admission-control-config-file=" + file}})
	require.NoError(t, err)
	require.NoError(t, c.Apply(suite.Within(t), suite.Namespace(suite.System), suite.Namespace("gatekeeper-system")))
	h := helm(t)
	h.Kubeconfig = c.Kubeconfig()
	h.Must(t, "install", "landwaiter", chart, "--namespace", suite.System, "--set", "guardrails.enabled=true,operator.enabled=true")
	suite.Eventually(t, func(ctx context.Context) error {
		var pods corev1.PodList
		var sets appsv1.ReplicaSetList
		if err := c.Client.List(ctx, &pods, client.InNamespace(suite.System)); err != nil {
			return err
		}
		if err := c.Client.List(ctx, &sets, client.InNamespace(suite.System)); err != nil {
			return err
		}
		if len(pods.Items) == 3 { // two of the server, one of the operator
			return nil
		}
		var refusals []string
		for _, set := range sets.Items {
			for _, condition := range set.Status.Conditions {
				refusals = append(refusals, condition.Message)
			}
		}
		return fmt.Errorf("%d of 3 pods: %v", len(pods.Items), refusals)
	})
}
