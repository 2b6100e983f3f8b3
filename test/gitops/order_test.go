//go:build nightly

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
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The platform's Kustomizations are in flux-system and name its account, because the
// lockdown's default has no permissions.
const platformKustomization = `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: %s},
  spec: {interval: 10m, retryInterval: 1s, timeout: 2s, prune: true, serviceAccountName: kustomize-controller, path: ./%s, sourceRef: {kind: GitRepository, name: %s}%s}}`

func TestTenantsWaitUntilPoliciesAreReady(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	melon := fresh("melon")
	platform, tenants, policies, waits := melon+"-platform", melon+"-tenants", melon+"-policies", melon+"-waits"
	repository := r.repository(t, platform, map[string]string{
		"policies/policy.yaml": "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata: {name: " + waits +
			"}\nspec: {rules: [{images: [\"registry.example.com/waits/**\"], action: Deny}], defaultAction: Allow}\n",
		"tenants/melon.yaml": r.program.Must(t, "tenant", "export", melon, "--set", "homeNamespace="+melon),
	})
	r.apply(t, repository.Secret(flux.Namespace, "git"), source(flux.Namespace, platform, repository.URL()),
		suite.Object(platformKustomization, tenants, "tenants", platform, ", dependsOn: [{name: "+policies+"}]"),
		suite.Object(platformKustomization, policies, "policies", platform,
			`, wait: true, healthCheckExprs: [{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy,
		  inProgress: "!has(status.conditions)", current: "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"}]`))

	// Nobody has said that the policy is in force.
	r.refused(t, flux.Kustomization(), flux.Namespace, policies, "ClusterVerificationPolicy/"+waits)
	r.refused(t, flux.Kustomization(), flux.Namespace, tenants, "dependency 'flux-system/"+policies+"' is not ready")
	policy := r.get(t, "landwaiter.dev/v1beta1", "ClusterVerificationPolicy", "", waits)
	require.NotNil(t, policy)
	require.Nil(t, r.get(t, "v1", "Namespace", "", melon))

	status, err := json.Marshal(
		map[string]any{
			"status": map[string]any{
				"conditions": []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "InForce", LastTransitionTime: metav1.NewTime(time.Now())}}}})
	require.NoError(t, err)
	require.NoError(t, r.Client.Status().Patch(suite.Within(t), policy, client.RawPatch(types.MergePatchType, status)))
	r.applied(t, flux.Namespace, policies, "")
	r.applied(t, flux.Namespace, tenants, "")
	require.Equal(t, melon, r.get(t, "v1", "Namespace", "", melon).GetLabels()["landwaiter.dev/tenant"])
}
