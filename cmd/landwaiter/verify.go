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

// maxParallelImages is the number of images of one command line that are verified in
// parallel.
const maxParallelImages = 16

// verifyFlags are the flags of verify in addition to those that select the rules.
type verifyFlags struct {
	serviceFlags

	explain, digest, compare bool
}

func newVerify(by person) *cobra.Command {
	flags := verifyFlags{serviceFlags: serviceFlags{by: by}}
	cmd := &cobra.Command{
		Use:   "verify [--explain | --digest] {IMAGE... | -f FILE}",
		Short: "Verify images as the server would, with the resources of a cluster or of files",
		Long: `Verify decides about each IMAGE as the server would for a pod in the namespace. With -f, it
decides about the images of Pods and workloads in files. It reads the resources of the cluster
with your permissions. With --config-dir, it reads the resources from files and needs no cluster.
If you then omit --namespace, only cluster resources apply.

--explain also shows which resources apply, what was found, and how long each step took. --digest
only resolves tags to digests, as mutation does. Without a cluster and --config-dir, --digest
queries the registry anonymously.

If you cannot read everything that decides about an image, the image is undecided, and standard
error first names the role that you lack. With the role edit, you can ask the server instead, with
the printed "kubectl run", which creates no pod. If you cannot read all exceptions, a denial says
that one might apply.

Some flags of the server change verdicts: repeat these flags with --serve-flag. If you can read the
server's Deployment, verify reads the flags for exceptions and break-glass there. For resources of a
cluster, verify never uses your machine's cloud identity, "docker login" or Vault token.

Exit codes (64 and 69: see landwaiter --help):
  0  every image is allowed; with --digest: every tag has a digest
  1  an image is denied; with --digest: an image does not exist, or the registry refuses access
  2  an image is undecided; with --strict: a resource has a problem, or no file contains an object
     in the namespace`,
		Example: `  landwaiter verify --namespace team-a --explain registry.example.com/team-a/app:v1
  kustomize build overlays/production | landwaiter verify -n team-a -f -
  landwaiter verify --config-dir ./config/samples --namespace team-a registry.example.com/team-a/app:v1`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.registerRules(cmd)
	uses(cmd, 30*time.Second, flagOutput, flagAccount)
	f := cmd.Flags()
	f.BoolVar(&flags.explain, "explain", false, "show which resources apply to each image, what was found, and how long each step took")
	f.BoolVar(&flags.digest, "digest", false, "only resolve each tag to its digest, without verification")
	f.BoolVar(&flags.compare, "compare-origin", false, "with --explain, also list evidence in the image's own registry that mirrors and "+
		"evidence repositories lack")
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.explain && f.digest:
		return errors.New("--explain and --digest cannot be used together")
	case f.compare && !f.explain:
		return errors.New("--compare-origin requires --explain")
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
	return program.Answered(no, undecided, "not every image could be decided: see the reason of each undecided image")
}
