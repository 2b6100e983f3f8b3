package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder returns a new folder, in memory where Linux has one for that: the tests write some 30,000 files, which
// takes half of their time on a disk.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "landwaiter-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// The whole work tree of Git is what a Secret in plain text must not be in.
func TestALoginIsOutsideOfTheWorkTreeOfGit(t *testing.T) {
	root := folder(t)
	dir := filepath.Join(root, "g", "fleet")
	require.NoError(t, os.MkdirAll(dir, 0o750))
	require.NoError(t, outside(dir, filepath.Join(root, "g", "secret.yaml")), "no Git there")
	require.NoError(t, os.Mkdir(filepath.Join(root, "g", ".git"), 0o750))
	require.ErrorContains(t, outside(dir, filepath.Join(root, "g", "secret.yaml")), "is in the tree")
	require.NoError(t, outside(dir, filepath.Join(root, "secret.yaml")))
}
