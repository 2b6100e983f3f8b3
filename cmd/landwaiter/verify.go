package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// maxParallelImages is how many images of one command line are verified in parallel.
const maxParallelImages = 16

func newVerify(by person) *cobra.Command {
	flags := serviceFlags{by: by}
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "verify [--config-dir DIR] [--namespace NS] {IMAGE... | -f FILE}",
		Short: "Verify images as the server would, with resources of a cluster or from files",
		Long: `Verify decides for each IMAGE as the server would for a pod of the namespace, with
the resources of the cluster of your kubeconfig, which it reads with your permissions, or
with those in the files below --config-dir; then without --namespace only cluster
resources apply.

With -f the images are those of the Pods and workloads in files, lists and the output
of kustomize. Objects without a namespace are in that of --namespace.

What you may not read in the cluster makes a verdict undecided, and the reason names
the permission; landwaiter preview --help names the roles. Flags of the server that change
verdicts have to be repeated: --egress-host, --cluster-cidr and --cloud-endpoint. Those
about exceptions and break-glass are read from its Deployment; where you may not read
it, repeat them too, or break-glass leaves what it may allow undecided. The cloud
identity of your machine, its docker login and its Vault token are never used for a
cluster's resources.

Resources that cannot be used deny where they apply, and are reported on standard
error. A directory without a resource of Landwaiter is an error. With --strict so is
a resource that cannot be used, and a namespace that is in no file.

Exit codes: 0 every image is allowed, 1 any is denied, 2 any could not be decided,
64 the command line is wrong, or the resources cannot be used (see above), 69 the
API server does not answer, or the result cannot be written.`,
		Example: `  landwaiter verify --namespace team-a registry.example.com/team-a/app:v1
  kustomize build overlays/production | landwaiter verify -n team-a -f -
  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1
  landwaiter verify --config-dir . -o json registry.example.com/app@sha256:...`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, questions, err := flags.ask(cmd, args, timeout)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			results := r.verifyAll(ctx, questions)
			if err := output.print(cmd, printableResults(questions, results)); err != nil {
				return err
			}
			return exitFor(results)
		},
	}
	flags.registerRules(cmd)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "time to read the cluster, and again for all images together")
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

// exitFor turns results into the exit code: undecided outweighs denied, because
// the command then has no full answer.
func exitFor(results []verify.Result) error {
	code := program.ExitOK
	for _, r := range results {
		switch answer := r.Answer(); {
		case answer.Allows():
		case answer == verify.AnswerUndecided:
			code = program.ExitUndecided
		default:
			code = max(code, program.ExitDenied)
		}
	}
	if code == program.ExitOK {
		return nil
	}
	return &program.Exit{Code: code}
}
