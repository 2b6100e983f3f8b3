package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

// scaffoldFlags are the flags of platform scaffold in addition to those that describe the
// Tenant.
type scaffoldFlags struct {
	tenantFlags
	by                 person
	own                bool
	layout             string
	places             []string
	app                scaffold.App
	chart              string
	withoutHelm        bool
	signingKey, images string
	login, loginOut    string
}

func newPlatformScaffold(by person) *cobra.Command {
	flags := scaffoldFlags{by: by}
	cmd := &cobra.Command{
		Use:   "scaffold DIR [NAME]",
		Short: "Write a team's part of the platform's repository, or the team's own repository",
		Long: `Scaffold writes a Tenant and its objects into DIR, a repository of "landwaiter platform init", and adds them
to the environments, groups or clusters. With --own, DIR is the team's own repository.

You can run it again. --set adds entries to lists of the Tenant in the tree, and replaces other values;
--filename replaces the Tenant. With --place, a run changes those places only, or writes nothing. If you edit
tenant.yaml, or patch it in a place, scaffold updates the other files. It keeps edited files (without
--force) and arc's applications. With --own, repeat all flags.

--git-auth creates the Secret with which Flux reads the team's repository: "ssh=KNOWN_HOSTS" creates a
key and prints the public key, "token=FILE" uses TOKEN or USER:TOKEN (GitLab's deploy tokens). The Secret
goes to --git-auth-out or, if the tree has sopsAge, sopsPGP or sopsKMS, encrypted into the tree.

Exit codes (64 and 69: see landwaiter --help):
  0  the tree is written
  1  someone edited a file, a home namespace or other places than those of --place would change, a
     namespace belongs to another team, or Flux would delete objects of the team`,
		Example: `  landwaiter platform scaffold fleet -f iris-green.yaml --place staging
  landwaiter platform scaffold arc shop --app web --app-chart oci://registry.example.com/charts/web@1.2.0
  landwaiter platform scaffold iris-green --own -f fleet/tenants/base/iris-green/tenant.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return fmt.Errorf("no directory is given; see %s --help", cmd.CommandPath())
			}
			tenant, err := flags.tenant(cmd, args[1:])
			if err != nil {
				return err
			}
			if err := flags.check(cmd); err != nil {
				return err
			}
			if flags.own {
				return flags.ownRepository(cmd, args[0], tenant)
			}
			return flags.intoPlatform(cmd, args[0], tenant)
		},
	}
	flags.register(cmd)
	uses(cmd, 0, flagOutput, flagAccount, flagDryRun, flagForce)
	f := cmd.Flags()
	f.BoolVar(&flags.own, "own", false, "write the team's own repository")
	f.StringVar(&flags.layout, "layout", "", "with --own: flux, groups, arc or demo (empty: as in the tree of --filename, or flux)")
	f.StringSliceVar(&flags.places, "place", nil, "environment, group or cluster to add or to change (repeatable; none: all)")
	f.StringVar(&flags.app.Name, "app", "", "application, with --own or in layout arc (empty: podinfo with --own, otherwise none)")
	f.StringVar(&flags.chart, "app-chart", "", "URL[@VERSION] of the app's chart: https://…, https://….git or oci://… (empty: none)")
	f.BoolVar(&flags.app.Shared, "shared", false, "in layout arc, make the application an overlay of base-deployments/APP")
	f.BoolVar(&flags.withoutHelm, "without-helm", false, "in layout arc, leave the application to the team's own repository")
	f.StringVar(&flags.signingKey, "signing-key", "", "with --own, file with the public key for the team's images (empty: no rules)")
	f.StringVar(&flags.images, "images", "", "with --own, images signed with the key, such as registry.example.com/team/** (empty: none)")
	f.StringVar(&flags.login, "git-auth", "", "create the repository's login: ssh=KNOWN_HOSTS, or token=FILE (- for standard input)")
	f.StringVar(&flags.loginOut, "git-auth-out", "", "new file outside the tree for the login in plain text")
	return cmd
}

// tenant returns the one Tenant that settings or a file describe.
func (f *scaffoldFlags) tenant(cmd *cobra.Command, args []string) (*v1beta1.Tenant, error) {
	name, err := f.name(cmd, args)
	if err != nil {
		return nil, err
	}
	if len(f.files) == 0 {
		return f.fromSettings(name)
	}
	found, err := readTenants(cmd, f.files)
	if err != nil {
		return nil, err
	}
	tenants, err := f.fromFiles(found, name)
	if err != nil {
		return nil, err
	}
	return pickTenant(tenants, name)
}

// check refuses flags that are for the other repository, or that have no effect.
func (f *scaffoldFlags) check(cmd *cobra.Command) error {
	if err := noKubectlFlag(cmd, "cluster", "--place %s names a cluster"); err != nil {
		return err
	}
	for flag, forOwn := range map[string]bool{"layout": true, "signing-key": true, "images": true, "git-auth": false, "git-auth-out": false,
		"shared": false, "without-helm": false} {
		switch {
		case !cmd.Flags().Changed(flag) || forOwn == f.own:
		case forOwn:
			return fmt.Errorf("--%s requires --own: it is for the team's own repository", flag)
		default:
			return fmt.Errorf("--%s cannot be used with --own: it is for the platform's repository", flag)
		}
	}
	for _, flag := range []string{"app-chart", "shared"} {
		if cmd.Flags().Changed(flag) && f.app.Name == "" {
			return fmt.Errorf("--%s requires --app", flag)
		}
	}
	if f.withoutHelm && f.app.Name != "" {
		return errors.New("--app and --without-helm cannot be used together: the team's own repository has the application")
	}
	if f.chart != "" {
		f.app.Chart = scaffold.ParseChart(f.chart)
	}
	return nil
}

// intoPlatform writes a team's part of the platform's repository.
func (f *scaffoldFlags) intoPlatform(cmd *cobra.Command, dir string, tenant *v1beta1.Tenant) error {
	account, err := f.by.landwaiter()
	if err != nil {
		return err
	}
	login := scaffold.LoginOptions{}
	if cmd.Flags().Changed("git-auth") {
		if login, err = scaffold.ParseLogin(f.login); err != nil {
			return err
		}
	}
	login.Out, login.Stdin = f.loginOut, cmd.InOrStdin()
	team := scaffold.Team{Tenant: tenant, Places: f.places, Landwaiter: account}
	if team.WithoutApp = f.withoutHelm; !f.withoutHelm {
		team.App = f.app
	}
	added, err := scaffold.Addition{Dir: dir, Team: team, Whole: len(f.files) > 0, Settings: f.settings, Login: login,
		Write: f.by.writeOptions(),
		Read: func(file string) ([]*v1beta1.Tenant, error) {
			found, err := readTenants(cmd, []string{file})
			return found.tenants, err
		}}.Run(cmd.Context())
	sayLogin(cmd.ErrOrStderr(), added, f.loginOut)
	if err != nil {
		return scaffolded(err)
	}
	for _, hint := range added.Hints {
		program.Say(cmd.ErrOrStderr(), "%s", hint)
	}
	return f.by.printWritten(cmd, dir, added.Files)
}

// sayLogin describes the state of the login, for which a person has to do something.
func sayLogin(stderr io.Writer, added scaffold.Added, out string) {
	if added.Kept != "" {
		program.Say(stderr, "Secret %s of an earlier run was kept; to create a new one, delete %s and run the command again",
			added.Kept, added.KeptIn)
	}
	if added.DeployKey != "" {
		program.Say(stderr, "Add this read-only deploy key to the team's repository:")
		program.Say(stderr, "%s", added.DeployKey)
	}
	if added.Plain != "" {
		program.Say(stderr, "Secret %s is in plain text in %s: apply the file with kubectl, then delete it", added.Plain, out)
	}
}

// ownRepository writes the team's own repository.
func (f *scaffoldFlags) ownRepository(cmd *cobra.Command, dir string, tenant *v1beta1.Tenant) error {
	repository := scaffold.Repository{Layout: scaffold.Layout(f.layout), Tenant: tenant, Places: f.places, App: f.app, Images: f.images,
		Revision: program.Revision()}
	own := scaffold.Own{Dir: dir, Repository: repository, SigningKey: f.signingKey, Write: f.by.writeOptions(), Lint: lintText}
	if len(f.files) == 1 && f.files[0] != "-" {
		own.From = f.files[0]
	}
	outcomes, err := own.Run(cmd.Context())
	if err != nil {
		return scaffolded(err)
	}
	return f.by.printWritten(cmd, dir, outcomes)
}

// scaffolded gives an error of a run its exit code.
func scaffolded(err error) error {
	var failed *scaffold.FailedError
	var edited *scaffold.EditedError
	var refused *scaffold.RefusedError
	switch {
	case errors.As(err, &edited) || errors.As(err, &refused):
		return &program.Exit{Code: program.ExitDenied, Err: err}
	case errors.As(err, &failed):
		return program.Failed(err)
	}
	return err
}
