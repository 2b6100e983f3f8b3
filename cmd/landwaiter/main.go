// Command landwaiter is what people run: it asks what the server would answer, shows why,
// and sets up teams and platforms. It turns flags into Options: the work is in the packages
// below pkg.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

func main() {
	program.Main(func() *cobra.Command { return calledAs(newRoot(), os.Args[0]) })
}

func newRoot() *cobra.Command {
	by := newPerson()
	root := &cobra.Command{
		Use:   "landwaiter",
		Short: "Ask and set up what decides which container images may enter a Kubernetes cluster",
		Long: `Landwaiter verifies the signatures of container images for OPA Gatekeeper, for
each namespace by its own resources or, where it has none, by the cluster's. This is the
program for people; landwaiter-server answers Gatekeeper.

Exit codes of every command: 0 as asked (verify: every image is allowed), 1 the answer is
no (an image is denied, something is wrong, not there, or refused), 2 no part of the
answer is no, but part of it could not be decided, 64 the command line is wrong, or a
file that it names cannot be used, 69 something that the command needs failed, such as
the Kubernetes API.`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter check ./config/samples`,
	}
	by.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("certificate-authority").Usage = "File with the certificate of the CA that signed the API server's" // in the pages' words
	by.register(root.PersistentFlags())
	root.PersistentPreRunE = by.check
	hideShared(root)
	return program.Root(root, newVerify(by), newPreview(by), newStatus(by), newCheck(by), newSupport(by), newCache(by), newTenant(by), newPlatform(by), newTrust(by), newOptions(), newVersion(by))
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of every command: which cluster, which user, which namespace",
		Long: `Options lists the flags that every command has. They are those of kubectl: which
kubeconfig file, context, cluster and user, whom to impersonate (--as), and the namespace.

Exit codes: 0, or 64 if the command line is wrong.`,
		Example: "  landwaiter options",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clusterFlags := pflag.NewFlagSet("", pflag.ContinueOnError)
			cmd.Root().PersistentFlags().VisitAll(func(flag *pflag.Flag) {
				if !slices.Contains(sharedFlags(), flag.Name) {
					clusterFlags.AddFlag(flag)
				}
			})
			s := newScreen(cmd.OutOrStdout())
			for line := range strings.Lines(clusterFlags.FlagUsages()) {
				s.line("%s", strings.TrimRight(line, "\n"))
			}
			return program.Failed(s.flush())
		},
	}
}

// group returns a command that only has others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: program.OnlyCommands, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// someImages refuses arguments without an image.
func someImages(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which image? see %s --help", cmd.CommandPath())
	}
	return nil
}

// pluginName is the name under which kubectl finds the program as its plugin.
const pluginName = "kubectl-landwaiter"

// calledAs makes help and errors name the program as it was called: as a plugin of kubectl,
// if that is the name of its file.
func calledAs(root *cobra.Command, file string) *cobra.Command {
	if name, _, _ := strings.Cut(filepath.Base(file), "."); name != pluginName { // .exe
		return root
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl landwaiter"}
	renameExamples(root)
	return root
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

// printedVersion is what version prints.
type printedVersion program.Build

func (v printedVersion) show(s *screen) { s.line("%s", program.Build(v)) }

func newVersion(by person) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of Go",
		Long: `Version prints the version of this program and of Go, as landwaiter --version does.

Exit codes: 0, or 64 if the command line is wrong.`,
		Example: "  landwaiter version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return by.output.print(cmd, printedVersion(program.VersionOf("landwaiter")))
		},
	}
	uses(cmd, 0, flagOutput)
	return cmd
}
