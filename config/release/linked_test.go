//go:build nightly

package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The linker keeps every exported method of every type once something that it links asks for a
// method by a name that is not a constant, as text/template does: half as much again of the
// server, and of what each replica has resident.
func TestTheServerAsksForNoMethodByName(t *testing.T) {
	out := filepath.Join(t.TempDir(), server)
	arguments := buildArguments(server, variants()["default"], "v1", "abc", out)
	for i := range arguments {
		if arguments[i] == "-ldflags" {
			arguments[i+1] += " -dumpdep"
		}
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = root
	said, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	var found []string
	lines, all := bufio.NewScanner(said), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if from, _, _ := strings.Cut(lines.Text(), " -> "); strings.Contains(from, "<ReflectMethod>") && len(found) < 10 {
			found = append(found, lines.Text())
		}
		all++
	}
	require.NoError(t, lines.Err())
	require.NoError(t, command.Wait())
	require.Greater(t, all, 100_000, "the linker lists what needs what")
	require.Empty(t, found)
}
