//go:build e2e

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The block of the page is a reader's two terminals: the server runs in the first while curl asks it.
func TestServeAnswersWithoutAClusterAsItsPageSays(t *testing.T) {
	blocks, err := page.Read(suite.Root, "docs/reference/commands/serve.md")
	require.NoError(t, err)
	var lines []string
	for _, b := range blocks {
		if b.Name == t.Name() {
			lines = strings.Split(strings.TrimSpace(b.Text), "\n")
		}
	}
	require.Len(t, lines, 4)
	dir := t.TempDir()
	rules := "apiVersion: landwaiter.dev/v1beta1\nkind: VerificationPolicy\nmetadata: {name: nothing, namespace: team-a}\nspec: {defaultAction: Deny}\n"
	require.NoError(t, os.Mkdir(filepath.Join(dir, "rules"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules", "policy.yaml"), []byte(rules), 0o600))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.LandwaiterServer), filepath.Join(dir, "landwaiter-server")))
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	command := func(ctx context.Context, line string) *exec.Cmd {
		made := exec.CommandContext(ctx, "bash", "-ec", line)
		made.Dir, made.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		return made
	}
	for _, line := range lines[:2] {
		output, err := command(suite.Within(t), line).CombinedOutput()
		require.NoError(t, err, "%s\n%s", line, output)
	}
	ctx, stop := context.WithCancel(suite.Within(t))
	server := command(ctx, fmt.Sprintf("exec %s --address 127.0.0.1:%d --health-address '' --metrics-address ''", lines[2], ports[0]))
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		stop()
		_ = server.Wait() // it was killed
	})
	ask := strings.ReplaceAll(lines[3], "localhost:8443", fmt.Sprintf("localhost:%d", ports[0]))
	var answer []byte
	suite.Eventually(t, func(ctx context.Context) (err error) {
		if answer, err = command(ctx, ask).Output(); err == nil && !strings.Contains(string(answer), `"key":"[team-a]registry.example.com/team-a/app:v1"`) {
			err = fmt.Errorf("the resources are not loaded yet: %s", answer)
		}
		return err
	})
	require.Contains(t, string(answer), "VerificationPolicy team-a/nothing")
}
