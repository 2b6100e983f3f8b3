//go:build e2e

package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/suite"
	"github.com/stretchr/testify/require"
)

// landwaiter is the program, as at a shell.
func landwaiter(t *testing.T) suite.Program {
	t.Helper()
	return suite.Program{Path: suite.MustTool(t, suite.Landwaiter)}
}

// The commands of docs/reference/commands/verify.md and check.md, with a team's resources and those of the cluster.
func TestWhatKubectlGetsIsReadAsTheClusterHasIt(t *testing.T) {
	w := installed(t)
	ns, kubectl := w.namespace(t), w.kubectl(t, "")
	w.apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "release", "keys")+policy(ns, "images", `{rules: [{images: ["**"], require: [{anyOf: [release]}]}]}`))
	w.admitted(t, ns, w.byTeamA)
	w.denied(t, ns, w.signed, "release")

	rules := t.TempDir()
	for file, args := range map[string][]string{
		"team.yaml":    {"get", "landwaiter,secrets,configmaps", "--namespace=" + ns, "-o", "yaml"},
		"cluster.yaml": {"get", "landwaiter-cluster", "-o", "yaml"},
	} {
		text := kubectl.Must(t, args...)
		require.Contains(t, text, "kind: List")
		require.Contains(t, text, "resourceVersion:")
		require.NoError(t, os.WriteFile(filepath.Join(rules, file), []byte(text), 0o600))
	}
	lw := landwaiter(t)
	lw.Must(t, "verify", "--config-dir", rules, "--namespace", ns, w.byTeamA)
	r := lw.Run(t, "", "verify", "--config-dir", rules, "--namespace", ns, w.signed)
	require.Equal(t, 1, r.Code, r)
	require.Contains(t, r.Stdout, "DENIED")

	text := kubectl.Must(t, "get", "landwaiter", "--namespace="+ns, "-o", "yaml")
	r = lw.Run(t, text, "check", "-")
	require.Equal(t, 0, r.Code, r)
	require.Contains(t, r.Stdout, " checked, 0 findings\n", "what an API server accepted has no finding")
	broken := strings.Replace(text, "name: keys\n", "name: lost\n", 1)
	require.NotEqual(t, text, broken)
	r = lw.Run(t, broken, "check", "-")
	require.Equal(t, 0, r.Code, "the cluster may have it: %v", r)
	require.Contains(t, r.Stdout, "TrustStore "+ns+"/keys is not in the files")
}
