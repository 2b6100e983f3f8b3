//go:build mutants

package arch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// maxSuite ends the tests of a suite that hang.
const maxSuite = 10 * time.Minute

// workers is how many suites run at a time, each in a copy of the tree: they wait a lot.
const workers = 2

func TestEverySuiteNoticesItsMutant(t *testing.T) {
	trees := make(chan suiteRun, workers)
	for i := range workers {
		trees <- suiteRun{copyTree(t, fmt.Sprint("mutants-", i))}
	}
	mutants := map[suite][]mutant{}
	for _, m := range suiteMutants() {
		mutants[m.suite()] = append(mutants[m.suite()], m)
	}
	most := func(a, b suite) int { return cmp.Compare(len(mutants[b]), len(mutants[a])) }
	for _, of := range slices.SortedFunc(maps.Keys(mutants), most) { // the longest first, or they end alone
		list := mutants[of]
		t.Run(strings.ReplaceAll(of.folder, "/", "-")+"-"+of.tag, func(t *testing.T) {
			t.Parallel()
			tree := <-trees
			defer func() { trees <- tree }()
			tree.sound(t, of, list)
			for _, m := range list {
				t.Run(m.test, func(t *testing.T) { tree.notices(t, m) })
			}
		})
	}
}

// sound runs the tests of mutants in the tree as it is: one that fails anyway would notice
// every fault.
func (s suiteRun) sound(t *testing.T, of suite, mutants []mutant) {
	t.Helper()
	var tests []string
	for _, m := range mutants {
		tests = append(tests, m.test)
	}
	out, err := s.test(t, of, strings.Join(tests, "|"), "")
	require.NoError(t, err, "without a fault: %s", out)
	require.NotContains(t, out, "no tests to run")
}

// notices puts the fault in, and wants the test to fail.
func (s suiteRun) notices(t *testing.T, m mutant) {
	t.Helper()
	path := filepath.Join(s.dir, m.file)
	text, faulty, err := m.mutated(s.dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(faulty), 0o600))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) })
	out, err := s.test(t, m.suite(), m.test, "30s")
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, "the suite passes with a fault in %s:\n%s", m.file, out)
	require.True(t, strings.Contains(out, "--- FAIL: "+m.test) || strings.Contains(out, "panic: "), "the test did not run:\n%s", out)
}

// copyTree copies the files that Git tracks into a folder of the user's cache, always the
// same, so that a second run compiles little.
func copyTree(t *testing.T, name string) string {
	t.Helper()
	cached, err := os.UserCacheDir()
	require.NoError(t, err)
	target := filepath.Join(cached, "landwaiter", name)
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

// test runs tests of a suite with what its run sets, and with the program of the tree as it
// is now: the fault of the last mutant is still in it. Each wait of the tests ends after
// patience, or after their own if it is empty: a test that meets a fault may wait in vain, and
// one that meets none must not fail because another suite runs too.
func (s suiteRun) test(t *testing.T, of suite, names, patience string) (string, error) {
	t.Helper()
	if of.tag != "" {
		s.build(t, of)
	}
	args := []string{"env"}
	if of.tag != "nightly" { // make mutants is a part of make nightly, which sets these
		for _, name := range []string{"NIGHTLY", "SOAK", "TEAMS", "PODS"} {
			args = append(args, "-u", "LANDWAITER_"+name)
		}
	}
	if patience != "" {
		args = append(args, "LANDWAITER_PATIENCE="+patience)
	}
	args = append(args, "go", "test", "-count=1", "-timeout", maxSuite.String(), "-tags", of.tag, "-run", "^("+names+")$", "./"+of.folder)
	return s.command(t, args[0], args[1:]...)
}

// build builds the program of the copy for a suite, with the clouds where that needs them.
func (s suiteRun) build(t *testing.T, of suite) {
	t.Helper()
	tags := "kustomize_disable_go_plugin_support,grpcnotrace"
	if of.folder == "test/evidence" {
		tags += ",aws,azure,gcp"
	}
	out, err := s.command(t, "go", "build", "-buildvcs=false", "-tags", tags, "-o", "bin/", "./cmd/...")
	require.NoError(t, err, "%s", out)
}

func (s suiteRun) command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxSuite)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = s.dir
	program := filepath.Join(s.dir, "bin/landwaiter")
	server := program + "-server"
	command.Env = append(os.Environ(), "LANDWAITER_BINARY="+program, "LANDWAITER_FULL_BINARY="+program,
		"LANDWAITER_SERVER="+server, "LANDWAITER_PLAIN_SERVER="+server, "LANDWAITER_FULL_SERVER="+server)
	out, err := command.CombinedOutput()
	return string(out), err
}
