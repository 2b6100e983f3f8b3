//go:build e2e || nightly

package gitops

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// shape writes a repository of testdata below dir.
func shape(t *testing.T, dir, name string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	require.NoError(t, txtar.Write(archive, filepath.Join(dir, name)))
}

// unpacked returns a folder of the test with a repository of testdata.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	shape(t, dir, name)
	return filepath.Join(dir, name)
}
