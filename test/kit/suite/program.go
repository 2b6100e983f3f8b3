package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// Program is a program that tests call as a person does.
type Program struct {
	// Path is the program's; see [Tool].
	Path string
	// Kubeconfig is the person's. It may be empty.
	Kubeconfig string
	// Dir is the folder it is called in, Env has further variables.
	Dir string
	Env []string
}

// Result is how a program ended.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run calls the program, and returns how it ended, whatever its exit code. It fails the test
// if the program cannot be started or does not end within [Patience].
func (p Program) Run(t testing.TB, stdin string, args ...string) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(Within(t), p.Path, args...)
	command.Dir = p.Dir
	command.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "KUBECONFIG=") }), "KUBECONFIG="+p.Kubeconfig,
		cluster.EndAtOnce)
	command.Env = append(command.Env, p.Env...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	var exit *exec.ExitError
	if err := command.Run(); (err != nil && !errors.As(err, &exit)) || command.ProcessState.ExitCode() < 0 {
		t.Fatalf("%s %v: %v: %s", p.Path, args, err, stderr.String())
	}
	return Result{Code: command.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// Must calls the program, which must succeed, and returns what it wrote to stdout.
func (p Program) Must(t testing.TB, args ...string) string {
	t.Helper()
	r := p.Run(t, "", args...)
	if r.Code != 0 {
		t.Fatalf("%s %v: exit code %d: %s%s", p.Path, args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// output calls a program and returns what it wrote to stdout.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %v: %w: %s", program, args, err, stderr.String())
	}
	return stdout.Bytes(), nil
}
