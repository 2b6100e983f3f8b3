//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// landwaiter runs the program as at a shell, and returns what it printed and its exit code.
func landwaiter(t *testing.T, in string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Getenv("LANDWAITER_BINARY"), args...)
	var out, said bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(in), &out, &said
	if err := command.Run(); err != nil {
		var exited *exec.ExitError
		require.ErrorAs(t, err, &exited)
	}
	return out.String(), said.String(), command.ProcessState.ExitCode()
}

// The commands of docs/cli.md, with a team's resources and those of the cluster.
func TestWhatKubectlGetsIsReadAsTheClusterHasIt(t *testing.T) {
	ns, ctx := namespace(t), within(t)
	apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "release", "keys")+policy(ns, "images", `{rules: [{images: ["**"], require: [{anyOf: [release]}]}]}`))
	admitted(t, ns, w.byTeamA)
	denied(t, ns, w.signed, "release")

	rules := t.TempDir()
	for file, args := range map[string][]string{
		"team.yaml":    {"get", "landwaiter,secrets,configmaps", "--namespace=" + ns, "-o", "yaml"},
		"cluster.yaml": {"get", "landwaiter-cluster", "-o", "yaml"},
	} {
		text, said, err := kubectl(ctx, t, "", args...)
		require.NoError(t, err, said)
		require.Contains(t, text, "kind: List")
		require.Contains(t, text, "resourceVersion:")
		require.NoError(t, os.WriteFile(filepath.Join(rules, file), []byte(text), 0o600))
	}
	stdout, stderr, code := landwaiter(t, "", "verify", "--config-dir", rules, "--namespace", ns, w.byTeamA)
	require.Equal(t, 0, code, stdout+stderr)
	stdout, stderr, code = landwaiter(t, "", "verify", "--config-dir", rules, "--namespace", ns, w.signed)
	require.Equal(t, 1, code, stdout+stderr)
	require.Contains(t, stdout, "DENIED")

	text, said, err := kubectl(ctx, t, "", "get", "landwaiter", "--namespace="+ns, "-o", "yaml")
	require.NoError(t, err, said)
	stdout, stderr, code = landwaiter(t, text, "lint", "-")
	require.Equal(t, 0, code, stdout+stderr)
	require.Empty(t, stdout, "what an API server accepted has no finding")
	broken := strings.Replace(text, "name: keys\n", "name: lost\n", 1)
	require.NotEqual(t, text, broken)
	stdout, _, code = landwaiter(t, broken, "lint", "-")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "keys")
}
