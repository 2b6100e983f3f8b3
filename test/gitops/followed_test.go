//go:build e2e || nightly

package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// followed runs blocks of docs/howto/gitops.md in a folder of the test, as a reader would.
type followed struct {
	*page.Runner
	blocks []page.Block
}

// follow reads the page. Its commands have a kubeconfig, which need not exist.
func follow(t *testing.T, kubeconfig string, substitutions ...page.Substitution) *followed {
	t.Helper()
	blocks, err := page.Read(suite.Root, "docs/howto/gitops.md")
	require.NoError(t, err)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(programs, 0o750))
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(programs, "landwaiter")))
	return &followed{blocks: blocks, Runner: &page.Runner{Test: t.Name(), Dir: dir, Progress: t.Output(), Substitutions: substitutions,
		Environment: []string{"HOME=" + dir, "KUBECONFIG=" + kubeconfig, "PATH=" + programs + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}}}
}

// own returns the blocks that the page says the running test runs.
func (f *followed) own(t *testing.T) []page.Block {
	t.Helper()
	own := slices.DeleteFunc(slices.Clone(f.blocks), func(b page.Block) bool { return b.Mark != page.By || b.Name != t.Name() })
	require.NotEmpty(t, own, "the page names another test")
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
	require.NotEmpty(t, picked, "docs/howto/gitops.md has no such block")
	require.NoError(t, f.Run(t.Context(), picked...))
}
