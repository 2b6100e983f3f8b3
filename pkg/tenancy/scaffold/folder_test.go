package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The whole work tree of Git is what a Secret in plain text must not be in.
func TestALoginIsOutsideOfTheWorkTreeOfGit(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "g", "fleet")
	require.NoError(t, os.MkdirAll(dir, 0o750))
	require.NoError(t, outside(dir, filepath.Join(root, "g", "secret.yaml")), "no Git there")
	require.NoError(t, os.Mkdir(filepath.Join(root, "g", ".git"), 0o750))
	require.ErrorContains(t, outside(dir, filepath.Join(root, "g", "secret.yaml")), "is in the tree")
	require.NoError(t, outside(dir, filepath.Join(root, "secret.yaml")))
}
