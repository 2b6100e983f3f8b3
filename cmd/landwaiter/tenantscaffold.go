package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/pkg/scaffold"
)

// scaffoldFlags are the flags of tenant scaffold besides those that describe the Tenant.
type scaffoldFlags struct {
	tenantFlags
	writeFlags
	repo        string
	places      []string
	app         scaffold.App
	account     string
	clusterList []string
}

func newTenantScaffold() *cobra.Command {
	var flags scaffoldFlags
	cmd := &cobra.Command{
		Use:   "scaffold NAME --repo DIR",
		Short: "Write a team's part of the platform's repository, or the team's own repository",
		Long: `Scaffold writes a Tenant, and what it stands for, into the repository that landwaiter
platform init made, in its layout, and adds it to the lists of its environments, groups
or clusters. It talks to no cluster.

It may be run again, and replaces only files that nobody edited. Other entries and
comments of the lists stay.

Exit codes: 0 the tree is written, 1 a file was edited, 64 the command line is wrong, 69
a file cannot be read or written.`,
		Example: `  landwaiter tenant scaffold iris-green --repo fleet --prefix iris-green- --git-url https://github.com/example/iris-green
  landwaiter tenant scaffold shop --repo fleet --cluster cluster1 --app web --app-chart oci://registry.example.com/charts/web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, err := flags.tenant(cmd, args)
			if err != nil {
				return err
			}
			return flags.intoPlatform(cmd, scaffold.Team{Tenant: tenant})
		},
	}
	flags.tenantFlags.register(cmd)
	flags.writeFlags.register(cmd)
	own := cmd.Flags()
	own.StringVar(&flags.repo, "repo", "", "folder of the platform's repository")
	own.StringSliceVar(&flags.places, "environment", nil, "environment, group or cluster that has the team (repeatable; none: all)")
	own.StringVar(&flags.account, "landwaiter-account", defaultAccount, "NAMESPACE/NAME of the ServiceAccount that reads the Secrets of home")
	own.StringVar(&flags.app.Name, "app", "", "application that the platform installs for the team, in the layout arc")
	own.BoolVar(&flags.app.Shared, "shared", false, "make the application an overlay of base-deployments/APP")
	own.StringVar(&flags.app.Chart.URL, "app-chart", "", "Helm repository (https), or chart in a registry (oci), of the application")
	own.StringVar(&flags.app.Chart.Version, "app-version", "*", "version of that chart")
	return cmd
}

// intoPlatform writes a team's part of the platform's repository.
func (f *scaffoldFlags) intoPlatform(cmd *cobra.Command, team scaffold.Team) error {
	if f.repo == "" {
		return errors.New("which repository? give --repo, the folder that landwaiter platform init wrote")
	}
	platform, found, err := settings(f.repo)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s has no %s: run landwaiter platform init %s first", f.repo, scaffold.SettingsFile, f.repo)
	}
	if team.Landwaiter, err = parseAccount(f.account); err != nil {
		return err
	}
	team.Places = f.places
	if f.app.Name != "" {
		team.App = f.app
	}
	tree, err := scaffold.NewTeam(platform, team)
	if err != nil {
		return err
	}
	return f.writeFlags.write(cmd, f.repo, tree)
}
