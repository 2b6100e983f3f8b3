//go:build e2e || nightly

package inspect

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// serves starts the page with the defaults of Go, and returns the address that opens it and the id of
// its process.
func serves(t *testing.T, program suite.Program, args ...string) (address string, process int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program.Path, append([]string{"ui", "--no-browser"}, args...)...)
	command.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "KUBECONFIG=") || strings.HasPrefix(s, "GO") }),
		"KUBECONFIG="+program.Kubeconfig, cluster.EndAtOnce)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	address, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address), command.Process.Pid
}
