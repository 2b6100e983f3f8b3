//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// From an empty folder and an API server that has nothing to three teams with what
// restricts them, by one push. Gatekeeper and Landwaiter are installed by the real
// helm-controller from charts in a registry; the test plays the nodes.
func TestFromAnEmptyFolder(t *testing.T) {
	p, program := newPlatform(t), suite.MustTool(t, suite.Landwaiter)
	chart, err := suite.GatekeeperChart(suite.Within(t))
	require.NoError(t, err)
	settings := slices.Concat(p.pinned(t, "gatekeeper", chart), p.pinned(t, "landwaiter", absolute(t, "charts/landwaiter")))
	p.run(t, program, append([]string{"platform", "init", ".", "--set", "environments=staging"}, settings...)...)
	teams := map[string]*flux.Repository{}
	for _, name := range []string{"iris-green", "iris-red", "iris-blue"} {
		repository, err := p.git.Create(suite.Within(t), name)
		require.NoError(t, err)
		_, err = repository.Commit(suite.Within(t), "begin", map[string]string{"staging/app.yaml": configMap(name+"-web", "app")})
		require.NoError(t, err)
		p.run(t, program, "platform", "scaffold", ".", name, "--set", "namespaces="+name+"-web", "--set", "namespacePrefix="+name+"-", "--set", "reconciler.source.url="+repository.URL(), "--set", "reconciler.source.secretRef.name=git")
		teams[name] = repository
	}
	require.Contains(t, p.run(t, program, "platform", "check", "."), " 0 findings")

	commit := p.bootstrap(t)
	p.playNodes(t)
	for _, name := range []string{"flux-system", "crds", "gatekeeper", "landwaiter", "templates", "policies", "guardrails"} {
		_, err := flux.Await(suite.Within(t), p.Cluster, flux.Kustomization(), flux.Namespace, name, commit, metav1.ConditionTrue)
		require.NoError(t, err)
		t.Log(name, "is ready")
	}
	for name, repository := range teams {
		suite.Eventually(t, func(ctx context.Context) error {
			return p.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		})
		require.NoError(t, p.Apply(suite.Within(t), repository.Secret(name, "git")))
	}
	_, err = flux.Await(suite.Within(t), p.Cluster, flux.Kustomization(), flux.Namespace, "tenants", commit, metav1.ConditionTrue)
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		suite.Eventually(t, func(ctx context.Context) error { // what the team's repository has
			return p.Client.Get(ctx, client.ObjectKey{Namespace: name + "-web", Name: "app"}, &corev1.ConfigMap{})
		})
	}

	p.requireAsTheTreeSays(t, "infrastructure/crds", "infrastructure/gatekeeper", "infrastructure/landwaiter", "infrastructure/templates", "infrastructure/policies", "infrastructure/guardrails", "tenants/staging")
	p.requireLockdown(t)

	// Red cannot reach green here either.
	stray, err := teams["iris-red"].Commit(suite.Within(t), "stray", map[string]string{"staging/stray.yaml": configMap("iris-green-web", "stray")})
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), p.Cluster, flux.GitRepository(), "iris-red", "iris-red"))
	state, err := flux.Await(suite.Within(t), p.Cluster, flux.Kustomization(), "iris-red", "iris-red", stray, metav1.ConditionFalse)
	require.NoError(t, err)
	require.Contains(t, state.Ready.Message, `User "system:serviceaccount:iris-red:iris-red" cannot patch resource "configmaps" in API group "" in the namespace "iris-green-web"`)
}

// requireAsTheTreeSays checks that applying the tree by hand would change nothing.
func (p *platform) requireAsTheTreeSays(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		for _, object := range p.build(t, folder) {
			what := fmt.Sprint(folder, ": ", object.GetKind(), " ", object.GetNamespace(), "/", object.GetName())
			live := object.DeepCopy()
			require.NoError(t, p.Client.Get(suite.Within(t), client.ObjectKeyFromObject(object), live), what)
			applied := object.DeepCopy()
			require.NoError(t, p.Client.Apply(suite.Within(t), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("by-hand"), client.ForceOwnership, client.DryRunAll), what)
			require.Equal(t, comparable(live), comparable(applied), what)
		}
	}
}

// comparable leaves out what is written at other times than the object is applied.
func comparable(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	unstructured.RemoveNestedField(copied.Object, "status")
	return copied.Object
}

// requireLockdown checks that the tree gives the controllers the arguments with which they
// have run here.
func (p *platform) requireLockdown(t *testing.T) {
	t.Helper()
	for _, name := range fluxControllers() {
		var deployment appsv1.Deployment
		require.NoError(t, p.Client.Get(suite.Within(t), client.ObjectKey{Namespace: flux.Namespace, Name: name}, &deployment))
		args := deployment.Spec.Template.Spec.Containers[0].Args
		want := flux.Lockdown(name)
		if name == "notification-controller" || name == "image-reflector-controller" || name == "image-automation-controller" {
			want = []string{"--no-cross-namespace-refs=true"}
		}
		require.ElementsMatch(t, append([]string{"--watch-all-namespaces=true"}, want...), args, name)
	}
}
