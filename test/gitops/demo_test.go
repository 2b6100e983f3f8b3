//go:build e2e || nightly

package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// demo is the repository of flux-multitenant-demo, in our words: an app for every tenant
// that says whose it is, and names a namespace which is not its own.
func demo() map[string]string {
	return map[string]string{
		"kustomizations/per-tenant/kustomization.yaml": "resources: [dummy_deployment.yaml]\n",
		"kustomizations/per-tenant/dummy_deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: dummy, namespace: baz, labels: {app.kubernetes.io/name: dummy}}
spec:
  replicas: 0
  selector: {matchLabels: {app.kubernetes.io/instance: dummy}}
  template:
    metadata: {labels: {app.kubernetes.io/instance: dummy, app.kubernetes.io/name: dummy}}
    spec:
      containers:
      - name: dummy
        image: registry.example.com/alpine:3
        command: [/bin/sh]
        args: [-c, "echo '${PER_TENANT_SUBST}'"]
        env: [{name: SUBST_LITERAL, value: "${SUBST_LITERAL}"}]
`,
		"kustomizations/wrong-namespace/kustomization.yaml": "resources: [configmap.yaml]\n",
		"kustomizations/wrong-namespace/configmap.yaml":     configMap("default", "wrong-namespace"),
	}
}

// requireSeeds checks that the app is in the tenant's namespace and knows whose it is.
func (w *world) requireSeeds(t *testing.T, namespace, tenant string) {
	t.Helper()
	deployment := w.get(t, "apps/v1", "Deployment", namespace, "dummy")
	require.NotNil(t, deployment, "it says baz, and is in %s", namespace)
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, containers, 1)
	container, _ := containers[0].(map[string]any)
	require.Equal(t, []any{"-c", `echo 'This tenant name is "` + tenant + `"'`}, container["args"])
	require.Equal(t, []any{map[string]any{"name": "SUBST_LITERAL", "value": tenant}}, container["env"])
	require.Nil(t, w.get(t, "apps/v1", "Deployment", "baz", "dummy"))
}
