//go:build e2e

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/page"
)

// The commands of docs/tutorials/platform-in-git.md, docs/howto/gitops-operate.md, docs/howto/gitops-layouts.md
// and docs/howto/gitops-take-over.md run in this order, in an empty folder and without a cluster.
// They check whole trees, which takes the race detector ten times as long as the program as it
// is released.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	reader := follow(t, filepath.Join(t.TempDir(), "none"), page.Substitution{Page: "sha256:…", Test: "sha256:" + strings.Repeat("5", 64), Why: "nothing was pushed"})
	reader.StandIns = map[string]func(context.Context, page.Block) (string, error){
		"flux2-multi-tenancy": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(reader.Dir, "flux2-multi-tenancy"), os.DirFS("testdata/flux2-multi-tenancy"))
		},
		"arc-soft-multitenancy": func(context.Context, page.Block) (string, error) {
			shape(t, reader.Dir, "arc-soft-multitenancy")
			return "", nil
		}}
	reader.run(t, func(b page.Block) bool { return slices.Contains(pagesOnGitOps(), b.Page) })
}

// The nightly tests show the trees of the other layouts too.
func TestTreesAreAccepted(t *testing.T) {
	guarded(t).accepts(t, written(t, map[string]grown{"flux": trees()["flux"]}, scaffold.LayoutFlux))
}
