//go:build e2e

// Package install follows docs/install.md and docs/upgrade.md as a new cluster admin
// does: it copies one block after the other into a shell, against a real API server with a
// real Gatekeeper, and compares what is printed with what the pages show. What differs from
// a reader's cluster is in two tables: substitutions and standIns.
package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

const root = "../.."

// Credentials of the registry: those that docs/install.md writes.
const user, password = "USER", "PASSWORD"

// world is what a reader has before the first page.
type world struct {
	*cluster.Cluster
	runner   *page.Runner
	registry *fixture.Registry
	node     *node
	chart    string          // of Gatekeeper
	followed map[string]bool // blocks by where they are
}

// newWorld starts an API server without Gatekeeper, a registry that asks for a login, and a
// copy of what a reader has checked out.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir, tools := t.TempDir(), map[string]string{}
	for _, name := range []string{"LANDWAITER_BINARY", "LANDWAITER_CLUSTER_TOOLS", "LANDWAITER_CHART_TOOLS", "LANDWAITER_COSIGN_V2", "LANDWAITER_COSIGN_V3"} {
		tools[name] = os.Getenv(name)
		require.NotEmpty(t, tools[name], "%s is not set; run make e2e", name)
	}
	w := &world{chart: gatekeeperChart(t), followed: map[string]bool{}}
	var err error
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Tools: tools["LANDWAITER_CLUSTER_TOOLS"], Dir: filepath.Join(dir, "cluster"),
		Progress: os.Stderr, Workloads: true, WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	t.Cleanup(func() { keepLogs(t, w.LogDir()) })
	w.registry, err = fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.registry.Close()) })
	for _, name := range []string{"platform/app", "platform/unsigned", "platform/once", "platform/never-signed"} {
		_, err := w.registry.PushImage(t.Context(), name, "v1")
		require.NoError(t, err)
	}
	w.registry.SetIntercept(login)

	checkout, bin, home := filepath.Join(dir, "checkout"), filepath.Join(dir, "bin"), filepath.Join(dir, "home")
	for _, name := range []string{"charts", "config", "docs", "library"} {
		require.NoError(t, os.CopyFS(filepath.Join(checkout, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, folder := range []string{bin, filepath.Join(home, ".docker")} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	for name, path := range map[string]string{
		"kubectl": filepath.Join(tools["LANDWAITER_CLUSTER_TOOLS"], "kubectl"), "helm": filepath.Join(tools["LANDWAITER_CHART_TOOLS"], "helm"),
		"kustomize": filepath.Join(tools["LANDWAITER_CHART_TOOLS"], "kustomize"), "landwaiter": tools["LANDWAITER_BINARY"],
		"cosign": tools["LANDWAITER_COSIGN_V3"], "cosign-v2": tools["LANDWAITER_COSIGN_V2"],
	} {
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	authority := filepath.Join(dir, "registry.crt")
	require.NoError(t, os.WriteFile(authority, w.registry.CertificatePEM(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".docker", "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`,
		w.registry.Host(), base64.StdEncoding.EncodeToString([]byte(user+":"+password))), 0o600))
	w.node = &node{world: w, binary: tools["LANDWAITER_BINARY"], dir: filepath.Join(dir, "node"), authority: authority}
	w.node.start(t)
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "stand-in.yaml"), fmt.Appendf(nil,
		"provider: {url: \"https://localhost:%d\"}\ntls: {extraDNSNames: [localhost]}\n", w.node.port), 0o600))
	w.runner = &page.Runner{Dir: checkout, Progress: testLog{t}, Substitutions: w.substitutions(), Environment: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + w.Kubeconfig(),
		"COSIGN_PASSWORD=asked for", "SSL_CERT_FILE=" + authority,
		// Port 9 is nobody's; Go leaves loopback addresses out of proxying.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9",
	}}
	w.runner.StandIns = w.standIns(t)
	return w
}

// substitutions are what only a reader has.
func (w *world) substitutions() []page.Substitution {
	return []page.Substitution{
		{Page: "helm install landwaiter charts/landwaiter", Test: "helm install landwaiter charts/landwaiter --values stand-in.yaml",
			Why: "Gatekeeper runs outside of the cluster, and reaches Landwaiter at localhost"},
		{Page: "bin/landwaiter lint", Test: "landwaiter lint", Why: "the program is built elsewhere"},
		{Page: "registry.example.com", Test: w.registry.Host(), Why: "a registry with TLS and a login, on 127.0.0.1"},
	}
}

// login refuses requests without the credentials.
func login(response http.ResponseWriter, request *http.Request) bool {
	if name, secret, _ := request.BasicAuth(); name == user && secret == password {
		return false
	}
	response.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
	response.WriteHeader(http.StatusUnauthorized)
	return true
}

// gatekeeperChart returns the folder of Gatekeeper's own chart, which is part of its Go
// module, in the version that the cluster runs.
func gatekeeperChart(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/open-policy-agent/gatekeeper/v3")
	command.Dir = filepath.Join(root, "test/tools/cluster")
	output, err := command.Output()
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(output, &module))
	return filepath.Join(module.Dir, "charts", "gatekeeper")
}

// keepLogs shows the ends of all logs of a test that failed.
func keepLogs(t *testing.T, dir string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	for _, name := range logs {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		t.Logf("%s ends with\n%s", filepath.Base(name), text[max(0, len(text)-4096):])
	}
}

// testLog writes what commands printed into the log of the test.
type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(string(text))
	return len(text), nil
}

// follow runs the blocks of some sections of a page, or of all of them.
func (w *world) follow(t *testing.T, name string, sections ...string) {
	t.Helper()
	blocks, err := page.Read(root, name)
	require.NoError(t, err)
	for _, section := range sections {
		require.True(t, slices.ContainsFunc(blocks, func(b page.Block) bool { return b.Section == section }), "%s has no section %s", name, section)
	}
	blocks = slices.DeleteFunc(blocks, func(b page.Block) bool { return len(sections) > 0 && !slices.Contains(sections, b.Section) })
	require.NoError(t, w.runner.Run(t.Context(), blocks...))
	for _, b := range blocks {
		w.followed[b.String()] = true
	}
}

// complete checks that no block of a page was left out.
func (w *world) complete(t *testing.T, name string) {
	t.Helper()
	blocks, err := page.Read(root, name)
	require.NoError(t, err)
	for _, b := range blocks {
		require.True(t, w.followed[b.String()], "%s was not followed", b)
	}
}

// bash runs a command of the test itself, and returns what it printed.
func (w *world) bash(ctx context.Context, t *testing.T, command string) string {
	t.Helper()
	output, err := w.runner.Bash(ctx, command)
	require.NoError(t, err, "%s: %s", command, output)
	return output
}
