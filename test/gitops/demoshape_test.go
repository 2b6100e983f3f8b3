//go:build nightly

package gitops

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// From a cluster that has nothing and the demo's own repository to a tenant whose manifests Flux
// applies, with the commands of the page and the real kubectl, source- and kustomize-controller.
// The test plays what `flux install --export` prints, GitHub, and the nodes: no pod runs.
func TestTheDemosRepositoryIsTakenOverAndRuns(t *testing.T) {
	ofPlatforms.enter(t)
	const name = "flux-multitenant-demo"
	p, err := newPlatform(suite.Within(t), suite.ForTest(t))
	require.NoError(t, err)
	github := httptest.NewTLSServer(p.git.Unguarded()) // the demo's repository is public
	t.Cleanup(github.Close)
	runner := follow(t, p.Kubeconfig(), page.Substitution{Page: "https://github.com/example/demo", Test: github.URL + "/demo.git", Why: "GitHub is played"})
	blocks, dir := runner.own(t), runner.Dir
	require.Len(t, blocks, 2)
	trusted := filepath.Join(dir, "github.crt")
	require.NoError(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: github.Certificate().Raw}), 0o600))
	shape(t, dir, name)
	runner.play(t, "flux", "cat "+p.fluxInstall(t, dir)+"\n")

	require.NoError(t, runner.Run(t.Context(), blocks[1]), "take the repository over")
	demo, err := p.git.Create(suite.Within(t), "demo")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(demo.Dir, os.DirFS(filepath.Join(dir, name))))
	manifest := filepath.Join(demo.Dir, "kustomizations/per-tenant")
	require.NoError(t,
		os.WriteFile(filepath.Join(manifest, "secret_map.yaml"),
			[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-secret}\ndata: {own: \"${FROM_SECRET}\", platforms: '${PER_TENANT_SUBST}'}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(manifest, "kustomization.yaml"), []byte("resources: [dummy_deployment.yaml, secret_map.yaml]\n"), 0o600))
	commit, err := demo.Push(suite.Within(t), "the demo")
	require.NoError(t, err)

	require.NoError(t, runner.Run(t.Context(), blocks[0]), "bootstrap")
	require.NoError(t, runner.Run(t.Context(), blocks[0]), "bootstrap again")
	controllers, err := flux.Run(suite.Within(t), p.Cluster,
		flux.Options{Tools: suite.MustTool(t, suite.FluxTools), Dir: dir, Env: []string{"SSL_CERT_FILE=" + trusted}})
	require.NoError(t, err)
	t.Cleanup(controllers.Stop)
	p.landwaiter(t)

	program := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: p.Kubeconfig()}
	program.Must(t, "tenant", "add", "--tenant-namespace", "foo", "--tenant-name", "sometenant", "--set", "reconciler.variablesFrom={secretRef: {name: app}}")
	w := &world{Cluster: p.Cluster, program: program}
	w.apply(t,
		suite.Object(`{apiVersion: v1, kind: Secret, metadata: {namespace: foo, name: app}, stringData: {FROM_SECRET: hidden, PER_TENANT_SUBST: another team}}`))
	require.NoError(t, flux.Reconcile(suite.Within(t), p.Cluster, flux.Kustomization(), "foo", "dummy")) // it may have looked before the Secret was there
	_, err = flux.Await(suite.Within(t), p.Cluster, flux.Kustomization(), "foo", "dummy", commit, metav1.ConditionTrue)
	require.NoError(t, err)
	w.requireSeeds(t, "foo", "sometenant")
	require.Equal(t, map[string]any{"own": "hidden", "platforms": `This tenant name is "sometenant"`},
		w.get(t, "v1", "ConfigMap", "foo", "from-secret").Object["data"], "what the platform says wins")
	ignored, _, _ := unstructured.NestedString(w.get(t, "source.toolkit.fluxcd.io/v1", "GitRepository", "foo", "default").Object, "spec", "ignore")
	require.Equal(t, "ctrl.py\nREADME.md", ignored, "the copy has the ignore-paths")

	w.apply(t,
		suite.Object(
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: foo, name: wrong-namespace}, spec: {interval: 5m, retryInterval: 1s, prune: true,
	  serviceAccountName: foo, path: ./kustomizations/wrong-namespace, sourceRef: {kind: GitRepository, name: default}}}`))
	(&running{world: w}).refused(t, flux.Kustomization(), "foo", "wrong-namespace",
		`cannot patch resource "configmaps" in API group "" in the namespace "default"`)
}

// fluxInstall returns a file with what `flux install --export` prints.
func (p *platform) fluxInstall(t *testing.T, dir string) string {
	t.Helper()
	objects, err := flux.Components(suite.MustTool(t, suite.FluxTools))
	require.NoError(t, err)
	for _, name := range fluxControllers()[:4] {
		objects = append(objects,
			suite.Object("{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: flux-system, name: %s}, spec: {selector: {matchLabels: {app: %[1]s}}, "+
				"template: {metadata: {labels: {app: %[1]s}}, "+
				"spec: {serviceAccountName: %[1]s, containers: [{name: manager, image: ghcr.io/fluxcd/%[1]s:v1, args: [--watch-all-namespaces=true]}]}}}}", name))
	}
	var text strings.Builder
	for _, o := range objects {
		document, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		fmt.Fprintf(&text, "---\n%s", document)
	}
	file := filepath.Join(dir, "installed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// landwaiter applies the CRDs, roles and guardrails of the chart, and checks that the controllers
// run with the arguments that bootstrap printed.
func (p *platform) landwaiter(t *testing.T) {
	t.Helper()
	for _, name := range []string{"source-controller", "kustomize-controller"} {
		deployment := (&world{Cluster: p.Cluster}).get(t, "apps/v1", "Deployment", flux.Namespace, name)
		containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		for _, argument := range flux.Lockdown(name) {
			require.Contains(t, containers[0].(map[string]any)["args"], argument)
		}
	}
	rendered, err := suite.Chart(context.Background(), "landwaiter", "--set", "guardrails.enabled=true")
	require.NoError(t, err)
	notRun := []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy", "Provider"}
	rendered = slices.DeleteFunc(rendered, func(o *unstructured.Unstructured) bool { return slices.Contains(notRun, o.GetKind()) })
	require.NoError(t, p.Apply(suite.Within(t), append(rendered, suite.Namespace(suite.System), suite.Namespace("gatekeeper-system"))...))
}
