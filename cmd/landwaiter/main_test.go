package main

import (
	"context"
	"io"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/test/kit/commands"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"landwaiter": main})
}

// run runs the program within the test.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program.Run(ctx, newRoot(), args, stdout, stderr)
}

func TestScripts(t *testing.T) { commands.Scripts(t, "landwaiter", run) }

func TestTheReferenceOfCommandsIsUpToDate(t *testing.T) {
	require.NoError(t, commands.Reference{Root: newRoot(), Folder: "../../docs/reference/commands", Shared: "../../docs/reference/flags.md"}.Check())
}

func TestTheExamplesOfHelpHaveFlagsThatExist(t *testing.T) { commands.CheckExamples(t, newRoot) }

// Together with those of landwaiter-server, 160 at most.
func TestTheFlagsAreFewAndHelpFitsOnAScreen(t *testing.T) {
	commands.CheckSize(t, newRoot(), commands.Size{Registrations: 112, Lines: 50, Columns: 160})
}

// Without a logger of its own, controller-runtime prints a stack trace once a command takes 30 seconds.
func TestLibrariesLogNothingToTheScreen(t *testing.T) {
	newRoot()
	require.IsType(t, ctrllog.NullLogSink{}, ctrllog.Log.WithName("any").GetSink())
}

func TestNoFlagDescribesItsDefaultInWords(t *testing.T) { commands.CheckDefaults(t, newRoot()) }
