package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/evidence/breadth"
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
		Short: "Find problems in a platform's repository before a cluster applies it",
		Long: `Check builds each kustomization, and follows Flux's objects from each cluster's folder, which
flux bootstrap or a FluxInstance names, with the components and patches in their spec. It finds:

  builds       kustomizations that do not build; paths, sources and dependencies that do not exist;
               circular dependencies; remote bases; unknown fields; API versions that the tree's
               CRDs or newer versions of Flux do not have; files that .sourceignore keeps from Flux
  order        objects that are applied twice; manifests and folders that nothing applies;
               namespaces that nothing creates; Tenants that do not wait for constraints and
               guardrails; CRDs that Flux would prune
  permissions  Kustomizations and HelmReleases without a ServiceAccount, or with another team's
               account or source; a team's repository that is applied as cluster admin; bindings
               that give everyone, a team's ServiceAccounts or people more than the team's; Flux
               without the lockdown
  Tenants      Tenants in conflict; objects that a Tenant lacks, or that are not as it says; teams
               without a Tenant
  Landwaiter   resources that would be refused, or that require objects that the tree does not
               contain; policies that allow every image; namespaces of Tenants that are exempt from
               verification; values of Gatekeeper that open its webhook; constraints that deny every
               image, Flux's images or ExternalSecrets of the platform
  secrets      Secrets, keys and logins of kubeconfig files in plain text
  charts       charts without verification

In a team's own repository, check builds each folder. It finds objects that the file
.landwaiter-team.yaml, which platform scaffold --own writes, does not allow the team.

Check only reads files. It does not follow links, run plugins or Helm, or fetch anything, so you
can also check untrusted files.

Exit codes (64 and 69: see landwaiter --help):
  0  there are no findings
  1  there are findings`,
		Example: `  landwaiter platform check .`,
		Args:    oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := scaffold.Check(cmd.Context(), args[0],
				scaffold.CheckOptions{Resources: lintResources, Signer: judgeSigner, Near: policy.Nearest, MayAllow: mayAllow})
			if err != nil {
				return unusable(err)
			}
			found := printedFindings{Findings: report.Findings,
				Checked: printedChecked{Kustomizations: report.Kustomizations, Clusters: report.Clusters}}
			if err := by.output.print(cmd, found.whole()); err != nil {
				return err
			}
			return found.exit(false)
		},
	}
	uses(cmd, 0, flagOutput)
	return cmd
}

// unusable distinguishes a missing folder or file of the command line from an unreadable one.
func unusable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return program.Failed(err)
}

// mayAllow implements [scaffold.MayAllow].
func mayAllow(ctx context.Context, text string) (func(namespace, image string) bool, error) {
	files, err := configdir.Read(ctx, "", []string{configdir.Standard}, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return service.MayAllow(files.Objects), nil
}

// lintResources implements the function Resources of [scaffold.CheckOptions]. It omits notes, except about missing
// objects.
func lintResources(ctx context.Context, text string, whole bool) (found []resource.Finding, err error) {
	check := lint.CheckCluster
	if !whole {
		check = func(ctx context.Context, text string, problems func(resource.Objects) []resource.Problem) (lint.Report, error) {
			return lint.Check(ctx, "", []string{configdir.Standard}, strings.NewReader(text), problems)
		}
	}
	report, err := check(ctx, text, conditions.Check)
	for _, f := range report.Findings {
		elsewhere := !whole && f.Severity != resource.Error && f.ID == scaffold.MissingID
		switch {
		case elsewhere, resource.NeedsReview(policy.Reason(f.ID)) && f.Severity != resource.Note:
		case f.Severity == resource.Error:
			f.ID = "ResourceInvalid"
		default:
			continue
		}
		found = append(found, resource.Finding{ID: f.ID, Severity: f.Severity, Message: f.Remedied()})
	}
	return found, err
}

// judgeSigner implements the function Signer of [scaffold.CheckOptions].
func judgeSigner(issuer, subject string) (id, wrong string) {
	steps := breadth.MaxSteps
	switch judged := breadth.Flux(issuer, subject, &steps); {
	case judged.Nobody != "":
		return string(policy.ReasonIdentityMatchesNobody), "no signer has this identity: " + judged.Nobody
	case judged.Reach() == breadth.Anyone:
		return string(policy.ReasonIdentityForAnyone), "it also accepts " + judged.Named()
	case judged.Reach() == breadth.Insiders:
		return string(policy.ReasonIdentityTooBroad), "it also accepts " + judged.Named()
	}
	return "", ""
}

// lintText returns lint's findings about resources.
func lintText(ctx context.Context, text string) ([]string, error) {
	report, err := lint.Check(ctx, "", []string{configdir.Standard}, strings.NewReader(text), conditions.Check)
	return lintErrors(report), err
}

// lintErrors omits notes: they are about objects outside of the resources, and not findings.
func lintErrors(report lint.Report) []string {
	var found []string
	for _, f := range report.Findings {
		if f.Severity == resource.Error {
			found = append(found, f.Remedied())
		}
	}
	return found
}
