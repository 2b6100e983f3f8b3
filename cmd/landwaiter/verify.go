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
	var namespace, output string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "verify --config-dir DIR [--namespace NS] IMAGE...",
		Short: "Verify images as the server would, with resources from files",
		Long: `Verify decides for each IMAGE as the server would for a pod of the namespace,
with the resources below --config-dir. Without --namespace only cluster resources
apply.

Exit code: 0 if every image is allowed, 1 if any is denied, 2 if any could not be
decided, 64 if the command line is wrong or a file cannot be read.`,
		Example: `  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter verify --config-dir . -o json registry.example.com/app@sha256:...`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			ns, err := parseNamespaceFlag(namespace)
			if err != nil {
				return err
			}
			refs, err := parseImages(args)
			if err != nil {
				return err
			}
			s, err := flags.load(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			results := verifyAll(ctx, s, ns, refs)
			if err := printResults(cmd.OutOrStdout(), output, args, results); err != nil {
				return unavailable(err)
			}
			return exitFor(results)
		},
	}
	flags.register(cmd, true)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace to verify for (empty: cluster resources only)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
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

// checkOutput refuses a value of --output that is neither of the two.
func checkOutput(output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output is %q, it must be table or json", output)
	}
	return nil
}
