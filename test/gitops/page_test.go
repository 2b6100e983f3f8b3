//go:build e2e

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/gitops.md run in its order, in an empty folder and without a cluster.
// They check whole trees, which takes the race detector ten times as long as the program as it
// is released.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	blocks, err := page.Read(suite.Root, "docs/gitops.md")
	require.NoError(t, err)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: dir, StandIns: map[string]func(context.Context, page.Block) (string, error){
		"flux2-multi-tenancy": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(dir, "flux2-multi-tenancy"), os.DirFS("testdata/flux2-multi-tenancy"))
		}},
		Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "none"),
			"PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}
	require.NoError(t, runner.Run(t.Context(), blocks...))
}

// The nightly tests show the trees of the other layouts too.
func TestTreesAreAccepted(t *testing.T) {
	guarded(t).accepts(t, written(t, map[string]grown{"flux": trees()["flux"]}, scaffold.LayoutFlux))
}
