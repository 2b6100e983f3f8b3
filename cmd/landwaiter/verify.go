package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// maxParallelImages is how many images of one command line are verified in parallel.
const maxParallelImages = 16

// verifyFlags are the flags of verify besides those that say by what it decides.
type verifyFlags struct {
	serviceFlags

	explain, digest, compare bool
}

func newVerify(by person) *cobra.Command {
	flags := verifyFlags{serviceFlags: serviceFlags{by: by}}
	cmd := &cobra.Command{
		Use:   "verify [--explain | --digest] {IMAGE... | -f FILE}",
		Short: "Verify images as the server would, with resources of a cluster or from files",
		Long: `Verify decides for each IMAGE, or each image of the workloads in files (-f), as the
server would for a pod of the namespace. It reads the resources of the cluster with your
permissions, or those in the files below --config-dir; then without --namespace only
cluster resources apply. --explain shows which resources apply, what was found and how
long it took; --digest asks only which digest each tag names, as mutation does, where there
is neither a cluster nor a directory anonymously.

What you may not read makes a verdict undecided, and the reason names the permission.
Flags of the server that verdicts depend on have to be repeated with --serve-flag; those
about exceptions and break-glass are read from its Deployment, if you may. The cloud identity
of your machine, its docker login and its Vault token are never used for a cluster's resources.

Exit codes: 0 every image is allowed (--digest: every tag has one), 1 any is denied
(--digest: is not there, or may not be asked for), 2 any could not be decided, 64 the
command line is wrong, or a file cannot be used, 69 the API server does not answer.`,
		Example: `  landwaiter verify --namespace team-a --explain registry.example.com/team-a/app:v1
  kustomize build overlays/production | landwaiter verify -n team-a -f -
  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.registerRules(cmd)
	uses(cmd, 30*time.Second, flagOutput, flagAccount)
	f := cmd.Flags()
	f.BoolVar(&flags.explain, "explain", false, "show which resources apply to each image, what was found, and how long it took")
	f.BoolVar(&flags.digest, "digest", false, "print each image with the digest that its tag names now, and verify nothing")
	f.BoolVar(&flags.compare, "compare-origin", false, "with --explain, also ask the registry that the image names, and say what mirrors and evidence repositories lack")
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.explain && f.digest:
		return errors.New("--explain and --digest exclude each other")
	case f.compare && !f.explain:
		return errors.New("--compare-origin means nothing without --explain")
	}
	f.anonymous = f.digest
	timeout := f.by.within(cmd)
	by, questions, err := f.ask(cmd, args, timeout)
	if err != nil {
		return err
	}
	defer by.Close()
	if f.explain {
		explained, results := f.explainAll(cmd.Context(), by, questions, timeout)
		if err := f.by.output.print(cmd, explained); err != nil {
			return err
		}
		return exitFor(results)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	if f.digest {
		resolved, err := resolveAll(ctx, by, questions)
		if err != nil {
			return err
		}
		return f.by.output.print(cmd, resolved)
	}
	results := by.verifyAll(ctx, questions)
	if err := f.by.output.print(cmd, printableResults(questions, results)); err != nil {
		return err
	}
	return exitFor(results)
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

// exitFor turns results into the exit code.
func exitFor(results []verify.Result) error {
	no, undecided := false, false
	for _, r := range results {
		answer := r.Answer()
		undecided = undecided || answer == verify.AnswerUndecided
		no = no || !answer.Allows() && answer != verify.AnswerUndecided
	}
	return program.Answered(no, undecided)
}
