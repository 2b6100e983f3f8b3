//go:build e2e

package gitops

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// A name that kustomize's own file system refuses must neither end a check nor change what it finds.
func TestPublicRepositoriesAreCheckedWithEveryNameThatGitCanHold(t *testing.T) {
	for _, name := range []string{"arc-soft-multitenancy", "flux-multitenant-demo", "flux-tmc-multitenant"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shape(t, dir, name)
			check := func() any {
				out, err := exec.CommandContext(suite.Within(t), suite.MustTool(t, suite.Landwaiter), "platform", "check", "-o", "json", filepath.Join(dir, name)).Output()
				if err != nil {
					var ended *exec.ExitError
					require.ErrorAs(t, err, &ended)
					require.Equal(t, 1, ended.ExitCode(), "it checked: %s", ended.Stderr)
				}
				var found map[string]any
				require.NoError(t, json.Unmarshal(out, &found))
				require.NotEmpty(t, found["findings"])
				return found["findings"]
			}
			before := check()
			for _, odd := range []string{"two words.md", "Übersicht [draft].md", "a@b,c+d.md", "docs/#1/- x.md", ".github/ISSUE TEMPLATE/a..b.md", "100%/*?.txt",
				"tab\there.md"} {
				file := filepath.Join(dir, name, odd)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
				require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o600))
			}
			require.Equal(t, before, check())
		})
	}
}
