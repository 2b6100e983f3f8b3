// Command landwaiter is for people: it predicts the server's answers, explains them, and sets
// up teams and platforms. It turns flags into Options: the work is in the packages below pkg.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

func main() {
	program.Main(func() *cobra.Command { return calledAs(newRoot(), os.Args[0]) })
}

func newRoot() *cobra.Command {
	ctrllog.SetLogger(logr.New(ctrllog.NullLogSink{})) // otherwise it prints a stack trace once a command takes 30 seconds
	by := newPerson()
	root := &cobra.Command{
		Use:   "landwaiter",
		Short: "Verify container images, and set up the rules that admit images to a Kubernetes cluster",
		Long: `Landwaiter verifies the signatures of container images for OPA Gatekeeper. If a namespace has no
resources, the resources of its Tenant or of the cluster apply. This program is for people and CI;
landwaiter-server answers Gatekeeper.

Exit codes of every command:
  0   the answer is yes, or the work is done
  1   the answer is no: an image is denied, something is wrong or missing, or a change is refused
  2   nothing is known to be denied or wrong, but something is unknown: a registry did not respond,
      or you lack a permission
  64  the command line is wrong, or a file that it names cannot be used
  69  something that the command needs failed, such as the Kubernetes API`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter check ./config/samples`,
	}
	by.AddFlags(root.PersistentFlags())
	// the glossary's word
	root.PersistentFlags().Lookup("certificate-authority").Usage = "File with the certificate of the CA that signed the API " +
		"server's certificate"
	by.register(root.PersistentFlags())
	root.PersistentPreRunE = by.check
	hideShared(root)
	return program.Root(root, newVerify(by), newPreview(by), newStatus(by), newCheck(by), newUI(by), newSupport(by), newCache(by),
		newTenant(by), newPlatform(by), newTrust(by), newOptions(), newVersion(by))
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of every command: cluster, user and namespace",
		Long: `Options lists the flags that every command has. They are kubectl's flags for the kubeconfig file,
the context, the cluster, the user (including --as) and the namespace.`,
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

// group returns a command that only has other commands.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: program.OnlyCommands, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	cmd.AddCommand(commands...)
	return cmd
}

// someImages refuses arguments without an image.
func someImages(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no image is given; see %s --help", cmd.CommandPath())
	}
	return nil
}

// pluginName is the name under which kubectl finds the program as its plugin.
const pluginName = "kubectl-landwaiter"

// calledAs makes help and errors name the program as it was called: as a plugin of kubectl,
// if its file has that name.
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

// printedVersion is the output of version.
type printedVersion program.Build

func (v printedVersion) show(s *screen) { s.line("%s", program.Build(v)) }

func newVersion(by person) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of Go",
		Long:    `Version prints the version of this program and of Go. "landwaiter --version" prints the same line.`,
		Example: "  landwaiter version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return by.output.print(cmd, printedVersion(program.VersionOf("landwaiter")))
		},
	}
	uses(cmd, 0, flagOutput)
	return cmd
}
