//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// From an empty folder and an API server that has nothing to three teams with what
// restricts them, by one push, in the layout flux. Gatekeeper, Landwaiter and the chart of a
// team are installed by the real helm-controller, the latter as the team's account. Played are
// `flux bootstrap` and the nodes.
func TestFromAnEmptyFolder(t *testing.T) {
	ofPlatforms.enter(t)
	p := platforms(t).follow(t, "fleet", func(b page.Block) bool {
		return b.Page == "docs/tutorials/platform-in-git.md"
	})
	p.publishApp(t, "web", "1.0.0", "1.1.0-rc.1")
	green := p.team(t, "iris-green", "iris-green")
	red := p.app(t, "iris-red", map[string]string{"staging/app.yaml": configMap("iris-red-web", "app")})
	p.app(t, "iris-blue", map[string]string{"staging/app.yaml": configMap("iris-blue-web", "app")})

	commit := p.bootstrap(t, "clusters/staging")
	p.steps(t, commit, "flux-system", "crds", "gatekeeper", "landwaiter", "templates", "policies", "guardrails", "tenants")
	p.applied(t, flux.Kustomization(), "iris-green", "iris-green", green)
	p.applied(t, flux.HelmRelease(), "iris-green", "web", "")
	p.requireReplicas(t, "iris-green-web", "iris-green-web-web", "web", 1)
	p.fetched(t, "iris-green", "web", "1.1.0-rc.1@") // staging takes pre-releases
	for _, o := range p.build(t, "../iris-green/production") {
		if o.GetKind() == "OCIRepository" {
			o.SetName("production")
			require.NoError(t, p.Apply(suite.Within(t), o))
		}
	}
	p.fetched(t, "iris-green", "production", "1.0.0@")
	for _, name := range []string{"iris-red", "iris-blue"} {
		suite.Eventually(t, func(ctx context.Context) error { // what the team's repository has
			return p.Client.Get(ctx, client.ObjectKey{Namespace: name + "-web", Name: "app"}, &corev1.ConfigMap{})
		})
	}

	p.requireAsTheTreeSays(t, "infrastructure/crds", "infrastructure/gatekeeper", "infrastructure/landwaiter", "infrastructure/templates",
		"infrastructure/policies", "infrastructure/guardrails", "tenants/staging")
	p.requireLockdown(t)

	// Red cannot reach green here either.
	stray, err := red.Commit(suite.Within(t), "stray", map[string]string{"staging/stray.yaml": configMap("iris-green-web", "stray")})
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), p.Cluster, flux.GitRepository(), "iris-red", "iris-red"))
	state, err := flux.Await(suite.Within(t), p.Cluster, flux.Kustomization(), "iris-red", "iris-red", stray, metav1.ConditionFalse)
	require.NoError(t, err)
	require.Contains(t, state.Ready.Message, `User "system:serviceaccount:iris-red:iris-red" cannot patch resource "configmaps" in API group "" in the `+
		`namespace "iris-green-web"`)
}

// fetched waits until a source in the registry has a revision that begins like that.
func (p *tree) fetched(t *testing.T, namespace, name, revision string) {
	t.Helper()
	source := suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {namespace: %s, name: %s}}", namespace, name)
	suite.Eventually(t, func(ctx context.Context) error {
		if err := p.Client.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return err
		}
		if has, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision"); !strings.HasPrefix(has, revision) {
			return fmt.Errorf("%s/%s has revision %q, not %s", namespace, name, has, revision)
		}
		return nil
	})
}

// requireAsTheTreeSays checks that applying the tree by hand would change nothing.
func (p *tree) requireAsTheTreeSays(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		for _, object := range p.build(t, folder) {
			what := fmt.Sprint(folder, ": ", object.GetKind(), " ", object.GetNamespace(), "/", object.GetName())
			live := object.DeepCopy()
			require.NoError(t, p.Client.Get(suite.Within(t), client.ObjectKeyFromObject(object), live), what)
			applied := object.DeepCopy()
			require.NoError(t,
				p.Client.Apply(suite.Within(t), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("by-hand"), client.ForceOwnership, client.DryRunAll),
				what)
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
