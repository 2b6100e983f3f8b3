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
		Short: "Write a platform's repository with Gatekeeper, Landwaiter, policies and Flux",
		Long: `Init writes a tree of files, and contacts no cluster. Flux applies the files in this order: CRDs,
Gatekeeper and Landwaiter, templates, constraints, guardrails, tenants.

Layouts (--layout):
  flux    a folder for each environment, as in flux2-multi-tenancy
  groups  groups of clusters, as in Flux with TMC
  arc     a folder for each application and tenant, as in soft multi-tenancy with Arc
  demo    flux-multitenant-demo

The file .landwaiter.yaml of the tree contains the settings: environments, groups, clusters,
constraints, enforcement, githubOrg, allowedSources, sopsAge (or sopsPGP, sopsKMS), operator,
sharedSource, secretStores, landwaiterImage, checkSHA256, and, for the charts landwaiter and
gatekeeper, url, version, digest and verify. --set adds entries to lists, and replaces other
values. --filename replaces all settings. To remove a setting, edit the file first.

You can run init again, also with a newer version. It only replaces files that nobody edited. If
there is a new version of an edited file, init shows what --force would undo, and writes nothing.
It never changes files that others maintain, such as files of "flux bootstrap" and tenant lists.

With enforcement=deny, the tree needs a policy or Verifier that can allow an image; otherwise, no
pod would start. If there is none, init writes nothing and names what is missing. Images in
exemptNamespaces, including Flux's images, are not verified. Rules for teams do not apply in
infrastructureNamespaces.

Exit codes (64 and 69: see landwaiter --help):
  0  the tree is written
  1  someone edited a file, the tree would deny every image or Flux's images, exemptNamespaces
     lists a team's namespace, Flux would delete objects of a team, or .sourceignore keeps files
     from Flux`,
		Example: `  landwaiter platform init fleet --set githubOrg=example
  landwaiter platform init fleet --layout groups --set 'groups=[infra-ops, dev]' --set clusters=dev/iris-dev`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return writePlatform(cmd, by, args[0], file, told) },
	}
	cmd.Flags().StringVar((*string)(&told.Layout), "layout", "", "layout: flux, groups, arc or demo (empty: the layout of the tree, or flux)")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file that replaces .landwaiter.yaml of the tree, or - for standard input")
	cmd.Flags().StringArrayVar(&told.Settings.Values, "set", nil, "FIELD=VALUE to add to .landwaiter.yaml, such as environments=dev or "+
		"enforcement=deny (repeatable)")
	uses(cmd, 0, flagOutput, flagDryRun, flagForce)
	return cmd
}

// writePlatform writes the tree of a platform into dir, as configured by file and told.
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
	if err := platform.KeepsRecipients(dir, tree); err != nil && by.force {
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
