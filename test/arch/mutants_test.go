//go:build mutants

package arch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// maxRun ends a test that hangs without its guard.
const maxRun = 3 * time.Minute

func TestWithoutItsGuardEachTestFails(t *testing.T) {
	declared := readTests(t)
	for i, g := range guards() {
		t.Run(fmt.Sprintf("%02d/%d/%s", g.class, i, g.test), func(t *testing.T) {
			where, ok := declared.find(g.test)
			require.True(t, ok, g.test)
			files, err := g.mutated()
			require.NoError(t, err)
			binary, folder := build(t, where.folder, files)
			out, err := run(t, binary, folder, g.test)
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the test passes without its guard:\n%s", out)
			_, name, _ := strings.Cut(g.test, ".")
			name, _, _ = strings.Cut(name, "/")
			require.True(t, strings.Contains(out, "--- FAIL: "+name) || strings.Contains(out, "panic: "), "the test did not run:\n%s", out)
		})
	}
}

// build compiles the tests of a package with files replaced, and returns the folder to
// run them in. Go files are replaced by an overlay; others in a copy of what the tests
// read.
func build(t *testing.T, folder string, files map[string]string) (binary, where string) {
	t.Helper()
	scratch := t.TempDir()
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	replaced := map[string]string{}
	where = filepath.Join(absolute, folder)
	for name, content := range files {
		if filepath.Ext(name) == ".go" {
			at := filepath.Join(scratch, fmt.Sprintf("%d.go", len(replaced)))
			require.NoError(t, os.WriteFile(at, []byte(content), 0o600))
			replaced[filepath.Join(absolute, name)] = at
			continue
		}
		where = filepath.Join(scratch, folder)
		require.NoError(t, os.MkdirAll(where, 0o700), "tests that read this file may read nothing else of the tree")
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(scratch, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(scratch, name), []byte(content), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	list := filepath.Join(scratch, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	t.Setenv("GOFLAGS", "-overlay="+list) // for tests that run the go command too
	binary = filepath.Join(scratch, "tests")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "./"+folder)
	compile.Dir = absolute
	out, err := compile.CombinedOutput()
	require.NoError(t, err, "it does not compile without its guard:\n%s", out)
	return binary, where
}

// run runs one test and returns its output.
func run(t *testing.T, binary, folder, test string) (string, error) {
	t.Helper()
	_, name, _ := strings.Cut(test, ".")
	name, subtest, _ := strings.Cut(name, "/")
	pattern := "^" + name + "$"
	if subtest != "" {
		pattern += "/^" + regexp.QuoteMeta(strings.ReplaceAll(subtest, " ", "_")) + "$"
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxRun)
	defer cancel()
	arguments := []string{"-test.run", pattern, "-test.count=1", "-test.timeout", maxRun.String()}
	if help, _ := exec.CommandContext(ctx, binary, "-help").CombinedOutput(); strings.Contains(string(help), "-rapid.nofailfile") {
		arguments = append(arguments, "-rapid.nofailfile") // or it keeps the failure in the tree
	}
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	return string(out), err
}
