//go:build e2e

package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// The commands of docs/gitops.md run in its order, in an empty folder and without a cluster.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	blocks, err := page.Read(root, "docs/gitops.md")
	require.NoError(t, err)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(w.binary, filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: dir, Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "none"),
		"PATH=" + programs + ":" + os.Getenv("LANDWAITER_CLUSTER_TOOLS") + ":" + os.Getenv("PATH")}}
	require.NoError(t, runner.Run(t.Context(), blocks...))
}
