//go:build e2e

package teams

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/tutorials/first-team.md, then those of docs/howto/tenants.md, run in their order, as
// a cluster admin copies them.
func TestTheCommandsOfThePageOnTeamsWork(t *testing.T) {
	w := installed(t)
	w.gone(t, "iris-blue", "shop")
	w.vacant(t, "checkout", "shop") // tenant delete keeps it
	var blocks []page.Block
	for _, name := range []string{"docs/tutorials/first-team.md", "docs/howto/tenants.md"} {
		read, err := page.Read(suite.Root, name)
		require.NoError(t, err)
		require.NotEmpty(t, read, "%s has no blocks", name)
		blocks = append(blocks, read...)
	}
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(w.program.Path, filepath.Join(programs, "landwaiter")))
	runner := page.Runner{Dir: dir, Progress: t.Output(), Environment: []string{"HOME=" + dir, "KUBECONFIG=" + w.Kubeconfig(),
		"PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")},
		StandIns: map[string]func(context.Context, page.Block) (string, error){
			// The world of these tests has the chart with the same values.
			"guardrails": func(context.Context, page.Block) (string, error) { return "", nil },
		}}
	require.NoError(t, runner.Run(t.Context(), blocks...))
}
