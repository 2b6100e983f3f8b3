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

// scaffoldFlags are the flags of platform scaffold besides those that describe the Tenant.
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
		Short: "Write a team's part of the platform's repository, or with --own the team's own repository",
		Long: `Scaffold writes a Tenant, and what it stands for, into the repository that landwaiter
platform init made in DIR, and adds it to the lists of its environments, groups or
clusters. With --own, DIR is the team's own repository. It talks to no cluster.

It may be run again: --set adds to the Tenant that the tree has (lists grow, other values
are replaced), --filename replaces it, and after an edit of tenant.yaml the other files
follow. An application of the layout arc stays. Edited files stay, unless --force is
given. With --own, give all but places again.

--git-auth makes the Secret that Flux reads the team's repository with: ssh=KNOWN_HOSTS
makes a key and prints the public one, token=FILE takes a token. It goes to
--git-auth-out, or is encrypted into a tree that has sopsAge, sopsPGP or sopsKMS.

Exit codes: 0 the tree is written, 1 a file was edited, the home namespace would change,
another team has a namespace, or Flux would delete what the team has, 64 the command line
is wrong, 69 a file cannot be read or written.`,
		Example: `  landwaiter platform scaffold fleet -f iris-green.yaml --place staging
  landwaiter platform scaffold arc shop --app web --app-chart oci://registry.example.com/charts/web@1.2.0
  landwaiter platform scaffold iris-green --own -f fleet/tenants/base/iris-green/tenant.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "" {
				return fmt.Errorf("which folder? see %s --help", cmd.CommandPath())
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
	f.StringVar(&flags.layout, "layout", "", "layout of the team's own repository: flux, groups, arc or demo (empty: that of the tree of --filename, or flux)")
	f.StringSliceVar(&flags.places, "place", nil, "environment, group or cluster, by the layout, to add the team to (repeatable; none: all)")
	f.StringVar(&flags.app.Name, "app", "", "application of the team's own repository, or in the layout arc (empty: podinfo, or none)")
	f.StringVar(&flags.chart, "app-chart", "", "URL[@VERSION] of its chart: https://…, https://….git or oci://… (empty: none)")
	f.BoolVar(&flags.app.Shared, "shared", false, "make the application an overlay of base-deployments/APP, in the layout arc")
	f.BoolVar(&flags.withoutHelm, "without-helm", false, "leave the application to the team's own repository, in the layout arc")
	f.StringVar(&flags.signingKey, "signing-key", "", "file with the public key of the team's images, with --own (empty: no rules)")
	f.StringVar(&flags.images, "images", "", "images that the key signs, such as registry.example.com/team/** (empty: no rules)")
	f.StringVar(&flags.login, "git-auth", "", "ssh=KNOWN_HOSTS, or token=FILE, - for standard input: make the login of the repository")
	f.StringVar(&flags.loginOut, "git-auth-out", "", "new file outside of the tree for the Secret in plain text")
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

// check refuses flags that are for the other repository, or that say nothing.
func (f *scaffoldFlags) check(cmd *cobra.Command) error {
	if err := noKubectlFlag(cmd, "cluster", "--place %s names a cluster"); err != nil {
		return err
	}
	for flag, forOwn := range map[string]bool{"layout": true, "signing-key": true, "images": true, "git-auth": false, "git-auth-out": false, "shared": false, "without-helm": false} {
		switch {
		case !cmd.Flags().Changed(flag) || forOwn == f.own:
		case forOwn:
			return fmt.Errorf("--%s means nothing without --own: it is for the team's own repository", flag)
		default:
			return fmt.Errorf("--%s means nothing with --own: it is for the platform's repository", flag)
		}
	}
	for flag, value := range map[string]string{"app-chart": f.chart, "shared": ""} {
		if cmd.Flags().Changed(flag) && f.app.Name == "" {
			return fmt.Errorf("--%s %s means nothing without --app", flag, value)
		}
	}
	if f.withoutHelm && f.app.Name != "" {
		return errors.New("--app and --without-helm exclude each other: the team's own repository has the application")
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
	added, err := scaffold.Addition{Dir: dir, Team: team, Whole: len(f.files) > 0, Settings: f.settings, Login: login, Write: f.by.writeOptions(),
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

// sayLogin says what became of the login, for which a person has to do something.
func sayLogin(stderr io.Writer, added scaffold.Added, out string) {
	if added.Kept != "" {
		program.Say(stderr, "Secret %s of an earlier run was kept; to make another, delete %s and run this again", added.Kept, added.KeptIn)
	}
	if added.DeployKey != "" {
		program.Say(stderr, "Add this deploy key to the team's repository, for reading only:")
		program.Say(stderr, "%s", added.DeployKey)
	}
	if added.Plain != "" {
		program.Say(stderr, "The Secret %s is in plain text in %s: kubectl apply -f it, and delete the file", added.Plain, out)
	}
}

// ownRepository writes the team's own repository.
func (f *scaffoldFlags) ownRepository(cmd *cobra.Command, dir string, tenant *v1beta1.Tenant) error {
	repository := scaffold.Repository{Layout: scaffold.Layout(f.layout), Tenant: tenant, Places: f.places, App: f.app, Images: f.images}
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
