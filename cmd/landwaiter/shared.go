package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
)

// Flags of several commands. They are registered once, on the root; a command lists the ones
// that it uses with [uses]; the others are refused.
const (
	flagOutput  = "output"
	flagTimeout = "timeout"
	flagAccount = "landwaiter-account"
	flagDryRun  = "dry-run"
	flagForce   = "force"
)

// sharedFlags returns their names.
func sharedFlags() []string {
	return []string{flagAccount, flagDryRun, flagForce, flagOutput, flagTimeout}
}

// defaultAccount is Landwaiter's ServiceAccount as the chart creates it.
const defaultAccount = "landwaiter-system/landwaiter"

// shared are the values of these flags.
type shared struct {
	output  format
	timeout time.Duration
	account string
	dryRun  bool
	force   bool
}

// register declares the flags on the root.
func (s *shared) register(root *pflag.FlagSet) {
	s.output.add(root)
	root.DurationVar(&s.timeout, flagTimeout, 0, "time limit of the whole command")
	root.StringVar(&s.account, flagAccount, defaultAccount, "ServiceAccount of Landwaiter, as NAMESPACE/NAME")
	root.BoolVar(&s.dryRun, flagDryRun, false, "print what would happen, and change nothing")
	root.BoolVar(&s.force, flagForce, false, "replace files that someone edited")
}

// landwaiter returns the ServiceAccount of Landwaiter, whose namespace is that of the
// installation.
func (s *shared) landwaiter() (types.NamespacedName, error) {
	return program.ParseAccount(s.account)
}

// within returns the timeout of a command: --timeout, or else its own default.
func (s *shared) within(cmd *cobra.Command) time.Duration {
	if cmd.Flags().Changed(flagTimeout) {
		return s.timeout
	}
	own, _ := time.ParseDuration(cmd.Annotations[flagTimeout]) // as written by uses
	return own
}

// uses sets the shared flags that a command uses, and its default timeout. A default of 0 means
// that it does not use --timeout.
func uses(cmd *cobra.Command, timeout time.Duration, flags ...string) {
	cmd.Annotations = map[string]string{}
	if timeout > 0 {
		cmd.Annotations[flagTimeout] = timeout.String()
	}
	for _, flag := range flags {
		cmd.Annotations[flag] = ""
	}
}

// refused is the prefix of the annotation with the alternative to a shared flag.
const refused = "without "

// refuses sets the alternative to a shared flag that a command does not use.
func refuses(cmd *cobra.Command, flag, instead string) { cmd.Annotations[refused+flag] = instead }

// check refuses shared flags that a command does not use, and a timeout of 0.
func (s *shared) check(cmd *cobra.Command, _ []string) error {
	for _, name := range sharedFlags() {
		if _, used := cmd.Annotations[name]; !used && cmd.Flags().Changed(name) {
			return fmt.Errorf("%s does not accept --%s: %s", cmd.CommandPath(), name, cmp.Or(cmd.Annotations[refused+name], "leave it out"))
		}
	}
	if cmd.Flags().Changed(flagTimeout) && s.timeout <= 0 {
		return fmt.Errorf("--%s is %s, it must be more than 0", flagTimeout, s.timeout)
	}
	return nil
}

// hideShared makes the help of a command show, of the shared flags, those that the command uses,
// and names the command that lists kubectl's, as kubectl's own help does.
func hideShared(root *cobra.Command) {
	flags, usage := root.PersistentFlags(), root.UsageFunc()
	root.SetUsageTemplate(root.UsageTemplate() + `
Use "{{.Root.CommandPath}} options" for the flags of every command (cluster, user, namespace).
`)
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		before := map[*pflag.Flag]pflag.Flag{}
		flags.VisitAll(func(flag *pflag.Flag) {
			before[flag] = *flag
			own, used := cmd.Annotations[flag.Name]
			flag.Hidden = !used
			if own != "" {
				flag.DefValue = own
			}
		})
		defer func() {
			for flag, was := range before {
				flag.Hidden, flag.DefValue = was.Hidden, was.DefValue
			}
		}()
		return usage(cmd)
	})
}
