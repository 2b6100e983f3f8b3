//go:build flux

package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
)

func TestATenantsRepositoryStaysInItsNamespaces(t *testing.T) {
	r := controllers(t)
	r.team(t, "lime", "--namespace", "lime-web")
	kiwi := r.team(t, "kiwi", "--namespace", "kiwi-web")

	kiwi.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap("kiwi-web", "own"), "b.yaml": configMap("kiwi", "own")})
	require.NotNil(t, get(t, "v1", "ConfigMap", "kiwi-web", "own"))
	require.NotNil(t, get(t, "v1", "ConfigMap", "kiwi", "own"))

	for _, namespace := range []string{"default", "lime", "lime-web", "flux-system", "kube-system"} {
		said := kiwi.push(t, metav1.ConditionFalse, map[string]string{"a.yaml": configMap("kiwi-web", "own"), "stray.yaml": configMap(namespace, "stray")})
		require.Contains(t, said, "ConfigMap/"+namespace+"/stray")
		require.Contains(t, said, `User "system:serviceaccount:kiwi:kiwi" cannot patch resource "configmaps" in API group "" in the namespace "`+namespace+`"`)
		require.Nil(t, get(t, "v1", "ConfigMap", namespace, "stray"), namespace)
	}

	// What it had applied stays, and it recovers by itself.
	require.NotNil(t, get(t, "v1", "ConfigMap", "kiwi-web", "own"))
	kiwi.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap("kiwi-web", "own")})
	require.Nil(t, get(t, "v1", "ConfigMap", "kiwi", "own"), "what the repository no longer has is deleted")
}

// The last section of flux-multitenant-demo, and the fallback of the lockdown: where nobody
// is named, Flux acts as the account default, which has no rights.
func TestWithoutAnAccountNothingIsApplied(t *testing.T) {
	r := controllers(t)
	shared := r.repository(t, "shared", map[string]string{
		"kustomizations/wrong-namespace/kustomization.yaml": "resources: [configmap.yaml]\n",
		"kustomizations/wrong-namespace/configmap.yaml":     configMap("default", "wrong-namespace"),
		"kustomizations/right/kustomization.yaml":           "resources: [configmap.yaml]\n",
		"kustomizations/right/configmap.yaml":               configMap("baz", "right"),
	})
	apply(t, of("{apiVersion: v1, kind: Namespace, metadata: {name: baz}}"), shared.Secret("baz", "git"), source("baz", "default", shared.URL()))
	for _, name := range []string{"wrong-namespace", "right"} {
		apply(t, of("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: baz, name: %s}, spec: {interval: 1m, prune: true, path: ./kustomizations/%s, sourceRef: {kind: GitRepository, name: default}}}", name, name))
		refused(t, flux.Kustomization(), "baz", name, `User "system:serviceaccount:baz:default" cannot patch resource "configmaps"`)
	}
	require.Nil(t, get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
	require.Nil(t, get(t, "v1", "ConfigMap", "baz", "right"))
}
