//go:build e2e || nightly

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cosign"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// name is what the tests call the command: it is their own program.
const name = "landwaiter-dev"

func TestMain(m *testing.M) {
	cosign.Main()
	if filepath.Base(os.Args[0]) == name {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the command as make dev does, and returns what it prints up to the last line.
func start(t *testing.T, cosign string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(self, path))
	command := exec.Command(path)
	command.Dir, command.Stderr = suite.Root, os.Stderr
	command.Env = append(os.Environ(), "LANDWAITER_COSIGN="+cosign, "TMPDIR="+t.TempDir())
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() }) // it has ended, unless the test failed
	timer := time.AfterFunc(2*suite.Patience, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	printed, lines := "", bufio.NewScanner(stdout)
	for lines.Scan() {
		printed += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			return command, printed
		}
	}
	t.Fatalf("it ended after\n%s", printed)
	return nil, ""
}

// copyWhatItPrints runs every line, and returns what Flux said last.
func copyWhatItPrints(t *testing.T, cosign string) (last string) {
	t.Helper()
	command, printed := start(t, cosign)
	found := regexp.MustCompile(`(?m)^  export KUBECONFIG=(.+)$`).FindStringSubmatch(printed)
	require.NotNil(t, found, printed)
	bash := suite.Program{Path: "bash", Kubeconfig: found[1],
		Env: []string{"EDITOR=true", "PATH=" + suite.MustTool(t, suite.ClusterTools) + ":" + filepath.Dir(suite.MustTool(t, suite.Landwaiter)) + ":" +
			os.Getenv("PATH")}}
	count := 0
	for _, line := range regexp.MustCompile(`(?m)^  ((?:kubectl|landwaiter|KUBECONFIG=|COSIGN_PASSWORD=|sleep|sed|git|env|/).+)$`).
		FindAllStringSubmatch(printed, -1) {
		text, comment, _ := strings.Cut(line[1], "    # ")
		r := bash.Run(t, "", "-euc", text)
		code := 0
		if found := regexp.MustCompile(`exit code (\d)`).FindStringSubmatch(comment); found != nil {
			code = int(found[1][0] - '0')
			suite.Eventually(t, func(context.Context) error { // a report is written some seconds after what it reports
				if r = bash.Run(t, "", "-euc", text); r.Code != code {
					return fmt.Errorf("%s: exit code %d", text, r.Code)
				}
				return nil
			})
		}
		output := r.Stdout + r.Stderr
		t.Logf("%s\n%s", text, output)
		if strings.HasPrefix(comment, "denied") {
			require.NotZero(t, r.Code, text)
			require.Regexp(t, `\[verified-images\]|Forbidden`, output)
		} else {
			require.Equal(t, code, r.Code, "%s\n%s", text, output)
		}
		if strings.Contains(text, "get kustomization") {
			last = output
		}
		if strings.Contains(text, "describe replicaset") {
			require.Contains(t, output, "[verified-images]")
		}
		if strings.HasSuffix(text, "landwaiter check") {
			require.Contains(t, output, "0 findings")
		}
		count++
	}
	require.Greater(t, count, 12, printed)
	quickStart(t, bash, printed)

	dir := filepath.Dir(bash.Kubeconfig)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait())
	require.NoDirExists(t, dir)
	suite.Eventually(t, func(context.Context) error { return ended(dir) })
	return last
}

// quickStart plays the rule of docs/start/quickstart.md beside what is there, with team-a's key.
func quickStart(t *testing.T, bash suite.Program, printed string) {
	t.Helper()
	keys := regexp.MustCompile(`Keys: (\S+)\. `).FindStringSubmatch(printed)
	app := regexp.MustCompile(`--image (\S+)/shared/app:v1`).FindStringSubmatch(printed)
	require.NotNil(t, keys, printed)
	require.NotNil(t, app, printed)
	blocks, err := page.Read(suite.Root, "docs/start/quickstart.md")
	require.NoError(t, err)
	played := 0
	for _, b := range blocks {
		if b.Section != "2. Require a signature" || !strings.HasPrefix(b.Text, "kubectl apply") {
			continue
		}
		bash.Must(t, "-euc", "cd "+keys[1]+"; cp team-a.pub cosign.pub\n"+b.Text+"\nkubectl wait --namespace demo --for=condition=Ready verifier/my-key")
		played++
	}
	require.Equal(t, 1, played)
	bash.Must(t, "-euc", "kubectl run signed --namespace demo --image "+app[1]+"/shared/app:v1 --dry-run=server")
	denied := bash.Run(t, "", "-euc", "kubectl run web --namespace demo --image "+app[1]+"/shared/unsigned:v1 --dry-run=server")
	require.NotZero(t, denied.Code)
	require.Contains(t, denied.Stderr, "my-key: no signature was found")
}

// ended returns an error if a process has something of the folder in its command line.
func ended(dir string) error {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(dir)) {
			return syscall.EBUSY
		}
	}
	return nil
}
