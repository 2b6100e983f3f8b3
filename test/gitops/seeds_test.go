//go:build flux

package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// The scenario of flux-multitenant-demo with the lockdown: the source is in the tenant's
// namespace, the account is named, and the last section ends in a refusal.
func TestTheDemoIsTheSeeds(t *testing.T) {
	r := controllers(t)
	shared := r.repository(t, "demo", demo())
	must(t, "tenant", "add", "--tenant-namespace", "foo", "--tenant-name", "sometenant", "--git-url", shared.URL(), "--git-branch", flux.Branch, "--git-secret", "git")
	const stray = `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: foo, name: wrong-namespace}, spec: {interval: 5m, retryInterval: 1s, prune: true,
	  serviceAccountName: foo, path: ./kustomizations/wrong-namespace, sourceRef: {kind: GitRepository, name: default}}}`
	apply(t, shared.Secret("foo", "git"), of(stray))
	require.NoError(t, flux.Reconcile(within(t), w.Cluster, flux.GitRepository(), "foo", "default"))
	_, err := flux.Await(within(t), w.Cluster, flux.Kustomization(), "foo", "dummy", "", metav1.ConditionTrue)
	require.NoError(t, err)
	requireSeeds(t, "foo", "sometenant")

	refused(t, flux.Kustomization(), "foo", "wrong-namespace", `User "system:serviceaccount:foo:foo" cannot patch resource "configmaps" in API group "" in the namespace "default"`)
	require.Nil(t, get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
}
