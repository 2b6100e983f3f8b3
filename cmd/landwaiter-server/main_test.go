package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/commands"
)

// run runs the program within the test.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program.Run(ctx, newRoot(), args, stdout, stderr)
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"landwaiter-server": main})
}

func TestScripts(t *testing.T) { commands.Scripts(t, "landwaiter-server", run) }

func TestTheReferenceOfFlagsIsUpToDate(t *testing.T) {
	require.NoError(t, commands.CheckReference("../../docs/reference/server.md", newRoot()))
}

func TestNoFlagDescribesItsDefaultInWords(t *testing.T) { commands.CheckDefaults(t, newRoot()) }

func TestHelpShowsTheDefaultsInForce(t *testing.T) {
	serve := newServe()
	for name, want := range map[string]string{
		"verify-timeout": provider.DefaultVerifyTimeout.String(),
		"pass-ttl":       verify.DefaultPassTTL.String(),
		"cache-bytes":    "67108864",
		"in-flight":      "512",
	} {
		require.Equal(t, want, serve.Flag(name).DefValue, name)
	}
}

func TestTheVersionIsALine(t *testing.T) {
	var out, complaints bytes.Buffer
	require.Equal(t, program.ExitOK, run(t.Context(), []string{"--version"}, &out, &complaints), complaints.String())
	require.Regexp(t, `^landwaiter-server .*go1\..*\n$`, out.String())
}
