//go:build nightly && !e2e

package evidence

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// server is a registry that runs as a process.
type server struct {
	name    string // with its version
	command func(t *testing.T, folder, port string) *exec.Cmd
}

// configured is a command of distribution's registry.
func configured(program string) func(t *testing.T, folder, port string) *exec.Cmd {
	return func(t *testing.T, folder, port string) *exec.Cmd {
		t.Helper()
		config := filepath.Join(folder, "config.yml")
		text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: 127.0.0.1:%s}\n", folder, port)
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		return exec.CommandContext(t.Context(), program, "serve", config)
	}
}

// required returns the version of a module that the registries' go.mod requires.
func required(t *testing.T, module string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "tools", "registries", "go.mod"))
	require.NoError(t, err)
	found := regexp.MustCompile(regexp.QuoteMeta(module) + ` v(\S+)`).FindSubmatch(text)
	require.NotNil(t, found, module)
	return string(found[1])
}

// run starts the server and returns a registry that passes requests to it.
func (s server) run(t *testing.T) *fixture.Registry {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	cmd := s.command(t, t.TempDir(), port)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/v2/", nil)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, suite.Patience, 10*time.Millisecond)
	return start(t, fixture.RegistryOptions{Upstream: "127.0.0.1:" + port})
}

// byTools are the ways in which the tools keep evidence.
func byTools(t *testing.T) []way {
	t.Helper()
	of := func(name string, f format, verifier v1beta1.VerifierSpec, act func(*testing.T, format, tool, keyPair, fixture.Image)) way {
		command := f.command(t)
		key := command.generate(t)
		return way{name, key.public, verifier, func(t *testing.T, _ *fixture.Registry, img fixture.Image) { act(t, f, command, key, img) }}
	}
	sign := func(t *testing.T, f format, c tool, key keyPair, img fixture.Image) { f.sign(t, c, key, img) }
	attest := func(t *testing.T, f format, c tool, key keyPair, img fixture.Image) { f.attest(t, c, key, img) }
	kind := predicates["own type"].kind
	return []way{
		of("cosign 2, its default tag", v2Tag(), byKey(trusted), sign),
		of("cosign 2, a referrer", v2Referrer(), byKey(trusted), sign),
		of("cosign 2, a bundle", v2Bundle(), byKey(trusted), sign),
		of("cosign 3, its default bundle", v3Bundle(), byKey(trusted), sign),
		of("cosign 3, a tag", v3Tag(), byKey(trusted), sign),
		of("cosign 2, an attestation under a tag", v2Tag(), withoutLog(kind), attest),
		of("cosign 3, an attestation in a bundle", v3Bundle(), withoutLog(kind), attest),
	}
}

func TestEvidenceCountsInRealRegistriesHoweverItIsKept(t *testing.T) {
	t.Cleanup(func() { delete(recorded, tapeOf(t)) }) // what needs real registries is not repeated
	tools := func(name string) string { return suite.MustTool(t, suite.Registries, name) }
	debian, err := exec.LookPath("docker-registry")
	require.NoError(t, err)
	for _, s := range []server{
		{"distribution " + required(t, "github.com/distribution/distribution/v3"), configured(tools("distribution"))},
		{"distribution 2.8 (Debian's `docker-registry`)", configured(debian)},
		{"olareg " + required(t, "github.com/olareg/olareg"), func(t *testing.T, folder, port string) *exec.Cmd {
			return exec.CommandContext(t.Context(), tools("olareg"), "serve", "--addr", "127.0.0.1", "--port", port, "--dir", folder)
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			at := s.run(t)
			lacks := requireEveryWay(t, at, at, append(ways(t), byTools(t)...))
			requireOnPage(t, s.name, lacks)
			for name, change := range map[string]func(*http.Response) error{"strips": strips, "rewrites": rewrites} {
				t.Run(name, func(t *testing.T) {
					outer := start(t, fixture.RegistryOptions{Upstream: at.Address(), Rewrite: change})
					require.Equal(t, lacks, requireEveryWay(t, at, outer, ways(t)))
				})
			}
		})
	}
}
