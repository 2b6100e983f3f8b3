//go:build mutants

package arch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// maxSuite ends the tests of a suite that hang.
const maxSuite = 10 * time.Minute

func TestEverySuiteNoticesItsMutant(t *testing.T) {
	copied := copyTree(t)
	clean := suiteRun{dir: copied}
	clean.build(t)
	sound := clean.sound(t)
	for _, m := range suiteMutants() {
		t.Run(m.folder+"/"+m.test, func(t *testing.T) {
			require.True(t, sound[m.suite()], "its tests fail without a fault")
			path := filepath.Join(copied, m.file)
			text, faulty := m.mutated(t, copied)
			require.NotEqual(t, text, faulty)
			require.NoError(t, os.WriteFile(path, []byte(faulty), 0o600))
			t.Cleanup(func() { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) })
			if m.tag != "" { // also without a change: the fault of the last one is still in the program
				clean.build(t)
			}
			out, err := clean.test(t, m.suite(), m.test)
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the suite passes with a fault in %s:\n%s", m.file, out)
			require.True(t, strings.Contains(out, "--- FAIL: "+m.test) || strings.Contains(out, "panic: "), "the test did not run:\n%s", out)
		})
	}
}

// copyTree copies the files that Git tracks, always into the same folder of the user's
// cache, so that a second run compiles little.
func copyTree(t *testing.T) string {
	t.Helper()
	cached, err := os.UserCacheDir()
	require.NoError(t, err)
	target := filepath.Join(cached, "landwaiter", "mutants")
	require.NoError(t, os.RemoveAll(target))
	require.NoError(t, os.MkdirAll(target, 0o750))
	script := `git ls-files -z | tar --null --files-from=- -cf - | tar -C "$1" -xf -`
	command := exec.CommandContext(t.Context(), "bash", "-c", script, "copy", target)
	command.Dir = root
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return target
}

// suiteRun runs commands in a copy of the tree.
type suiteRun struct{ dir string }

// sound runs the tests that must notice a fault in the tree as it is: one that fails anyway
// would notice every fault.
func (s suiteRun) sound(t *testing.T) map[suite]bool {
	t.Helper()
	tests, sound := map[suite][]string{}, map[suite]bool{}
	for _, m := range suiteMutants() {
		tests[m.suite()] = append(tests[m.suite()], m.test)
	}
	for of, names := range tests {
		sound[of] = t.Run("sound/"+of.folder+" "+of.tag, func(t *testing.T) {
			out, err := s.test(t, of, strings.Join(names, "|"))
			require.NoError(t, err, "%s", out)
			require.NotContains(t, out, "no tests to run")
		})
	}
	return sound
}

// test runs tests of a suite with what its run sets.
func (s suiteRun) test(t *testing.T, of suite, names string) (string, error) {
	t.Helper()
	prefix := []string{}
	if of.tag != "nightly" {
		prefix = []string{"env", "-u", "LANDWAITER_NIGHTLY"}
	}
	args := append(prefix, "go", "test", "-count=1", "-timeout", maxSuite.String(), "-tags", of.tag, "-run", "^("+names+")$", "./"+of.folder)
	return s.command(t, args[0], args[1:]...)
}

// build builds the program of the copy.
func (s suiteRun) build(t *testing.T) {
	t.Helper()
	out, err := s.command(t, "go", "build", "-buildvcs=false", "-tags", "kustomize_disable_go_plugin_support", "-o", "bin/landwaiter", "./cmd/landwaiter")
	require.NoError(t, err, "%s", out)
}

func (s suiteRun) command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxSuite)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = s.dir
	program := filepath.Join(s.dir, "bin/landwaiter")
	command.Env = append(os.Environ(), "LANDWAITER_PATIENCE=30s", "LANDWAITER_BINARY="+program, "LANDWAITER_PLAIN_BINARY="+program, "LANDWAITER_FULL_BINARY="+program)
	out, err := command.CombinedOutput()
	return string(out), err
}
