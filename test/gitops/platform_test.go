//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// platform is what an admin begins with: a cluster that has nothing, a Git server, and a
// registry with the charts of Gatekeeper and Landwaiter.
type platform struct {
	*cluster.Cluster
	git      *flux.GitServer
	fleet    *flux.Repository
	registry *fixture.Registry
	charts   string // the registry's CA
	dir      string
	// version and digest are those of the chart that was published last.
	version, digest string
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	e := suite.ForTest(t)
	p := &platform{dir: e.Dir}
	var err error
	p.Cluster, err = e.Cluster(suite.Within(t), cluster.Options{WithoutGatekeeper: true, ManagerArgs: []string{"--use-service-account-credentials=true"}})
	require.NoError(t, err)
	t.Cleanup(func() { p.report(t) })
	p.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.registry.Close() }) // it ends with the process at the latest
	p.charts = e.Path("registry.crt")
	require.NoError(t, os.WriteFile(p.charts, p.registry.CertificatePEM(), 0o600))
	p.git, err = flux.StartGit(context.Background(), e.Path("git"))
	require.NoError(t, err)
	t.Cleanup(p.git.Close)
	p.fleet, err = p.git.Create(suite.Within(t), "fleet")
	require.NoError(t, err)
	return p
}

// report says what Flux says if the test has failed.
func (p *platform) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, kind := range []schema.GroupVersionKind{flux.HelmRelease(), flux.Kustomization()} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.Client.List(context.Background(), list); err != nil {
			t.Log(err)
		}
		for i := range list.Items {
			conditions, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
			t.Log(kind.Kind, list.Items[i].GetName(), conditions, err)
		}
	}
}

// run runs a command with the admin's kubeconfig in the folder of the platform's repository.
func (p *platform) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return suite.Program{Path: name, Kubeconfig: p.Kubeconfig(), Dir: p.fleet.Dir}.Must(t, args...)
}

// publish packages a chart and pushes it to the registry.
func (p *platform) publish(t *testing.T, name, folder string) (url string) {
	t.Helper()
	helm := suite.MustTool(t, suite.ChartTools, "helm")
	packages := filepath.Join(p.dir, "packages", name)
	p.run(t, helm, "package", folder, "--destination", packages)
	files, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	pushed := suite.Program{Path: helm, Dir: p.fleet.Dir}.Run(t, "", "push", files[0], "oci://"+p.registry.Host()+"/charts", "--ca-file", p.charts)
	require.Zero(t, pushed.Code, pushed.Stderr)
	p.digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(pushed.Stdout + pushed.Stderr)
	require.NotEmpty(t, p.digest, "helm prints it")
	p.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(files[0]), name+"-"), ".tgz")
	return "oci://" + p.registry.Host() + "/charts/" + name
}

// pinned publishes a chart, and returns the settings of a tree that installs it and nothing else.
func (p *platform) pinned(t *testing.T, name, folder string) []string {
	t.Helper()
	url := p.publish(t, name, folder)
	return []string{"--set", name + ".url=" + url, "--set", name + ".version=" + p.version, "--set", name + ".digest=" + p.digest}
}

// bootstrap does what `flux bootstrap` does: it writes Flux's own files, pushes, starts the
// controllers with the arguments that the tree gives them, and applies the files once.
func (p *platform) bootstrap(t *testing.T) (commit string) {
	t.Helper()
	system := filepath.Join(p.fleet.Dir, "clusters/staging/flux-system")
	var components strings.Builder
	for _, name := range fluxControllers() {
		fmt.Fprintf(&components, "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: flux-system, name: %s}, spec: {selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, "+
			"spec: {containers: [{name: manager, image: ghcr.io/fluxcd/%s, args: [--watch-all-namespaces=true]}]}}}}\n", name, name, name, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(system, "gotk-components.yaml"), []byte(components.String()), 0o600))
	sync := fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: flux-system}, spec: {interval: 1m, url: %q, ref: {branch: %s}, secretRef: {name: flux-system}}}\n---\n"+
		"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: flux-system}, spec: {interval: 10m, path: ./clusters/staging, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}}\n", p.fleet.URL(), flux.Branch)
	require.NoError(t, os.WriteFile(filepath.Join(system, "gotk-sync.yaml"), []byte(sync), 0o600))
	commit, err := p.fleet.Push(suite.Within(t), "the platform")
	require.NoError(t, err)

	controllers, err := flux.Start(suite.Within(t), p.Cluster, flux.Options{Tools: suite.MustTool(t, suite.FluxTools), Dir: p.dir, Helm: true, Env: []string{"SSL_CERT_FILE=" + p.charts}})
	require.NoError(t, err)
	t.Cleanup(controllers.Stop)
	objects := p.build(t, "clusters/staging/flux-system")
	require.NoError(t, p.Apply(suite.Within(t), append(objects, p.fleet.Secret(flux.Namespace, "flux-system"))...))
	return commit
}

func fluxControllers() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller", "image-reflector-controller", "image-automation-controller"}
}

// build returns what kustomize makes of a folder of the platform's repository.
func (p *platform) build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Decode([]byte(p.run(t, suite.MustTool(t, suite.ChartTools, "kustomize"), "build", folder)))
	require.NoError(t, err)
	require.NotEmpty(t, objects, folder)
	return objects
}

// absolute returns the path of a folder of this repository.
func absolute(t *testing.T, folder string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(suite.Root, folder))
	require.NoError(t, err)
	return path
}
