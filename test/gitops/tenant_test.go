//go:build nightly

package gitops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestATenantsRepositoryStaysInItsNamespaces(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	lime, name := fresh("lime"), fresh("kiwi")
	web := name + "-web"
	r.team(t, lime, "--set", "namespaces="+lime+"-web")
	kiwi := r.team(t, name, "--set", "namespaces="+web)

	kiwi.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap(web, "own"), "b.yaml": configMap(name, "own")})
	require.NotNil(t, r.get(t, "v1", "ConfigMap", web, "own"))
	require.NotNil(t, r.get(t, "v1", "ConfigMap", name, "own"))

	for _, namespace := range []string{"default", lime, lime + "-web", "flux-system", "kube-system"} {
		said := kiwi.push(t, metav1.ConditionFalse, map[string]string{"a.yaml": configMap(web, "own"), "stray.yaml": configMap(namespace, "stray")})
		require.Contains(t, said, "ConfigMap/"+namespace+"/stray")
		require.Contains(t, said,
			fmt.Sprintf(`User "system:serviceaccount:%s:%[1]s" cannot patch resource "configmaps" in API group "" in the namespace %q`, name, namespace))
		require.Nil(t, r.get(t, "v1", "ConfigMap", namespace, "stray"), namespace)
	}

	// What it had applied stays, and it recovers by itself.
	require.NotNil(t, r.get(t, "v1", "ConfigMap", web, "own"))
	kiwi.push(t, metav1.ConditionTrue, map[string]string{"a.yaml": configMap(web, "own")})
	require.Nil(t, r.get(t, "v1", "ConfigMap", name, "own"), "what the repository no longer has is deleted")
}

// The last section of flux-multitenant-demo, and the fallback of the lockdown: where nobody
// is named, Flux acts as the account default, which has no permissions.
func TestWithoutAnAccountNothingIsApplied(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	baz := fresh("baz")
	shared := r.repository(t, baz, map[string]string{
		"kustomizations/wrong-namespace/kustomization.yaml": "resources: [configmap.yaml]\n",
		"kustomizations/wrong-namespace/configmap.yaml":     configMap("default", "wrong-namespace"),
		"kustomizations/right/kustomization.yaml":           "resources: [configmap.yaml]\n",
		"kustomizations/right/configmap.yaml":               configMap(baz, "right"),
	})
	r.apply(t, suite.Namespace(baz), shared.Secret(baz, "git"), source(baz, "default", shared.URL()))
	for _, name := range []string{"wrong-namespace", "right"} {
		r.apply(t,
			suite.Object("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: %s}, spec: {interval: 1m, prune: true, "+
				"path: ./kustomizations/%[2]s, sourceRef: {kind: GitRepository, name: default}}}", baz, name))
		r.refused(t, flux.Kustomization(), baz, name, fmt.Sprintf(`User "system:serviceaccount:%s:default" cannot patch resource "configmaps"`, baz))
	}
	require.Nil(t, r.get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
	require.Nil(t, r.get(t, "v1", "ConfigMap", baz, "right"))
}
