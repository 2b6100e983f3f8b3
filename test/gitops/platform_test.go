//go:build flux

package gitops

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// platform is what an admin begins with: a cluster that has nothing, a Git server, and a
// registry with the charts of Gatekeeper and Landwaiter.
type platform struct {
	*cluster.Cluster
	git      *flux.GitServer
	fleet    *flux.Repository
	registry *fixture.Registry
	charts   string // the registry's authority
	dir      string
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{dir: t.TempDir()}
	tools, err := tool("LANDWAITER_CLUSTER_TOOLS")
	require.NoError(t, err)
	p.Cluster, err = cluster.Start(within(t), cluster.Options{Tools: tools, Dir: p.dir, Progress: os.Stderr, WithoutGatekeeper: true, ManagerArgs: []string{"--use-service-account-credentials=true"}})
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	t.Cleanup(func() { p.keepLogs(t) })
	p.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.registry.Close() }) // it ends with the process at the latest
	p.charts = filepath.Join(p.dir, "registry.crt")
	require.NoError(t, os.WriteFile(p.charts, p.registry.CertificatePEM(), 0o600))
	p.git, err = flux.StartGit(context.Background(), filepath.Join(p.dir, "git"))
	require.NoError(t, err)
	t.Cleanup(p.git.Close)
	p.fleet, err = p.git.Create(within(t), "fleet")
	require.NoError(t, err)
	return p
}

// keepLogs says what Flux says if the test has failed, and copies the logs to those of the
// other tests.
func (p *platform) keepLogs(t *testing.T) {
	if t.Failed() {
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
		if err := os.CopyFS(filepath.Join(w.LogDir(), t.Name()), os.DirFS(p.LogDir())); err != nil {
			t.Log(err)
		}
	}
}

// run runs a command with the admin's kubeconfig in the folder of the platform's repository.
func (p *platform) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(within(t), name, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig())
	command.Dir, command.Stdout, command.Stderr = p.fleet.Dir, &stdout, &stderr
	require.NoError(t, command.Run(), "%s %v: %s%s", name, args, &stdout, &stderr)
	return stdout.String()
}

// publish packages a chart and pushes it to the registry.
func (p *platform) publish(t *testing.T, name, folder string) (url string) {
	t.Helper()
	helm := filepath.Join(w.charts, "helm")
	packages := filepath.Join(p.dir, "packages", name)
	p.run(t, helm, "package", folder, "--destination", packages)
	files, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	p.run(t, helm, "push", files[0], "oci://"+p.registry.Host()+"/charts", "--ca-file", p.charts)
	return "oci://" + p.registry.Host() + "/charts/" + name
}

// gatekeeperChart is the folder of Gatekeeper's own chart, which its Go module has.
func gatekeeperChart(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(within(t), "go", "-C", filepath.Join(root, "test/tools/cluster"), "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/gatekeeper/v3").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(folder)), "charts", "gatekeeper")
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
	commit, err := p.fleet.Push(within(t), "the platform")
	require.NoError(t, err)

	tools, err := tool("LANDWAITER_FLUX_TOOLS")
	require.NoError(t, err)
	controllers, err := flux.Start(within(t), p.Cluster, flux.Options{Tools: tools, Dir: p.dir, Helm: true, Env: []string{"SSL_CERT_FILE=" + p.charts}})
	require.NoError(t, err)
	t.Cleanup(controllers.Stop)
	objects := p.build(t, "clusters/staging/flux-system")
	require.NoError(t, p.Apply(within(t), append(objects, p.fleet.Secret(flux.Namespace, "flux-system"))...))
	return commit
}

func fluxControllers() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller", "image-reflector-controller", "image-automation-controller"}
}

// build returns what kustomize makes of a folder of the platform's repository.
func (p *platform) build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.Decode([]byte(p.run(t, filepath.Join(w.charts, "kustomize"), "build", folder)))
	require.NoError(t, err)
	require.NotEmpty(t, objects, folder)
	return objects
}

// long bounds steps that wait for charts to be installed.
func long(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// absolute returns the path of a folder of this repository.
func absolute(t *testing.T, folder string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, folder))
	require.NoError(t, err)
	return path
}
