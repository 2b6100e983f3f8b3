//go:build e2e

package inspect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Each command is right as it stands, and answers: what it finds here does not matter.
func TestTheCommandsOfTheReadmeAnswerForACluster(t *testing.T) {
	w := withExamples(t)
	blocks, err := page.Read(suite.Root, "README.md")
	require.NoError(t, err)
	at := slices.IndexFunc(blocks, func(b page.Block) bool { return strings.Contains(b.Text, "landwaiter status") })
	require.GreaterOrEqual(t, at, 0)
	dir := t.TempDir()
	t.Chdir(dir) // the programs are found by absolute paths
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stricter.yaml"), []byte(`apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: stricter}
spec: {scope: Mandatory, rules: [], defaultAction: Deny}
`), 0o600))
	admin := caller(t, w.Kubeconfig())
	want := map[string][]int{"status": {0, 1, 2}, "verify": {0, 1, 2}, "preview": {1}, "check": {1}} // there are no reports and no Gatekeeper
	for line := range strings.Lines(blocks[at].Text) {
		words := strings.Fields(strings.ReplaceAll(line, "registry.example.com", w.Registry.Host()))
		require.Equal(t, "landwaiter", words[0])
		r := admin.landwaiter.Run(t, "", words[1:]...)
		require.Contains(t, want[words[1]], r.Code, "%s\n%s%s", line, r.Stdout, r.Stderr)
		require.NotEmpty(t, r.Stdout, line)
		delete(want, words[1])
	}
	require.Empty(t, want)
}
