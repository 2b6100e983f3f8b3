package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformInit(by person) *cobra.Command {
	flags := writeFlags{by: by}
	var given scaffold.Platform
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the repository of a platform: Gatekeeper, Landwaiter, policies and Flux, in order",
		Long: `Init writes a tree of files that Flux applies in this order: the CRDs,
Gatekeeper and Landwaiter, the templates, the constraints, the guardrails, then tenants.
It talks to no cluster.

--layout=flux has a folder for each environment, as flux2-multi-tenancy, groups has
groups of clusters, as Flux with TMC, arc has a folder for each app and tenant, as soft
multi-tenancy with Arc, and demo is flux-multitenant-demo.

It may be run again, also by a newer version: it starts from what the first run was
told (.landwaiter.yaml). --environment, --group and --cluster add to that, other flags
replace it; to take something away, edit .landwaiter.yaml first. Init replaces only files
that nobody edited. An edited file stays as it is. If there is a new version of one, init
says what --force would undo, and writes nothing. Files that others go on to write, such as
those of flux bootstrap and the lists of tenants, are only ever created.

With --enforcement deny, the tree must have a policy or Verifier that can allow an image:
without one no pod starts any more. Init then writes nothing and says what is missing.
exemptNamespaces in .landwaiter.yaml lists the namespaces whose images are not verified,
among them those of Flux, Gatekeeper and Landwaiter.

Exit codes: 0 the tree is written, 1 a file was edited, or the tree would deny every
image or those of Flux, 64 the command line is wrong, 69 a file cannot be read or written.`,
		Example: `  landwaiter platform init fleet --github-org example
  landwaiter platform init fleet --layout groups --group infra-ops --group dev --cluster dev/iris-dev`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			platform, found, err := settings(args[0])
			if err != nil {
				return err
			}
			if !found {
				if err := outsideOfTrees(args[0]); err != nil {
					return err
				}
			}
			if asked := given.Layout; found && asked != "" && asked != platform.Layout {
				return fmt.Errorf("%s has the layout %s: give --layout=%s a folder of its own, because this one has clusters and teams that the other layout does not have", args[0], platform.Layout, asked)
			}
			overlayPlatform(cmd, &platform, given)
			tree, err := scaffold.NewPlatform(platform)
			if err != nil {
				return err
			}
			if platform, err = platform.Complete(); err != nil {
				return err
			}
			if err := platform.CheckLockout(cmd.Context(), args[0], tree, flags.WriteOptions, mayAllow); err != nil {
				return notWritten(err)
			}
			return flags.write(cmd, args[0], tree)
		},
	}
	registerPlatform(cmd, &given)
	flags.register(cmd)
	return cmd
}

func registerPlatform(cmd *cobra.Command, p *scaffold.Platform) {
	flags := cmd.Flags()
	flags.StringVar((*string)(&p.Layout), "layout", "", "flux, groups, arc or demo (empty: flux)")
	flags.StringSliceVar(&p.Environments, "environment", nil, "environment with a cluster of its own, with --layout=flux (repeatable; none: staging, production)")
	flags.StringSliceVar(&p.Groups, "group", nil, "group of clusters, with --layout=groups (repeatable; none: infra-ops, dev, test); infra-ops has no tenants")
	flags.StringSliceVar(&p.Clusters, "cluster", nil, "cluster, with --layout=arc, or GROUP/CLUSTER, with --layout=groups (repeatable)")
	flags.StringSliceVar(&p.Constraints, "constraints", nil, "set of constraints to install: baseline, flux, images, restricted or secrets (repeatable; none: all)")
	flags.StringVar(&p.Enforcement, "enforcement", "", "dryrun, warn or deny: what constraints do about violations (empty: dryrun)")
	flags.StringVar(&p.GitHubOrg, "github-org", "", "organisation at GitHub that sources of teams must belong to")
	flags.StringVar(&p.SOPSAge, "sops-age", "", "age recipient that Secrets in the tree are encrypted for; the cluster has the key in Secret flux-system/sops-age")
	flags.BoolVar(&p.Operator, "operator", false, "install the operator, and keep only Tenants in Git, without the objects that they stand for")
	flags.BoolVar(&p.SharedSource, "shared-source", false, "allow references across namespaces, which a source that teams share needs: any team can then use every source")
	flags.StringVar(&p.Gatekeeper.URL, "gatekeeper-chart", "", "Helm repository (https), or chart in a registry (oci), of Gatekeeper (empty: Gatekeeper's own)")
	flags.StringVar(&p.Gatekeeper.Version, "gatekeeper-version", "", "version of that chart (empty: the newest that is tested)")
	flags.StringVar(&p.Landwaiter.URL, "landwaiter-chart", "", "Helm repository (https), or chart in a registry (oci), of Landwaiter (empty: oci://ghcr.io/landwaiter/charts/landwaiter)")
	flags.StringVar(&p.Landwaiter.Version, "landwaiter-version", "", "version of that chart (empty: the program's own)")
	flags.StringVar(&p.LandwaiterImage, "landwaiter-image", "", "image of Landwaiter without a tag, which is the version of the chart or image.tag in values-own.yaml (empty: the chart's image)")
	flags.StringVar(&p.CheckSHA256, "check-sha256", "", "checksum of the program that the workflow downloads, from SHA256SUMS of the release (empty: the repository variable LANDWAITER_SHA256)")
}

// overlayPlatform replaces what flags say in what an earlier run was told.
func overlayPlatform(cmd *cobra.Command, p *scaffold.Platform, given scaffold.Platform) {
	set := cmd.Flags().Changed
	for flag, replace := range map[string]func(){
		"layout":             func() { p.Layout = given.Layout },
		"environment":        func() { p.Environments = grown(p.Environments, given.Environments) },
		"group":              func() { p.Groups = grown(p.Groups, given.Groups) },
		"cluster":            func() { p.Clusters = grown(p.Clusters, given.Clusters) },
		"constraints":        func() { p.Constraints = given.Constraints },
		"enforcement":        func() { p.Enforcement = given.Enforcement },
		"github-org":         func() { p.GitHubOrg = given.GitHubOrg },
		"sops-age":           func() { p.SOPSAge = given.SOPSAge },
		"operator":           func() { p.Operator = given.Operator },
		"shared-source":      func() { p.SharedSource = given.SharedSource },
		"gatekeeper-chart":   func() { p.Gatekeeper.URL = given.Gatekeeper.URL },
		"gatekeeper-version": func() { p.Gatekeeper.Version = given.Gatekeeper.Version },
		"landwaiter-chart":   func() { p.Landwaiter.URL = given.Landwaiter.URL },
		"landwaiter-version": func() { p.Landwaiter.Version = given.Landwaiter.Version },
		"landwaiter-image":   func() { p.LandwaiterImage = given.LandwaiterImage },
		"check-sha256":       func() { p.CheckSHA256 = given.CheckSHA256 },
	} {
		if set(flag) {
			replace()
		}
	}
}

// grown adds the names that a list does not have.
func grown(list, more []string) []string {
	return slices.Concat(list, slices.DeleteFunc(slices.Clone(more), func(name string) bool { return slices.Contains(list, name) }))
}
