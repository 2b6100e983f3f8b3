//go:build e2e || nightly

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const quickStart = "docs/start/quickstart.md"

// followQuickStart follows the quick start in a cluster that has Gatekeeper with the defaults
// of its chart: it fails open and keeps answers for three minutes, and nothing of it changes.
func (r *reader) followQuickStart(t *testing.T) {
	t.Helper()
	r.registry.SetIntercept(nil) // the page asks for a registry without a login
	for name, tag := range map[string]string{"landwaiter/landwaiter": "dev", "library/nginx": "1.29"} {
		_, err := r.registry.PushImage(t.Context(), name, tag)
		require.NoError(t, err)
	}
	hub := r.registry.Host() + "/library/nginx"
	r.runner.Substitutions = append([]page.Substitution{
		{Page: "nginx:1.29", Test: hub + ":1.29", Why: "Docker Hub cannot be reached"},
		{Page: "docker.io/library/nginx", Test: hub, Why: "Docker Hub cannot be reached"},
	}, r.runner.Substitutions...)
	r.hasGatekeeper(t)
	before := r.gatekeeperObjects(t)

	r.follow(t, quickStart, "", "1. Install Landwaiter")
	// on a private address
	r.bash(t, "kubectl apply -f - <<EOF\n{apiVersion: landwaiter.dev/v1beta1, kind: ClusterStore, metadata: {name: loopback}, spec: {registries: "+
		"[registry.example.com]}}\nEOF")
	r.follow(t, quickStart, "2. Require a signature", "3. Make Gatekeeper ask")
	suite.Eventually(t, func(ctx context.Context) error { // the page says that it takes seconds
		output, err := r.runner.Bash(ctx, "kubectl run early --namespace demo --image nginx:1.29 --dry-run=server")
		if err == nil || !strings.Contains(output, "[demo]") || strings.Contains(output, "could not be decided") {
			return fmt.Errorf("the constraint does not deny yet: %s", output)
		}
		return nil
	})
	r.follow(t, quickStart, "4. Try it")
	r.bash(t, "kubectl run elsewhere --namespace default --image nginx:1.29 --dry-run=server") // no other namespace changes
	require.Equal(t, before, r.gatekeeperObjects(t), "Gatekeeper's settings are as they were")

	r.follow(t, quickStart, "Clean up")
	r.complete(t, quickStart)
	suite.Eventually(t, func(context.Context) error { // Kubernetes deletes Providers after their roles
		left := r.bash(t,
			"kubectl get namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,constrainttemplates,providers.externaldata.gatekeeper.sh -o name")
		for _, name := range []string{"landwaiter", "verifiedimages", "namespace/demo"} {
			if strings.Contains(left, name) {
				return errors.New("left: " + left)
			}
		}
		return nil
	})
}

// hasGatekeeper installs Gatekeeper's chart with its own defaults.
func (r *reader) hasGatekeeper(t *testing.T) {
	t.Helper()
	chart, err := suite.GatekeeperChart(t.Context())
	require.NoError(t, err)
	r.bash(t, "helm install gatekeeper "+chart+" --no-hooks --namespace gatekeeper-system --create-namespace\n"+
		"kubectl label namespace gatekeeper-system admission.gatekeeper.sh/ignore=no-self-managing")
	require.NoError(t, r.AdoptGatekeeper(t.Context()))
}

// gatekeeperObjects are the settings of Gatekeeper that an installation could change.
func (r *reader) gatekeeperObjects(t *testing.T) string {
	t.Helper()
	return r.bash(t,
		`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations --selector gatekeeper.sh/system=yes -o jsonpath='{range .items[*]}{.webhooks[*].failurePolicy}{" "}{.webhooks[*].timeoutSeconds}{"\n"}{end}'
kubectl get deployments --namespace gatekeeper-system -o jsonpath='{range .items[*]}{.metadata.generation}{" "}{.spec.template.spec.containers[0].args}{"\n"}{end}'
kubectl get namespaces gatekeeper-system kube-system default -o jsonpath='{range .items[*]}{.metadata.labels}{"\n"}{end}'`)
}
