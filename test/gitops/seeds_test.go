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
	must(t, "tenant", "add", "--tenant-namespace", "foo", "--tenant-name", "sometenant", "--git-url", shared.URL(), "--git-secret", "git", "--path", "./none")
	const dummy = `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: foo, name: %s}, spec: {interval: 5m, retryInterval: 1s, prune: true,
	  serviceAccountName: foo, path: ./kustomizations/%s, sourceRef: {kind: GitRepository, name: default}%s}}`
	apply(t, shared.Secret("foo", "git"), source("foo", "default", shared.URL()), demoVariables("foo", "sometenant"),
		of(dummy, "dummy", "per-tenant", ", targetNamespace: foo, postBuild: {substitute: {SUBST_LITERAL: sometenant}, substituteFrom: [{kind: ConfigMap, name: tenant-vars}]}"),
		of(dummy, "wrong-namespace", "wrong-namespace", ""))
	_, err := flux.Await(within(t), w.Cluster, flux.Kustomization(), "foo", "dummy", "", metav1.ConditionTrue)
	require.NoError(t, err)
	requireSeeds(t, "foo", "sometenant")

	refused(t, flux.Kustomization(), "foo", "wrong-namespace", `User "system:serviceaccount:foo:foo" cannot patch resource "configmaps" in API group "" in the namespace "default"`)
	require.Nil(t, get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
}
