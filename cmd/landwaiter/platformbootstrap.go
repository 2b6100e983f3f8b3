package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformBootstrap() *cobra.Command {
	var made scaffold.Bootstrap
	var file string
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print Flux with a lockdown, and the shared source of flux-multitenant-demo",
		Long: `Bootstrap reads the output of "flux install --export", locks Flux down, adds the source that the
tenants share, and prints everything for "kubectl apply". It contacts no cluster.

Apply the output twice: kubectl only knows the kind of the source after the first run has created
the CRDs. You can apply it again at any time, also after an upgrade of Flux.

With the lockdown, a tenant's Kustomization cannot use a source in another namespace, so
"landwaiter tenant add" copies the source into the tenant's home namespace. --shared-source omits
that part of the lockdown, as the demo does. Any team can then use every source.`,
		Example: `  flux install --export | landwaiter platform bootstrap -f - --git-url https://github.com/example/demo > flux.yaml
  kubectl apply --server-side -f flux.yaml || kubectl apply --server-side -f flux.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("--filename is required: a file with the output of flux install --export, or - for standard input")
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
			return document(cmd.OutOrStdout(), []byte(text))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "filename", "f", "", "file with the output of flux install --export, or - for standard input; required")
	f.StringVar(&made.URL, "git-url", "", "https or ssh URL of the repository that the tenants share")
	f.StringVar(&made.Branch, "git-branch", "main", "branch of the repository")
	f.StringSliceVar(&made.IgnorePaths, "ignore-paths", nil, "files of the repository that Flux ignores, as in .gitignore (repeatable)")
	f.BoolVar(&made.SharedSource, "shared-source", false, "allow Kustomizations of teams to use sources in other namespaces")
	return cmd
}
