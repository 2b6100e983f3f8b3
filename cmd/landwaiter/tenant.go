package main

import "github.com/spf13/cobra"

func newTenant(by person) *cobra.Command {
	return group("tenant", "Set up teams that have namespaces, people and a Git repository", newTenantAdd(by), newTenantList(by), newTenantDelete(by), newTenantExport(by))
}
