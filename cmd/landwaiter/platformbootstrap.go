package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformBootstrap() *cobra.Command {
	var export, shared bool
	var url, branch string
	cmd := &cobra.Command{
		Use:   "bootstrap --export",
		Short: "Print what flux-multitenant-demo's bootstrap applies besides Flux itself",
		Long: `Bootstrap prints the source that tenants share, and on standard error the command
that installs Flux, locked down. It talks to no cluster.

With the lockdown, a tenant's Kustomization cannot use a source of another namespace:
landwaiter tenant add copies the source into the tenant's home namespace. --shared-source leaves
that part of the lockdown out, as the demo does; any team can then use every source.

Exit codes: 0 everything is printed, 64 the command line is wrong, 69 the result cannot
be written.`,
		Example: `  landwaiter platform bootstrap --export --git-url https://github.com/example/demo > source.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !export {
				return fmt.Errorf("bootstrap only prints: add --export, and apply what it prints; see %s --help", cmd.CommandPath())
			}
			text, command, err := scaffold.Bootstrap(url, branch, shared)
			if err != nil {
				return err
			}
			said := newScreen(cmd.ErrOrStderr())
			for line := range strings.SplitSeq(command, "\n") { // to be copied
				said.line("%s", line)
			}
			if err := said.flush(); err != nil {
				return program.Failed(err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return program.Failed(err)
		},
	}
	cmd.Flags().BoolVar(&export, "export", false, "print, and apply nothing; required")
	cmd.Flags().StringVar(&url, "git-url", "", "repository that tenants share: https or ssh")
	cmd.Flags().StringVar(&branch, "git-branch", "main", "branch of the repository")
	cmd.Flags().BoolVar(&shared, "shared-source", false, "let Kustomizations of teams use sources of other namespaces")
	return cmd
}
