// Package program is the code that landwaiter and landwaiter-server share: how a command line
// runs and ends, how it prints strangers' text, its version, and the flags of both.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Exit codes of every command of both programs. Those from 64 on are from sysexits.h, so that a
// mistake in a script never looks like an answer.
const (
	ExitOK          = 0  // success
	ExitDenied      = 1  // the answer is no: an image is denied, something is wrong, missing or refused
	ExitUndecided   = 2  // no part of the answer is no, but part of it could not be decided
	ExitUsage       = 64 // the command line is wrong, or a file that it names cannot be used
	ExitUnavailable = 69 // something that the command needs failed, such as an API server or a disk
)

// Exit ends a program with a code, after printing Err, if any. Any other error ends it with
// [ExitUsage].
type Exit struct {
	Code int
	Err  error
}

// Failed marks a non-nil err as a failure unrelated to the command line: [ExitUndecided] if a
// permission is missing at an API server, else [ExitUnavailable].
func Failed(err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return &Exit{Code: ExitUndecided, Err: err}
	}
	return &Exit{Code: ExitUnavailable, Err: err}
}

// Answered returns how a command ends that answers a question: a no is the answer, even if other parts are
// undecided. It is nil for a yes. The error for undecided contains unknown: the missing part of the output,
// and where it says why.
func Answered(no, undecided bool, unknown string) error {
	switch {
	case no:
		return &Exit{Code: ExitDenied}
	case undecided:
		return &Exit{Code: ExitUndecided, Err: errors.New(unknown)}
	}
	return nil
}

// Error returns the text of Err, "" without one.
func (e *Exit) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Exit) Unwrap() error { return e.Err }

// Main runs the command line of the process, with a context that SIGINT and SIGTERM end, and
// exits.
func Main(root func() *cobra.Command) {
	// Several lines per attempt about servers that are down, none of them JSON. Metrics count
	// failed reads and writes.
	logging.Disable()
	// Libraries such as certificate-transparency-go log about a signer's input there, and not in
	// JSON. The finding has the outcome.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, root(), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run executes one command line and returns the exit code. An error is printed after the name
// of the program.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if message := err.Error(); message != "" {
		SayLines(stderr, root.Name()+": "+message)
	}
	var exit *Exit
	if errors.As(err, &exit) {
		return exit.Code
	}
	return ExitUsage
}

// Root prepares a program's first command: only [Run] prints its errors, it has --version, and
// it suggests commands for unknown words. It gives cobra no template: with text/template the
// linker keeps every method of every type, a fifth of the server.
func Root(root *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args = OnlyCommands
	version := root.Flags().BoolP("version", "v", false, "version for "+root.Name())
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			Say(cmd.OutOrStdout(), "%s", VersionOf(root.Name()))
			return nil
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(commands...)
	return root
}

// OnlyCommands refuses the arguments of a command that only has other commands, and suggests the
// intended one.
func OnlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("%s; did you mean %s?", text, strings.Join(near, " or "))
	}
	return fmt.Errorf("%s; see %s --help", text, cmd.CommandPath())
}

// suggestFlag adds the intended flag to the error about an unknown one. If the command takes files without
// a flag, it says so.
func suggestFlag(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return err
	}
	if name := missing.GetSpecifiedName(); strings.Contains(cmd.Use, "FILE") && (name == "f" || name == "filename") {
		return fmt.Errorf("files are arguments of %s: leave out the flag before them", cmd.CommandPath())
	}
	if missing.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near, ok := policy.Nearest(missing.GetSpecifiedName(), names); ok {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
