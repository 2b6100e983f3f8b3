//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// platform is what an admin begins with: a cluster that has nothing, a Git server, and a
// registry with charts. The layouts share it, one after the other: the cluster moves to the tree
// of the next, as if it were bootstrapped again.
type platform struct {
	*cluster.Cluster
	git      *flux.GitServer
	registry *fixture.Registry
	dir      string
	// trusted has the CAs of the Git server and of the registry.
	trusted   string
	fluxTools string
	// digests are those of the platform's charts in the registry, by their names.
	digests map[string]string
	// controllers run from the first bootstrap on.
	controllers *flux.Flux
}

// platforms is shared by the layouts.
var platforms = suite.Once(parts, newPlatform)

func newPlatform(ctx context.Context, e *suite.Env) (*platform, error) {
	p := &platform{dir: e.Dir, trusted: e.Path("trusted.crt")}
	var err error
	if p.fluxTools, err = suite.Tool(suite.FluxTools); err != nil {
		return nil, err
	}
	if p.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true, ManagerArgs: []string{"--use-service-account-credentials=true"}}); err != nil {
		return nil, err
	}
	if p.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true}); err != nil {
		return nil, err
	}
	e.OnStop(func() { _ = p.registry.Close() }) // it ends with the process at the latest
	if p.git, err = flux.StartGit(context.Background(), e.Path("git")); err != nil {
		return nil, err
	}
	e.OnStop(p.git.Close)
	e.OnStop(p.playNodes())
	return p, os.WriteFile(p.trusted, slices.Concat(p.registry.CertificatePEM(), p.git.CertificatePEM()), 0o600)
}

// tree is the repository of a platform of one layout, and those of its teams, as the commands of
// the pages on GitOps write them.
type tree struct {
	*platform
	*followed
	name  string
	fleet *flux.Repository
}

// follow runs the blocks of the pages on GitOps that pick accepts, with the test's servers in place of
// the page's, and makes the folder with that name the platform's repository.
func (p *platform) follow(t *testing.T, name string, pick func(page.Block) bool) *tree {
	t.Helper()
	t.Cleanup(func() { p.report(t) })
	p.publishPlatform(t)
	made := &tree{platform: p, name: name, followed: follow(t, p.Kubeconfig(),
		page.Substitution{Page: "https://github.com/example/", Test: p.git.URL() + name + "-",
			Why: "repositories are on the test's Git server, apart for each layout"},
		page.Substitution{Page: "--set githubOrg=example", Test: "--set githubOrg=example --set allowedSources=" + p.git.URL(),
			Why: "the organization's repositories are on the test's Git server"},
		page.Substitution{Page: "landwaiter.digest=sha256:…", Test: "landwaiter.digest=" + p.digests["landwaiter"], Why: "what helm push printed"},
		page.Substitution{Page: "gatekeeper.digest=sha256:…", Test: "gatekeeper.digest=" + p.digests["gatekeeper"], Why: "what helm push printed"},
		page.Substitution{Page: "registry.example.com/", Test: p.registry.Host() + "/", Why: "charts are in the test's registry"},
		page.Substitution{Page: "kubectl create namespace flux-system\n", Test: "kubectl get namespace flux-system || kubectl create namespace flux-system\n",
			Why: "the layouts share a cluster"})}
	made.run(t, pick)
	// The page shows for one layout that charts come from elsewhere. It holds for all.
	made.Substitutions = append(made.Substitutions, page.Substitution{Page: "platform init fleet ", Test: "platform init " + name + " ", Why: "another layout"})
	made.run(t, func(b page.Block) bool {
		return b.Mark == page.Run && strings.Contains(b.Text, ".url=oci://") && strings.Contains(b.Text, "platform init fleet ")
	})
	var err error
	made.fleet, err = p.git.Adopt(suite.Within(t), name, filepath.Join(made.Dir, name))
	require.NoError(t, err)
	return made
}

// team pushes a folder that a command of the page wrote as the team's repository, which is
// public.
func (w *tree) team(t *testing.T, name, folder string) (commit string) {
	t.Helper()
	repository, err := w.git.Publish(suite.Within(t), w.name+"-"+name, filepath.Join(w.Dir, folder))
	require.NoError(t, err)
	head, err := repository.Head(suite.Within(t))
	require.NoError(t, err)
	return head
}

// app pushes application manifests as the team's repository.
func (w *tree) app(t *testing.T, name string, files map[string]string) *flux.Repository {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		file = filepath.Join(dir, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	repository, err := w.git.Publish(suite.Within(t), w.name+"-"+name, dir)
	require.NoError(t, err)
	return repository
}

// chart is an application as a chart, by the paths of its files.
func chart(name string) map[string]string {
	return map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		"values.yaml": "replicaCount: 3\n",
		"templates/app.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {from: ` + name + `}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec: {containers: [{name: app, image: registry.example.com/app:v1}]}
`}
}

// publishApp packages an application and pushes its chart to the registry, once for each version.
func (p *platform) publishApp(t *testing.T, name string, versions ...string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "templates"), 0o750))
	for file, text := range chart(name) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	for _, version := range versions {
		p.publish(t, name, dir, "--version", version)
	}
}

// publish packages a chart and pushes it to the registry. It returns the digest that helm prints.
func (p *platform) publish(t *testing.T, name, folder string, args ...string) string {
	t.Helper()
	helm := suite.Program{Path: suite.MustTool(t, suite.ChartTools, "helm")}
	packages := t.TempDir()
	helm.Must(t, append([]string{"package", folder, "--destination", packages}, args...)...)
	files, err := filepath.Glob(filepath.Join(packages, name+"-*.tgz"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	pushed := helm.Run(t, "", "push", files[0], "oci://"+p.registry.Host()+"/charts", "--ca-file", p.trusted)
	require.Zero(t, pushed.Code, pushed.Stderr)
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(pushed.Stdout + pushed.Stderr)
	require.NotEmpty(t, digest, "helm prints it")
	return digest
}

// publishPlatform pushes the charts that every platform installs.
func (p *platform) publishPlatform(t *testing.T) {
	t.Helper()
	if p.digests != nil {
		return
	}
	gatekeeper, err := suite.GatekeeperChart(suite.Within(t))
	require.NoError(t, err)
	p.digests = map[string]string{"gatekeeper": p.publish(t, "gatekeeper", gatekeeper),
		"landwaiter": p.publish(t, "landwaiter", filepath.Join(suite.Root, "charts/landwaiter"))}
}

// bootstrap plays `flux bootstrap` for a folder of the tree: it writes Flux's own files, pushes,
// starts the controllers with the arguments that the tree gives them, and applies the files once.
func (w *tree) bootstrap(t *testing.T, folder string) (commit string) {
	t.Helper()
	system := filepath.Join(w.fleet.Dir, folder, "flux-system")
	var components strings.Builder
	for _, name := range fluxControllers() {
		fmt.Fprintf(&components, "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: flux-system, name: %s}, spec: {selector: {matchLabels: {app: "+
			"%s}}, template: {metadata: {labels: {app: %s}}, "+
			"spec: {containers: [{name: manager, image: ghcr.io/fluxcd/%s, args: [--watch-all-namespaces=true]}]}}}}\n", name, name, name, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(system, "gotk-components.yaml"), []byte(components.String()), 0o600))
	sync := fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: flux-system}, spec: {interval: "+
		"1m, url: %q, ref: {branch: %s}, secretRef: {name: flux-system}}}\n---\n"+
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: flux-system}, spec: {interval: 10m, path: "+
		"./%s, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}\n", w.fleet.URL(), flux.Branch, folder)
	require.NoError(t, os.WriteFile(filepath.Join(system, "gotk-sync.yaml"), []byte(sync), 0o600))
	commit, err := w.fleet.Push(suite.Within(t), "the platform")
	require.NoError(t, err)

	if w.controllers == nil {
		w.controllers, err = flux.Start(suite.Within(t), w.Cluster,
			flux.Options{Tools: w.fluxTools, Dir: w.dir, Helm: true, Env: []string{"SSL_CERT_FILE=" + w.trusted}})
		require.NoError(t, err)
	}
	w.leave(t)
	objects := w.build(t, path.Join(folder, "flux-system"))
	require.NoError(t, w.Apply(suite.Within(t), append(objects, w.fleet.Secret(flux.Namespace, "flux-system"))...))
	return commit
}

// leave takes the Kustomizations of the tree that the cluster followed before off the cluster, and
// leaves what they applied.
func (p *platform) leave(t *testing.T) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(flux.Kustomization())
	require.NoError(t, p.Client.List(suite.Within(t), list, client.InNamespace(flux.Namespace)))
	for i := range list.Items { // all, before one is deleted: some apply others
		suspended := list.Items[i].DeepCopy()
		require.NoError(t, unstructured.SetNestedField(suspended.Object, true, "spec", "suspend"))
		require.NoError(t, p.Client.Patch(suite.Within(t), suspended, client.MergeFrom(&list.Items[i])))
	}
	for i := range list.Items {
		require.NoError(t, client.IgnoreNotFound(p.Client.Delete(suite.Within(t), &list.Items[i])))
		// Flux would only remove its finalizer once a health check has ended, which may take five minutes. What is
		// suspended deletes nothing.
		require.NoError(t,
			client.IgnoreNotFound(p.Client.Patch(suite.Within(t), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	}
	suite.Eventually(t, func(ctx context.Context) error {
		if err := p.Client.List(ctx, list, client.InNamespace(flux.Namespace)); err != nil || len(list.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d Kustomizations are still there", len(list.Items))
	})
}

// steps waits until the platform's Kustomizations have applied a commit, in their order.
func (p *platform) steps(t *testing.T, commit string, names ...string) {
	t.Helper()
	for _, name := range names {
		p.applied(t, flux.Kustomization(), flux.Namespace, name, commit)
		t.Log(name, "is ready")
	}
}

// applied waits until an object of Flux is ready, at a commit if one is given.
func (p *platform) applied(t *testing.T, kind schema.GroupVersionKind, namespace, name, commit string) {
	t.Helper()
	_, err := flux.Await(suite.Within(t), p.Cluster, kind, namespace, name, commit, metav1.ConditionTrue)
	require.NoError(t, err)
}

// requireReplicas checks that a chart made its Deployment, with which values.
func (p *platform) requireReplicas(t *testing.T, namespace, name, chart string, replicas int64) {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	require.NoError(t, p.Client.Get(suite.Within(t), client.ObjectKey{Namespace: namespace, Name: name}, made))
	require.Equal(t, chart, made.GetLabels()["from"])
	got, _, err := unstructured.NestedInt64(made.Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, replicas, got)
}

// report says what Flux says if the test has failed.
func (p *platform) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, kind := range []schema.GroupVersionKind{flux.HelmRelease(), flux.Kustomization(), flux.GitRepository()} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.Client.List(context.Background(), list); err != nil {
			t.Log(err)
		}
		for i := range list.Items {
			conditions, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
			t.Log(kind.Kind, list.Items[i].GetNamespace(), list.Items[i].GetName(), conditions, err)
		}
	}
}

func fluxControllers() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller", "image-reflector-controller",
		"image-automation-controller"}
}

// build returns what kustomize makes of a folder of the platform's repository.
func (w *tree) build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	kustomize := suite.Program{Path: suite.MustTool(t, suite.ChartTools, "kustomize"), Dir: w.fleet.Dir}
	objects, err := cluster.Decode([]byte(kustomize.Must(t, "build", folder)))
	require.NoError(t, err)
	require.NotEmpty(t, objects, folder)
	return objects
}
