//go:build e2e || nightly

package gitops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// shape writes a repository of testdata below dir.
func shape(t *testing.T, dir, name string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	require.NoError(t, txtar.Write(archive, filepath.Join(dir, name)))
}

// ofThePage returns the blocks of docs/gitops.md that the running test has.
func ofThePage(t *testing.T) []page.Block {
	t.Helper()
	blocks, err := page.Read(suite.Root, "docs/gitops.md")
	require.NoError(t, err)
	var own []page.Block
	for _, b := range blocks {
		if b.Mark == page.By && b.Name == t.Name() {
			b.Mark = page.Run
			own = append(own, b)
		}
	}
	require.NotEmpty(t, own, "the page names another test")
	return own
}

// reader runs commands of the page in dir, where programs has further ones.
func reader(t *testing.T, dir string, programs map[string]string, environment ...string) *page.Runner {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o750))
	for name, script := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700)) //nolint:gosec // it is run
	}
	require.NoError(t, os.Symlink(suite.MustTool(t, suite.Landwaiter), filepath.Join(bin, "landwaiter")))
	return &page.Runner{Dir: dir, Progress: t.Output(), Environment: append([]string{"HOME=" + dir,
		"PATH=" + bin + ":" + suite.MustTool(t, suite.ClusterTools) + ":" + os.Getenv("PATH")}, environment...)}
}
