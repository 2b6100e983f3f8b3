package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/service"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// maxParallelImages is how many images of one command line are verified in parallel.
const maxParallelImages = 16

func newVerify() *cobra.Command {
	var flags serviceFlags
	var namespace string
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "verify --config-dir DIR [--namespace NS] IMAGE...",
		Short: "Verify images as the server would, with resources from files",
		Long: `Verify decides for each IMAGE as the server would for a pod of the namespace,
with the resources below --config-dir. Without --namespace only cluster resources
apply.

Resources that cannot be used deny where they apply, and are reported on standard
error. A directory without a resource of Landwaiter is an error. With --strict so is
a resource that cannot be used, and a namespace that is in no file.

Exit codes: 0 every image is allowed, 1 any is denied, 2 any could not be decided,
64 the command line is wrong, or the resources cannot be used (see above), 69 the
result cannot be written.`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter verify --config-dir . -o json registry.example.com/app@sha256:...`,
		Args: someImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			ns, err := parseNamespaceFlag(namespace)
			if err != nil {
				return err
			}
			refs, err := parseImages(args)
			if err != nil {
				return err
			}
			s, err := flags.load(cmd, ns)
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			results := verifyAll(ctx, s, ns, refs)
			printed := printableResults(args, results)
			if err := output.print(cmd, printed, printed.print); err != nil {
				return err
			}
			return exitFor(results)
		},
	}
	flags.register(cmd, true)
	flags.registerStrict(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace to verify for (empty: cluster resources only)")
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "time for all images together")
	return cmd
}

// parseNamespaceFlag reads --namespace; empty means cluster resources only.
func parseNamespaceFlag(s string) (verify.Namespace, error) {
	if s == "" {
		return verify.Cluster, nil
	}
	ns, err := verify.ParseNamespace(s)
	if err != nil {
		return "", fmt.Errorf("--namespace: %w", err)
	}
	return ns, nil
}

func parseImages(args []string) ([]image.Reference, error) {
	refs := make([]image.Reference, len(args))
	for i, arg := range args {
		ref, err := image.Parse(arg)
		if err != nil {
			return nil, err
		}
		refs[i] = ref
	}
	return refs, nil
}

func verifyAll(ctx context.Context, s *service.Service, ns verify.Namespace, refs []image.Reference) []verify.Result {
	results := make([]verify.Result, len(refs))
	var group errgroup.Group
	group.SetLimit(maxParallelImages)
	for i, ref := range refs {
		group.Go(func() error {
			results[i] = s.Verify(ctx, ns, ref)
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	return results
}

// exitFor turns results into the exit code: undecided outweighs denied, because
// the command then has no full answer.
func exitFor(results []verify.Result) error {
	code := exitOK
	for _, r := range results {
		switch r.Verdict.Outcome {
		case policy.Allowed:
		case policy.Denied:
			code = max(code, exitDenied)
		case policy.Undecided:
			code = exitUndecided
		default:
			return &exitError{code: exitUndecided, err: errors.New("internal error: unknown outcome")}
		}
	}
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}
