package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformCheck(by person) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Find what is wrong with the repository of a platform, before a cluster has it",
		Long: `Check builds every kustomization of a tree, and follows Flux from each cluster's folder
through everything that the tree applies there. It finds what does not build, paths,
sources and dependencies that are not there, dependencies in a circle, remote bases,
Kustomizations and HelmReleases without an account, objects that are applied twice,
resources of Landwaiter that would be refused, policies that require what is nowhere in
the tree, Tenants in conflict, namespaces of a Tenant without objects, bindings that give
a team's account more than its role, unknown fields, Secrets and keys in plain text,
manifests and folders that nothing applies, namespaces of objects that have none, charts
that nobody verifies, constraints that deny every image, those of Flux or the platform's
ExternalSecrets, and a Flux that is not locked down.

It reads files only: it follows no link, runs no plugin and fetches nothing, so it can
check what a stranger wrote.

Exit codes: 0 there are no findings, 1 there are, 64 the command line is wrong, 69 the
tree cannot be read.`,
		Example: `  landwaiter platform check .`,
		Args:    oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := scaffold.Check(cmd.Context(), args[0], scaffold.CheckOptions{Resources: lintCluster, MayAllow: mayAllow})
			if err != nil {
				return unusable(err)
			}
			found := printedFindings{Findings: report.Findings, Checked: printedChecked{Kustomizations: report.Kustomizations, Clusters: report.Clusters}}
			if err := by.output.print(cmd, found.whole()); err != nil {
				return err
			}
			return found.exit(false)
		},
	}
	uses(cmd, 0, flagOutput)
	return cmd
}

// unusable tells a folder or file of the command line that is not there from one that cannot be read.
func unusable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return program.Failed(err)
}

// mayAllow implements [scaffold.MayAllow].
func mayAllow(ctx context.Context, text string) (func(namespace, image string) bool, error) {
	files, err := configdir.Read(ctx, []string{configdir.Standard}, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return service.MayAllow(files.Objects), nil
}

// lintCluster returns what lint says is wrong with the resources of one cluster.
func lintCluster(ctx context.Context, text string) ([]string, error) {
	report, err := lint.CheckCluster(ctx, text, conditions.Check)
	return lintErrors(report), err
}

// lintText returns what lint says is wrong with resources.
func lintText(ctx context.Context, text string) ([]string, error) {
	report, err := lint.Check(ctx, []string{configdir.Standard}, strings.NewReader(text), conditions.Check)
	return lintErrors(report), err
}

// lintErrors leaves notes out: they are about what is not among the resources, and no finding.
func lintErrors(report lint.Report) []string {
	var found []string
	for _, f := range report.Findings {
		if f.Severity == resource.Error {
			found = append(found, said(f))
		}
	}
	return found
}
