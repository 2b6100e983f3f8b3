package main

import (
	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

func newPlatformInit(by person) *cobra.Command {
	told := scaffold.Told{Settings: onboard.Settings{Near: policy.Nearest}}
	var file string
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the repository of a platform: Gatekeeper, Landwaiter, policies and Flux, in order",
		Long: `Init writes a tree of files that Flux applies in this order: the CRDs,
Gatekeeper and Landwaiter, the templates, the constraints, the guardrails, then tenants.
It talks to no cluster.

--layout=flux has a folder for each environment, as flux2-multi-tenancy, groups has
groups of clusters, as Flux with TMC, arc has a folder for each app and tenant, as soft
multi-tenancy with Arc, and demo is flux-multitenant-demo.

What a tree is made with stands in its .landwaiter.yaml: the environments, groups or
clusters, the sets of constraints and their enforcement, githubOrg, allowedSources,
sopsAge (or sopsPGP, sopsKMS), operator, sharedSource, secretStores, the charts
(landwaiter.url, version, digest and verify, and those of gatekeeper), landwaiterImage
and checkSHA256. --set adds to it: lists grow, other values are replaced. --filename
replaces it. To take something away, edit .landwaiter.yaml first.

It may be run again, also by a newer version, and replaces only files that nobody edited.
If there is a new version of an edited file, init says what --force would undo, and
writes nothing. Files that others go on to write, such as those of flux bootstrap and the
lists of tenants, are only ever created.

With enforcement=deny, the tree must have a policy or Verifier that can allow an image:
without one no pod starts any more. Init then writes nothing and says what is missing.
The images in exemptNamespaces are not verified, those of Flux among them. The rules for
teams leave out infrastructureNamespaces.

Exit codes: 0 the tree is written, 1 a file was edited, the tree would deny every image or
those of Flux, or Flux would delete what a team has, 64 the command line is wrong, 69 a
file cannot be read or written.`,
		Example: `  landwaiter platform init fleet --set githubOrg=example
  landwaiter platform init fleet --layout groups --set 'groups=[infra-ops, dev]' --set clusters=dev/iris-dev`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return writePlatform(cmd, by, args[0], file, told) },
	}
	cmd.Flags().StringVar((*string)(&told.Layout), "layout", "", "flux, groups, arc or demo (empty: that of the tree, or flux)")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file like .landwaiter.yaml, or - for standard input, that replaces what the tree has")
	cmd.Flags().StringArrayVar(&told.Settings.Values, "set", nil, "FIELD=VALUE of .landwaiter.yaml, such as environments=dev or enforcement=deny (repeatable)")
	uses(cmd, 0, flagOutput, flagDryRun, flagForce)
	return cmd
}

// writePlatform writes the tree of a platform into dir, as file and told say.
func writePlatform(cmd *cobra.Command, by person, dir, file string, told scaffold.Told) error {
	if err := nothingEmpty(cmd); err != nil {
		return err
	}
	if err := noKubectlFlag(cmd, "cluster", "--set clusters=%s gives the tree a cluster"); err != nil {
		return err
	}
	if file != "" {
		text, err := readFile(cmd, "filename", file)
		if err != nil {
			return err
		}
		told.File = text
	}
	platform, err := scaffold.Prepare(dir, told)
	if err != nil {
		return err
	}
	platform.Revision = program.Revision()
	tree, err := scaffold.NewPlatform(platform)
	if err != nil {
		return err
	}
	if platform, err = platform.Complete(); err != nil {
		return err
	}
	if err := platform.KeepsDecryption(dir, tree); err != nil {
		return notWritten(err)
	}
	if err := platform.KeepsTeams(dir); err != nil {
		return notWritten(err)
	}
	if err := platform.CheckLockout(cmd.Context(), dir, tree, by.writeOptions(), mayAllow); err != nil {
		return notWritten(err)
	}
	outcomes, err := scaffold.Write(dir, tree, by.writeOptions())
	if err != nil {
		return notWritten(err)
	}
	left, err := platform.LeftOvers(dir)
	if err != nil {
		return program.Failed(err)
	}
	for _, sentence := range left {
		program.Say(cmd.ErrOrStderr(), "landwaiter: %s", sentence)
	}
	return by.printWritten(cmd, dir, outcomes)
}
