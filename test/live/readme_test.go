//go:build e2e

package live

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// Each command is right as it stands, and answers: what it finds here does not matter.
func TestTheCommandsOfTheReadmeAnswerForACluster(t *testing.T) {
	blocks, err := page.Read(root, "README.md")
	require.NoError(t, err)
	at := slices.IndexFunc(blocks, func(b page.Block) bool { return strings.Contains(b.Text, "landwaiter status") })
	require.GreaterOrEqual(t, at, 0)
	dir := t.TempDir()
	t.Chdir(dir) // the programs are found by absolute paths
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stricter.yaml"), []byte(`apiVersion: landwaiter.dev/v1alpha1
kind: ClusterVerificationPolicy
metadata: {name: stricter}
spec: {scope: Floor, rules: [], defaultAction: Deny}
`), 0o600))
	admin := person{kubeconfig: w.Kubeconfig()}
	want := map[string][]int{"status": {0, 2}, "explain": {0, 1, 2}, "preview": {1}, "doctor": {1}} // there are no reports and no Gatekeeper
	for line := range strings.Lines(blocks[at].Text) {
		words := strings.Fields(strings.ReplaceAll(line, "registry.example.com", w.Registry.Host()))
		require.Equal(t, "landwaiter", words[0])
		r := admin.runs(t, "", words[1:]...)
		require.Contains(t, want[words[1]], r.code, "%s\n%s%s", line, r.stdout, r.stderr)
		require.NotEmpty(t, r.stdout, line)
		delete(want, words[1])
	}
	require.Empty(t, want)
}
