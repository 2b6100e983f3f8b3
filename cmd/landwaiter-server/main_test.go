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

func TestTheReferenceOfCommandsIsUpToDate(t *testing.T) {
	require.NoError(t, commands.Reference{Root: newRoot(), Folder: "../../docs/reference/commands", Shared: "../../docs/reference/server.md"}.Check())
}

func TestTheExamplesOfHelpHaveFlagsThatExist(t *testing.T) { commands.CheckExamples(t, newRoot) }

func TestTheFlagsAreFewAndHelpFitsOnAScreen(t *testing.T) {
	commands.CheckSize(t, newRoot(), commands.Size{Registrations: 46, Lines: 50, Columns: 160})
}

func TestNoFlagDescribesItsDefaultInWords(t *testing.T) { commands.CheckDefaults(t, newRoot()) }

func TestHelpShowsTheDefaultsInForce(t *testing.T) {
	serve := newServe(&sharedFlags{})
	for name, want := range map[string]string{
		"timeout": "verify=" + provider.DefaultVerifyTimeout.String() + ",mutate=800ms,shutdown=10s,drain=0s",
		"ttl":     "pass=" + verify.DefaultPassTTL.String() + ",deny=10s,tag=5s,warm-up=0s",
		"limit": "in-flight=512,in-flight-per-namespace=128,cache-bytes=67108864,evidence-bytes=150994944,registry-requests-per-second=500," +
			"registry-bytes-per-second=33554432,registry-connections=64",
		"max-exception": "2160h0m0s",
	} {
		require.Equal(t, want, serve.Flag(name).DefValue, name)
	}
}

func TestTheVersionIsALine(t *testing.T) {
	var out, complaints bytes.Buffer
	require.Equal(t, program.ExitOK, run(t.Context(), []string{"--version"}, &out, &complaints), complaints.String())
	require.Regexp(t, `^landwaiter-server .*go1\..*\n$`, out.String())
}
