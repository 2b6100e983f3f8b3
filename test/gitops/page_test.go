//go:build e2e

package gitops

import (
	"path/filepath"
	"testing"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

// The commands of docs/gitops.md run in its order, in an empty folder and without a cluster.
// They check whole trees, which takes the race detector ten times as long as the program as it
// is released.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	follow(t, filepath.Join(t.TempDir(), "none")).run(t, func(b page.Block) bool { return b.Page == "docs/gitops.md" })
}

// The nightly tests show the trees of the other layouts too.
func TestTreesAreAccepted(t *testing.T) {
	guarded(t).accepts(t, written(t, map[string]grown{"flux": trees()["flux"]}, scaffold.LayoutFlux))
}
