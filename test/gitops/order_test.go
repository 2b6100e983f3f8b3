//go:build flux

package gitops

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// The platform's Kustomizations are in flux-system and name its account, because the
// lockdown's default has no rights.
const platformKustomization = `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: %s},
  spec: {interval: 10m, retryInterval: 1s, timeout: 2s, prune: true, serviceAccountName: kustomize-controller, path: ./%s, sourceRef: {kind: GitRepository, name: %s}%s}}`

func TestTenantsWaitUntilPoliciesAreReady(t *testing.T) {
	r := controllers(t)
	platform := r.repository(t, "platform", map[string]string{
		"policies/policy.yaml": "apiVersion: landwaiter.dev/v1alpha1\nkind: ClusterVerificationPolicy\nmetadata: {name: waits}\nspec: {rules: [{images: [\"registry.example.com/waits/**\"], action: Deny}], defaultAction: Allow}\n",
		"tenants/melon.yaml":   must(t, "tenant", "export", "melon"),
	})
	apply(t, platform.Secret(flux.Namespace, "git"), source(flux.Namespace, "platform", platform.URL()),
		of(platformKustomization, "tenants", "tenants", "platform", ", dependsOn: [{name: policies}]"),
		of(platformKustomization, "policies", "policies", "platform", `, wait: true, healthCheckExprs: [{apiVersion: landwaiter.dev/v1alpha1, kind: ClusterVerificationPolicy,
		  inProgress: "!has(status.conditions)", current: "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"}]`))

	// Nobody has said that the policy is in force.
	refused(t, flux.Kustomization(), flux.Namespace, "policies", "ClusterVerificationPolicy/waits")
	refused(t, flux.Kustomization(), flux.Namespace, "tenants", "dependency 'flux-system/policies' is not ready")
	require.NotNil(t, get(t, "landwaiter.dev/v1alpha1", "ClusterVerificationPolicy", "", "waits"))
	require.Nil(t, get(t, "v1", "Namespace", "", "melon"))

	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "InForce", LastTransitionTime: metav1.NewTime(time.Now())}}}})
	require.NoError(t, err)
	policy := get(t, "landwaiter.dev/v1alpha1", "ClusterVerificationPolicy", "", "waits")
	require.NoError(t, w.Client.Status().Patch(within(t), policy, client.RawPatch(types.MergePatchType, status)))
	for _, name := range []string{"policies", "tenants"} {
		_, err = flux.Await(within(t), w.Cluster, flux.Kustomization(), flux.Namespace, name, "", metav1.ConditionTrue)
		require.NoError(t, err)
	}
	require.NotNil(t, get(t, "v1", "Namespace", "", "melon"))
	require.Equal(t, "melon", get(t, "v1", "Namespace", "", "melon").GetLabels()["landwaiter.dev/tenant"])
}
