package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// printedResolution is what resolve prints.
type printedResolution struct {
	Image     string `json:"image"`
	Namespace string `json:"namespace,omitempty"`
	Digest    string `json:"digest"`
	Resolved  string `json:"resolved"`
}

func (r printedResolution) show(s *screen) { s.line("%s", r.Resolved) }

// printedResolutions is what resolve prints of the images of files.
type printedResolutions struct {
	Resolutions []printedResolution `json:"resolutions"`
}

func (r printedResolutions) show(s *screen) {
	for _, resolved := range r.Resolutions {
		resolved.show(s)
	}
}

// resolveImage asks for the digest of one image.
func resolveImage(ctx context.Context, by rules, q live.Use) (printedResolution, error) {
	ref, err := image.Parse(q.Image)
	if err != nil {
		return printedResolution{}, &program.Exit{Code: program.ExitDenied, Err: fmt.Errorf("%s: %w", used(q), err)}
	}
	pinned, err := by.Resolve(ctx, q.Namespace, ref)
	switch {
	case verify.IsPermanent(err):
		return printedResolution{}, &program.Exit{Code: program.ExitDenied, Err: err}
	case err != nil:
		return printedResolution{}, &program.Exit{Code: program.ExitUndecided, Err: err}
	}
	return printedResolution{Image: q.Image, Namespace: string(q.Namespace), Digest: pinned.Digest.String(), Resolved: pinned.String()}, nil
}

func newResolve(by person) *cobra.Command {
	flags := serviceFlags{by: by, anonymous: true}
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "resolve [--config-dir DIR] [--namespace NS] {IMAGE | -f FILE}",
		Short: "Print IMAGE with the digest that its tag names now",
		Long: `Resolve asks the registry which digest the tag of IMAGE names, as mutation does.
The Stores of the namespace, or of the cluster, give credentials and certificates:
those of the cluster of your kubeconfig, or those below --config-dir. Where there is
neither, the registry is asked anonymously over HTTPS.

With -f it resolves the images of the Pods and workloads in files, and -o json has a
list.

The default output is the image alone, for scripts.

Exit codes: 0 the tag was resolved, 1 the registry says that there is no such image,
or refuses access, or it has a private address and no ClusterStore lists it, 2 it
could not be asked, 64 the command line is wrong, or the resources cannot be used (as
for verify), 69 the result cannot be written.`,
		Example: `  landwaiter resolve docker.io/library/nginx:1.27
  landwaiter resolve --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		Args: flags.oneImage,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, questions, err := flags.ask(cmd, args, timeout)
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			all := printedResolutions{Resolutions: []printedResolution{}}
			for _, q := range questions {
				resolved, err := resolveImage(ctx, s, q)
				if err != nil {
					return err
				}
				all.Resolutions = append(all.Resolutions, resolved)
			}
			if len(flags.files) > 0 {
				return output.print(cmd, all)
			}
			return output.print(cmd, all.Resolutions[0])
		},
	}
	flags.registerRules(cmd)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "time to read the cluster, and again for the registry to answer")
	return cmd
}
