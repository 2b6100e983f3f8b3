// Command landwaiter decides which container images may enter a Kubernetes
// cluster. It only turns flags into Options: the work is in the packages below pkg.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/pkg/resources/lint"
)

// Exit codes of every command. Those from 64 on are from sysexits.h, so that a
// mistake in a script never looks like a verdict.
const (
	exitOK          = 0
	exitDenied      = 1  // an image was denied, or is not there, or lint found errors
	exitUndecided   = 2  // an image could not be decided
	exitUsage       = 64 // the command line is wrong, or a file that it names cannot be read
	exitUnavailable = 69 // something that the command needs failed
)

// exitError ends the program with a code, after printing its message, if any. All
// other errors end it with exitUsage.
type exitError struct {
	code int
	err  error
}

// unavailable marks a non-nil err as a failure that is not the command line's.
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
	// Several lines per try about servers that are down, none of them JSON. Metrics count
	// failed reads and writes.
	logging.Disable()
	// Libraries such as certificate-transparency-go log there about a signer's input,
	// and not in JSON. The finding has the outcome.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runAs(ctx, os.Args[0], os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runAs executes one command line of a program that was called by a name, and returns the
// exit code.
func runAs(ctx context.Context, program string, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // cobra hands the context to the commands
	calledAs(root, program)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if message := err.Error(); message != "" {
		sayLines(stderr, "landwaiter: "+message)
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
each namespace by its own resources or, where it has none, by the cluster's.

Exit codes: 0 all is well (for verify: every image is allowed), 1 an image was
denied, or lint found errors, 2 an image could not be decided, 64 the command line
is wrong, or a file or resource that it names cannot be used, 69 something that the
command needs failed, such as Redis or the address to listen on. The help of each
command says which it has.`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter lint ./config/samples
  landwaiter serve --config-dir /etc/landwaiter --tls-cert tls.crt --tls-key tls.key --client-ca gatekeeper-ca.crt`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionText(),
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate(thisVersion().String() + "\n")
	root.SetFlagErrorFunc(suggestFlag)
	root.AddCommand(newServe(), newVerify(), newResolve(), newExplain(), newPreview(), newStatus(), newDoctor(), newLint(), newCache(), newTenant(), newPlatform(), newTrust(), newOperate(), newVersion())
	return root
}

// group returns a command that only has others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: onlyCommands, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// onlyCommands refuses the arguments of a command that only has others, and suggests
// which one was meant.
func onlyCommands(cmd *cobra.Command, args []string) error {
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

// someImages refuses arguments without an image.
func someImages(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which image? see %s --help", cmd.CommandPath())
	}
	return nil
}

// suggestFlag adds to the error about an unknown flag which one was meant.
func suggestFlag(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) || missing.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near, ok := lint.Nearest(missing.GetSpecifiedName(), names); ok {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// pluginName is the name under which kubectl finds the program as its plugin.
const pluginName = "kubectl-landwaiter"

// calledAs makes help and errors name the program as it was called: as a plugin of kubectl,
// if that is the name of its file.
func calledAs(root *cobra.Command, program string) {
	if name, _, _ := strings.Cut(filepath.Base(program), "."); name != pluginName { // .exe
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl landwaiter"}
	renameExamples(root)
}

func renameExamples(cmd *cobra.Command) {
	lines := strings.SplitAfter(cmd.Example, "\n")
	for i, line := range lines {
		for _, before := range []string{"  ", "| "} {
			line = strings.Replace(line, before+"landwaiter ", before+"kubectl landwaiter ", 1)
		}
		lines[i] = line
	}
	cmd.Example = strings.Join(lines, "")
	for _, sub := range cmd.Commands() {
		renameExamples(sub)
	}
}

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version = ""

// printedVersion is what version prints.
type printedVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() printedVersion {
	return printedVersion{Version: versionText(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String returns the line that version and --version print.
func (v printedVersion) String() string {
	return fmt.Sprintf("landwaiter %s (%s, %s)", v.Version, v.Go, v.Platform)
}

func (v printedVersion) show(s *screen) { s.line("%s", v) }

func newVersion() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of Go",
		Long: `Version prints the version of this program and of Go, as landwaiter --version does.

Exit codes: 0, or 64 if the command line is wrong.`,
		Example: "  landwaiter version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return output.print(cmd, thisVersion())
		},
	}
	output.register(cmd)
	return cmd
}

// versionText returns the released version, or the one that the Go toolchain recorded.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
