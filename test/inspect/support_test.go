//go:build e2e

package inspect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnArchiveForWhoeverHelpsIsWrittenOnceAndListsWhatIsMissing(t *testing.T) {
	w := withExamples(t)
	file := filepath.Join(t.TempDir(), "help.tar.gz")
	admin := caller(t, w.Kubeconfig())
	said := admin.landwaiter.Must(t, "support", "--file", file)
	require.Contains(t, said, "conditions.json, events.json, findings.json, missing.json, programs.json, versions.json")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	r := admin.landwaiter.Run(t, "", "support", "--file", file)
	require.Equal(t, 64, r.Code)
	require.Contains(t, r.Stderr, "file exists")

	nobody := w.somebody(t, "support-nobody", nil)
	require.Contains(t, nobody.landwaiter.Must(t, "support", "--file", filepath.Join(t.TempDir(), "help.tar.gz")), "missing.json")
}
