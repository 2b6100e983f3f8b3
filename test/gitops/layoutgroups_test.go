//go:build nightly

package gitops

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// A cluster of a group finds its folder by its name, and a team makes a namespace there. The
// chart of external-secrets is not here, and nothing waits for it. Played are `flux bootstrap`
// and the nodes.
func TestTheLayoutGroupsIsAppliedToTheEnd(t *testing.T) {
	ofPlatforms.enter(t)
	p := platforms(t).follow(t, "iris", func(b page.Block) bool { return layout(b, "groups") })
	green := p.team(t, "iris-green", "iris-green-clusters")

	commit := p.bootstrap(t, "clustergroups/dev")
	p.steps(t, commit, "flux-system", "group", "cluster", "crds", "gatekeeper", "landwaiter", "templates", "policies", "guardrails", "tenants")
	p.applied(t, flux.Kustomization(), "iris-green", "iris-green", green)
	var settings corev1.ConfigMap
	require.NoError(t, p.Client.Get(suite.Within(t), client.ObjectKey{Namespace: "iris-green", Name: "settings"}, &settings))
	require.Equal(t, "iris-dev", settings.Data["cluster"])
	var made corev1.Namespace
	suite.Eventually(t, func(ctx context.Context) error {
		return p.Client.Get(ctx, client.ObjectKey{Name: "iris-green-apps"}, &made)
	})
	require.Equal(t, "iris-green", made.Labels["landwaiter.dev/tenant"])
}
