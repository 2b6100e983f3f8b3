//go:build e2e || nightly

package gitops

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

// pagesOnGitOps are the pages whose blocks are followed, in the order in which a reader follows them.
// TestThePagesOnGitOpsHaveWhatTheirTestsFollow, in test/docs, reads the list.
func pagesOnGitOps() []string {
	return []string{
		"docs/tutorials/platform-in-git.md",
		"docs/howto/gitops-operate.md",
		"docs/howto/gitops-layouts.md",
		"docs/howto/gitops-take-over.md",
	}
}

// layout says whether a block is about that layout, on the page that has a section for each.
func layout(b page.Block, name string) bool {
	return b.Page == "docs/howto/gitops-layouts.md" && strings.HasPrefix(b.Section, "`"+name+"`")
}

// followed runs blocks of the pages on GitOps in a folder of the test, as a reader would.
type followed struct {
	*page.Runner
	blocks []page.Block
}

// follow reads the pages. Their commands have a kubeconfig, which need not exist.
func follow(t *testing.T, kubeconfig string, substitutions ...page.Substitution) *followed {
	t.Helper()
	var blocks []page.Block
	for _, name := range pagesOnGitOps() {
		read, err := page.Read(suite.Root, name)
		require.NoError(t, err)
		require.NotEmpty(t, read, "%s has no blocks", name)
		blocks = append(blocks, read...)
	}
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(programs, "landwaiter")))
	return &followed{blocks: blocks, Runner: &page.Runner{Test: t.Name(), Dir: dir, Progress: t.Output(), Substitutions: substitutions,
		Environment: []string{"HOME=" + dir, "KUBECONFIG=" + kubeconfig, "PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}}
}

// own returns the blocks that the pages say the running test runs.
func (f *followed) own(t *testing.T) []page.Block {
	t.Helper()
	own := slices.DeleteFunc(slices.Clone(f.blocks), func(b page.Block) bool { return b.Mark != page.By || b.Name != t.Name() })
	require.NotEmpty(t, own, "the pages name another test")
	return own
}

// play makes a script a program that the blocks call.
func (f *followed) play(t *testing.T, program, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.Dir, "bin", program), []byte("#!/bin/sh\n"+script), 0o700))
}

// run runs the blocks that pick accepts. There must be some.
func (f *followed) run(t *testing.T, pick func(page.Block) bool) {
	t.Helper()
	picked := slices.DeleteFunc(slices.Clone(f.blocks), func(b page.Block) bool { return !pick(b) })
	require.NotEmpty(t, picked, "the pages on GitOps have no such block")
	require.NoError(t, f.Run(t.Context(), picked...))
}
