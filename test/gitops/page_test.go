//go:build e2e

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The commands of docs/tutorials/platform-in-git.md, docs/howto/gitops-operate.md, docs/howto/gitops-layouts.md
// and docs/howto/gitops-take-over.md run in this order, in an empty folder and without a cluster.
// They check whole trees, which takes the race detector ten times as long as the program as it
// is released. Then what the trees run is shown to a cluster that has their rules.
func TestTheCommandsOfThePageOnGitOpsWork(t *testing.T) {
	w := guarded(t)
	// What flux2-multi-tenancy ran before would be refused, which a command of the page shows.
	w.apply(t, suite.Namespace("apps"))
	before := suite.Pod("apps", "podinfo", "ghcr.io/stefanprodan/podinfo:6.9.2")
	require.NoError(t, w.Client.Create(suite.Within(t), before))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), before)) })
	reader := follow(t, w.Kubeconfig(), page.Substitution{Page: "sha256:…", Test: "sha256:" + strings.Repeat("5", 64), Why: "nothing was pushed"})
	reader.StandIns = map[string]func(context.Context, page.Block) (string, error){
		"flux2-multi-tenancy": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(reader.Dir, "flux2-multi-tenancy"), os.DirFS("testdata/flux2-multi-tenancy"))
		},
		"arc-soft-multitenancy": func(context.Context, page.Block) (string, error) {
			shape(t, reader.Dir, "arc-soft-multitenancy")
			return "", nil
		},
		"dev-team": func(context.Context, page.Block) (string, error) {
			return "", os.CopyFS(filepath.Join(reader.Dir, "dev-team"), os.DirFS(unpacked(t, "flux2-multi-tenancy-dev-team")))
		}}
	reader.run(t, func(b page.Block) bool { return slices.Contains(pagesOnGitOps(), b.Page) })
	out, err := reader.Bash(t.Context(), reader.own(t)[0].Text)
	require.NoError(t, err)
	require.Contains(t, out, "podinfo: allowPrivilegeEscalation != false")
	w.requirePodsLive(t, reader)
}

// The nightly tests show the trees of the other layouts too.
func TestTreesAreAccepted(t *testing.T) {
	guarded(t).accepts(t, written(t, map[string]grown{"flux": trees()["flux"]}, scaffold.LayoutFlux))
}
