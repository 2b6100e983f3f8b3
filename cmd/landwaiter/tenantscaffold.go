package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

// scaffoldFlags are the flags of tenant scaffold besides those that describe the Tenant.
type scaffoldFlags struct {
	tenantFlags
	by person
	loginFlags
	repo, tenantRepo   string
	layout             string
	places             []string
	app                scaffold.App
	withoutHelm        bool
	signingKey, images string
}

func newTenantScaffold(by person) *cobra.Command {
	flags := scaffoldFlags{by: by}
	cmd := &cobra.Command{
		Use:   "scaffold NAME --repo DIR|--tenant-repo DIR",
		Short: "Write a team's part of the platform's repository, or the team's own repository",
		Long: `Scaffold writes a Tenant, and what it stands for, into the repository that landwaiter
platform init made, in its layout, and adds it to the lists of its environments, groups
or clusters. With --tenant-repo it writes the team's own repository instead, for the same
layout. It talks to no cluster.

It may be run again: --set adds to the Tenant that the tree has (lists grow, other values
are replaced, and what no flag mentions stays), and --filename replaces it. With
--tenant-repo it remembers the environments or clusters alone: give the other flags again.
An edit of tenant.yaml counts as what the tree has: run scaffold after it, and the other files follow. Only files
that nobody edited are replaced. If there is a new version of an edited one, scaffold says
what --force would undo, and writes nothing. Other entries and comments of the lists stay. A
file that is no longer generated stays too, until you delete it.

--git-auth makes the Secret that Flux reads the team's repository with: ssh makes a key
and prints the public one, for the Git host, and token takes one from a file. The Secret
goes to --git-auth-out, outside of the tree, for kubectl apply; in a tree that was made
with sopsAge, the command sops encrypts it into the tree.

Exit codes: 0 the tree is written, 1 a file was edited or the home namespace would change, 64 the
command line is wrong, 69 a file cannot be read or written.`,
		Example: `  landwaiter tenant scaffold iris-green --repo fleet --set reconciler.source.url=https://github.com/example/iris-green
  landwaiter tenant scaffold shop --repo fleet --cluster cluster1 --app web --app-chart oci://registry.example.com/charts/web
  landwaiter tenant scaffold iris-green --tenant-repo iris-green --set namespaces=iris-green-web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, err := flags.tenant(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case (flags.repo == "") == (flags.tenantRepo == ""):
				return errors.New("which repository? give --repo, the folder that landwaiter platform init wrote, or --tenant-repo, the folder of the team's own")
			case flags.tenantRepo != "":
				return flags.ownRepository(cmd, tenant)
			}
			return flags.intoPlatform(cmd, tenant)
		},
	}
	flags.tenantFlags.register(cmd)
	flags.loginFlags.register(cmd)
	uses(cmd, true, 0, true)
	usesAlso(cmd, flagDryRun, flagForce)
	own := cmd.Flags()
	own.StringVar(&flags.repo, "repo", "", "folder of the platform's repository (empty: --tenant-repo)")
	own.StringVar(&flags.tenantRepo, "tenant-repo", "", "folder of the team's own repository (empty: --repo)")
	own.StringVar(&flags.layout, "layout", "", "layout of the team's own repository: flux, groups, arc or demo (empty: flux)")
	own.StringSliceVar(&flags.places, "environment", nil, "environment that has the team, besides those that have it already (repeatable; none: all, for a new team)")
	own.StringSliceVar(&flags.places, "group", nil, "the same for a group of clusters, in the layout groups")
	own.StringSliceVar(&flags.places, "cluster", nil, "the same for a cluster, in the layout arc, and in the team's own repository")
	own.StringVar(&flags.app.Name, "app", "", "application: of the team, in its own repository, or installed by the platform, in the layout arc (empty: none, or podinfo)")
	own.BoolVar(&flags.app.Shared, "shared", false, "make the application an overlay of base-deployments/APP, in the layout arc")
	own.BoolVar(&flags.withoutHelm, "without-helm", false, "leave the application to the team's own repository, in the layout arc")
	own.StringVar(&flags.app.Chart.URL, "app-chart", "", "Helm repository (https), or chart in a registry (oci), of the application (empty: none)")
	own.StringVar(&flags.app.Chart.Version, "app-version", "*", "version of that chart")
	own.StringVar(&flags.signingKey, "signing-key", "", "file with the public key that signs the team's images, for the team's own repository (empty: no rules of the team)")
	own.StringVar(&flags.images, "images", "", "images that the key signs, such as registry.example.com/team/** (empty: no rules of the team)")
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

// intoPlatform writes a team's part of the platform's repository.
func (f *scaffoldFlags) intoPlatform(cmd *cobra.Command, tenant *v1beta1.Tenant) error {
	for flag, given := range map[string]bool{"layout": f.layout != "", "signing-key": f.signingKey != "", "images": f.images != ""} {
		if given {
			return fmt.Errorf("--%s means nothing with --repo: it is for the team's own repository", flag)
		}
	}
	platform, found, err := scaffold.ReadSettings(f.repo)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s has no %s: run landwaiter platform init %s first", f.repo, scaffold.SettingsFile, f.repo)
	}
	if err := checkPlaces(cmd, platform.Layout); err != nil {
		return err
	}
	team := scaffold.Team{Places: f.places}
	if team.Tenant, team.From, err = f.addedTo(cmd, tenant); err != nil {
		return err
	}
	if team.Landwaiter, err = f.by.landwaiter(); err != nil {
		return err
	}
	if f.app.Name != "" && !f.withoutHelm {
		team.App = f.app
	} else if f.app.Shared {
		return errors.New("--shared needs --app, and no --without-helm")
	}
	if platform, err = platform.Complete(); err != nil {
		return err
	}
	if err := team.StayWhereItIs(f.repo, platform); err != nil {
		return err
	}
	login, err := f.prepare(cmd, f.repo, platform, &team)
	if err != nil {
		return err
	}
	tree, err := scaffold.NewTeam(platform, team)
	if err != nil {
		return err
	}
	if err := team.KeepsHomeNamespace(f.repo, tree); err != nil {
		return notWritten(err)
	}
	if login != nil && !f.by.dryRun {
		// Before a key is made, everything that can be refused is.
		if _, err := scaffold.Write(f.repo, tree, scaffold.WriteOptions{Force: f.by.force, DryRun: true}); err != nil {
			return notWritten(err)
		}
		if team.Auth, err = f.make(cmd, *login, f.repo); err != nil {
			return err
		}
		if tree, err = scaffold.NewTeam(platform, team); err != nil {
			return err
		}
	}
	return f.by.write(cmd, f.repo, tree)
}

// checkPlaces refuses the flags that name places of other layouts.
func checkPlaces(cmd *cobra.Command, layout scaffold.Layout) error {
	fitting := map[scaffold.Layout]string{scaffold.LayoutFlux: "environment", scaffold.LayoutGroups: "group", scaffold.LayoutArc: "cluster"}[layout]
	for _, flag := range []string{"environment", "group", "cluster"} {
		if cmd.Flags().Changed(flag) && flag != fitting && fitting != "" {
			return fmt.Errorf("--%s means nothing in the layout %s: use --%s", flag, layout, fitting)
		}
	}
	return nil
}

// addedTo adds what flags say to the Tenant that the tree has, and returns its file; a file
// of the user replaces it.
func (f *scaffoldFlags) addedTo(cmd *cobra.Command, asked *v1beta1.Tenant) (tenant *v1beta1.Tenant, from string, err error) {
	if len(f.files) > 0 {
		return asked, "", nil
	}
	for _, pattern := range scaffold.TenantFiles(asked.Name) {
		names, err := filepath.Glob(filepath.Join(f.repo, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, "", fmt.Errorf("look for Tenant %s in the tree: %w", asked.Name, err)
		}
		if len(names) == 0 {
			continue
		}
		found, err := readTenants(cmd, names[:1])
		if err != nil {
			return nil, "", err
		}
		there, err := pickTenant(found.tenants, asked.Name)
		if err != nil {
			return nil, "", err
		}
		from, err := filepath.Rel(f.repo, names[0])
		if err != nil {
			return nil, "", fmt.Errorf("name the file of Tenant %s: %w", asked.Name, err)
		}
		combined, err := onboard.Combine(there, asked)
		if err == nil {
			err = onboard.Restate(combined, f.settings)
		}
		return combined, filepath.ToSlash(from), err
	}
	return asked, "", nil
}

// ownRepository writes the team's own repository.
func (f *scaffoldFlags) ownRepository(cmd *cobra.Command, tenant *v1beta1.Tenant) error {
	for flag, given := range map[string]bool{"git-auth": f.kind != "", "shared": f.app.Shared} {
		if given {
			return fmt.Errorf("--%s means nothing with --tenant-repo: it is for the platform's repository", flag)
		}
	}
	platform, found, err := scaffold.ReadSettings(f.tenantRepo)
	if err != nil {
		return err
	}
	if found && platform.Layout != scaffold.LayoutDemo {
		return fmt.Errorf("--tenant-repo %s is the platform's repository (it has %s): give the folder of the team's own, or --repo", f.tenantRepo, scaffold.SettingsFile)
	}
	repository := scaffold.Repository{Layout: scaffold.Layout(f.layout), Tenant: tenant, Places: f.places, App: f.app, Images: f.images}
	if f.signingKey != "" {
		key, err := os.ReadFile(f.signingKey)
		if err != nil {
			return fmt.Errorf("read --signing-key: %w", err)
		}
		repository.PublicKey = string(key)
	} else if rules := filepath.Join(f.tenantRepo, "verification"); f.images == "" {
		// Without them the team's environments would leave out its rules.
		if _, err := os.Lstat(rules); err == nil {
			return fmt.Errorf("%s has the team's rules: give --signing-key and --images again, or delete the folder first", rules)
		}
	}
	if err := repository.StayWhereItIs(f.tenantRepo); err != nil {
		return program.Failed(err)
	}
	tree, err := scaffold.NewRepository(repository)
	if err != nil {
		return err
	}
	if err := checkRules(cmd, tree); err != nil {
		return err
	}
	return f.by.write(cmd, f.tenantRepo, tree)
}

// checkRules refuses a key or images that Landwaiter could not use.
func checkRules(cmd *cobra.Command, tree scaffold.Tree) error {
	var rules strings.Builder
	for _, file := range tree.Files {
		if path.Dir(file.Path) == "verification" && path.Base(file.Path) != "kustomization.yaml" {
			rules.WriteString("---\n" + file.Text)
		}
	}
	if rules.Len() == 0 {
		return nil
	}
	found, err := lintText(cmd.Context(), rules.String())
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("--signing-key and --images cannot be used: %s", strings.Join(found, "; "))
	}
	return err
}
