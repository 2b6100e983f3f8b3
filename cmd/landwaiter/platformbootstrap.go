package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformBootstrap() *cobra.Command {
	var made scaffold.Bootstrap
	var file string
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print Flux, locked down, and the source that the tenants of flux-multitenant-demo share",
		Long: `Bootstrap reads what flux install --export prints, locks Flux down, adds the source that
tenants share, and prints all of it for kubectl apply. It talks to no cluster.

kubectl knows the kind of the source only once the CRDs are there: apply what is printed
twice. It may be applied again at any time, also after an upgrade of Flux.

With the lockdown, a tenant's Kustomization cannot use a source of another namespace:
landwaiter tenant add copies the source into the tenant's home namespace. --shared-source leaves
that part of the lockdown out, as the demo does; any team can then use every source.

Exit codes: 0 everything is printed, 64 the command line or the file is wrong, 69 the
result cannot be written.`,
		Example: `  flux install --export | landwaiter platform bootstrap -f - --git-url https://github.com/example/demo > flux.yaml
  kubectl apply --server-side -f flux.yaml || kubectl apply --server-side -f flux.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("--filename is required: run flux install --export, and give the file that has what it prints, or - for standard input")
			}
			components, err := readFile(cmd, "filename", file)
			if err != nil {
				return err
			}
			made.Components = components
			text, err := made.Manifest()
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return program.Failed(err)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "filename", "f", "", "file with what flux install --export prints, or - for standard input; required")
	f.StringVar(&made.URL, "git-url", "", "repository that tenants share: https or ssh")
	f.StringVar(&made.Branch, "git-branch", "main", "branch of the repository")
	f.StringSliceVar(&made.IgnorePaths, "ignore-paths", nil, "files of the repository that Flux leaves out, as in .gitignore (repeatable)")
	f.BoolVar(&made.SharedSource, "shared-source", false, "let Kustomizations of teams use sources of other namespaces")
	return cmd
}
