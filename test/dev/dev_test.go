//go:build e2e || flux

package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// settle bounds how long the cluster takes to start, and a command to come true.
const settle = 2 * time.Minute

// start runs the command as make dev does, and returns what it prints up to the last line.
func start(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "dev")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	command := exec.Command(binary)
	command.Dir, command.Stderr = "../..", os.Stderr
	command.Env = append(os.Environ(), "LANDWAITER_COSIGN="+os.Getenv("LANDWAITER_COSIGN_V3"), "TMPDIR="+t.TempDir())
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() }) // it has ended, unless the test failed
	timer := time.AfterFunc(settle, func() { _ = command.Process.Kill() })
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

// bash runs a command in the environment that the printed export makes.
func bash(ctx context.Context, kubeconfig, text string) (string, error) {
	// Where git is told another authority by the environment, it does not read that of the repository.
	command := exec.CommandContext(ctx, "bash", "-euc", "unset GIT_SSL_CAINFO\n"+text)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "EDITOR=true",
		"PATH="+os.Getenv("LANDWAITER_CLUSTER_TOOLS")+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestWhatItPrintsCanBeCopiedAndCtrlCLeavesNothing(t *testing.T) {
	t.Setenv("LANDWAITER_FLUX_TOOLS", "")
	copyWhatItPrints(t)
}

// copyWhatItPrints runs every line, and returns what Flux said last.
func copyWhatItPrints(t *testing.T) (last string) {
	t.Helper()
	require.NotEmpty(t, os.Getenv("LANDWAITER_COSIGN_V3"), "LANDWAITER_COSIGN_V3 is not set; run make e2e")
	command, printed := start(t)
	found := regexp.MustCompile(`(?m)^  export KUBECONFIG=(.+)$`).FindStringSubmatch(printed)
	require.NotNil(t, found, printed)
	kubeconfig := found[1]
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	count := 0
	for _, line := range regexp.MustCompile(`(?m)^  ((?:kubectl|COSIGN_PASSWORD=|sleep|sed|git|/).+)$`).FindAllStringSubmatch(printed, -1) {
		text, comment, _ := strings.Cut(line[1], "    # ")
		output, err := bash(ctx, kubeconfig, text)
		t.Logf("%s\n%s", text, output)
		if strings.HasPrefix(comment, "denied") {
			require.Error(t, err, text)
			require.Regexp(t, `\[verified-images\]|Forbidden`, output)
		} else {
			require.NoError(t, err, "%s\n%s", text, output)
		}
		if strings.Contains(text, "get kustomization") {
			last = output
		}
		if strings.Contains(text, "describe replicaset") {
			require.Contains(t, output, "[verified-images]")
		}
		count++
	}
	require.Greater(t, count, 12, printed)

	dir := filepath.Dir(kubeconfig)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait())
	require.NoDirExists(t, dir)
	require.NoError(t, cluster.Until(ctx, func(context.Context) error { return ended(dir) }))
	return last
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
