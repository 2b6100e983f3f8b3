// Command landwaiter decides which container images may enter a Kubernetes
// cluster. It is wiring only: what it does is in the packages below pkg, and
// `landwaiter --help` tells how to ask for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// Exit codes of every command. Those from 64 on are of sysexits.h, so that no
// mistake in a script looks like a verdict.
const (
	exitOK          = 0
	exitDenied      = 1  // an image was denied, or is not there
	exitUndecided   = 2  // an image could not be decided
	exitUsage       = 64 // the command line is wrong, or a file that it names cannot be read
	exitUnavailable = 69 // something that the command needs failed
)

// exitError ends the program with a code; its message, if any, is printed.
// All other errors end it with exitUsage.
type exitError struct {
	code int
	err  error
}

// unavailable marks err, if it is one, as no fault of the command line.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUnavailable, err: err}
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func main() {
	redis.SetLogger(unheard{})
	// Libraries write there of what a signer sent (certificate-transparency-go does),
	// and not in JSON: the finding says what came of it.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// unheard is where go-redis writes of servers that are gone, several lines for each
// try and none of them JSON: metrics count what could not be read or written.
type unheard struct{}

// Printf drops a line.
func (unheard) Printf(context.Context, string, ...any) {}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if message := err.Error(); message != "" {
		fmt.Fprintln(stderr, "landwaiter:", message)
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	return exitUsage
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "landwaiter",
		Short: "Decide which container images may enter a Kubernetes cluster",
		Long: `Landwaiter verifies the signatures of container images for OPA Gatekeeper, for
every namespace by the resources of that namespace or, where it has none, by
the cluster's.

Exit codes: 0 all is well (for verify: every image is allowed), 1 an image was
denied, 2 an image could not be decided, 64 the command line is wrong or a file
that it names cannot be read, 69 something that the command needs failed, such as
Redis or the address to listen on.`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter serve --config-dir /etc/landwaiter --tls-cert tls.crt --tls-key tls.key --client-ca gatekeeper-ca.crt`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newServe(), newVerify(), newResolve(), newExplain(), newCache(), newVersion())
	return root
}
