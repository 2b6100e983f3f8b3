// Package commands holds the command line of a program to its scripts, its reference and the
// rules for its flags.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/landwaiter/landwaiter/test/kit/example"
)

// Program runs one command line within the test and returns the exit code.
type Program func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Scripts runs a command line as its users do: testdata/*.txtar are its specification. All
// scripts have the registry of package example, and each has its own copy of the resources.
// "exec NAME" starts a process, which takes the race detector longer than most commands;
// "exits CODE NAME" runs the program of the name within the test and is for all but one of each
// kind, with the script's KUBECONFIG. Lines that begin with [nightly] take seconds, check what
// other tests check on each change, and run with LANDWAITER_NIGHTLY set.
func Scripts(t *testing.T, name string, program Program) {
	t.Helper()
	// As testscript does for processes: no cluster and no credentials of whoever runs the tests.
	for name, value := range map[string]string{"HOME": "/no-home", "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""} {
		t.Setenv(name, value)
	}
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = "/no-home/.kube/config"
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	resources := filepath.Join(t.TempDir(), "resources")
	e, err := example.Start(t.Context(), resources)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Registry.Close() })
	testscript.RunT(sequential{t}, testscript.Params{
		Dir:  "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits(name, program)},
		Setup: func(env *testscript.Env) error {
			config := filepath.Join(env.WorkDir, "resources")
			env.Setenv("CONFIG", config)
			env.Setenv("TODAY", time.Now().UTC().Format(time.DateOnly))
			env.Setenv("REGISTRY", e.Registry.Host())
			env.Setenv("LANDWAITER_CLOCK", os.Getenv("LANDWAITER_CLOCK")) // of test/tools/clock.sh
			given := filesIn(t, env.WorkDir)
			env.Defer(func() { requireSingleKeys(t, env.WorkDir, given) })
			return os.CopyFS(config, os.DirFS(resources))
		},
		Condition: func(condition string) (bool, error) {
			if condition != "nightly" {
				return false, fmt.Errorf("there is no condition %s", condition)
			}
			return os.Getenv("LANDWAITER_NIGHTLY") != "", nil
		},
	})
}

// filesIn returns the content of all files in a folder, by their paths.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	}))
	return files
}

// requireSingleKeys requires that the YAML that a script's commands wrote has no key twice: Flux refuses it. What
// the script was given may be as broken as it needs.
func requireSingleKeys(t *testing.T, folder string, given map[string]string) {
	t.Helper()
	for path, text := range filesIn(t, folder) {
		if before, ok := given[path]; !strings.HasSuffix(path, ".yaml") || (ok && before == text) {
			continue
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var document any
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "%s:\n%s", path, text)
		}
	}
}

// sequential runs scripts one after another: they change the folder of the process.
type sequential struct{ *testing.T }

func (sequential) Parallel() {}

func (sequential) Verbose() bool { return testing.Verbose() }

func (t sequential) Run(name string, script func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { script(sequential{t}) })
}

// exits returns the command "exits CODE NAME …".
func exits(name string, program Program) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 || args[1] != name {
			ts.Fatalf("usage: exits CODE %s …", name)
		}
		before, err := os.Getwd()
		ts.Check(err)
		ts.Check(os.Chdir(ts.MkAbs(".")))
		ts.Check(os.Setenv("KUBECONFIG", ts.Getenv("KUBECONFIG")))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		code := program(ctx, args[2:], ts.Stdout(), ts.Stderr())
		cancel()
		ts.Check(os.Chdir(before))
		ts.Check(os.Setenv("KUBECONFIG", ""))
		if got := strconv.Itoa(code); got != args[0] {
			ts.Fatalf("exit code %s, not %s", got, args[0])
		}
	}
}
