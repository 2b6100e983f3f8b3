package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func newResolve() *cobra.Command {
	var flags engineFlags
	var namespace string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "resolve [--config-dir DIR] [--namespace NS] IMAGE",
		Short: "Print IMAGE with the digest that its tag names now",
		Long: `Resolve asks the registry which digest the tag of IMAGE names, as mutation does.
With --config-dir the Stores of the namespace, or of the cluster, give credentials
and certificates; without it the registry is asked anonymously over HTTPS.

Exit code: 0 if the tag was resolved, 1 if the registry says that there is no such
image, 2 if it could not be asked or the command was used wrongly.`,
		Example: `  landwaiter resolve docker.io/library/nginx:1.27
  landwaiter resolve --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ns, err := parseNamespaceFlag(namespace)
			if err != nil {
				return err
			}
			ref, err := image.Parse(args[0])
			if err != nil {
				return err
			}
			d, err := flags.loadOptional(cmd)
			if err != nil {
				return err
			}
			defer d.client.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			pinned, err := d.Resolve(ctx, ns, ref)
			switch {
			case verify.IsPermanent(err):
				return &exitError{code: exitDenied, err: err}
			case err != nil:
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pinned)
			return err
		},
	}
	flags.register(cmd, false)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace whose Stores are used (default: the cluster's)")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "time for the registry to answer")
	return cmd
}

// loadOptional is load, with nothing in force where no directory is given.
func (f *engineFlags) loadOptional(cmd *cobra.Command) (*desk, error) {
	if f.configDir != "" {
		d, _, err := f.load(cmd.Context(), cmd.ErrOrStderr())
		return d, err
	}
	d, err := f.newDesk(true)
	if err == nil {
		d.compile(cmd.Context(), resource.Objects{})
	}
	return d, err
}
