package main

import "github.com/spf13/cobra"

func newTenant(by person) *cobra.Command {
	return group("tenant", "Onboard, list, export and delete teams", newTenantAdd(by), newTenantList(by), newTenantDelete(by),
		newTenantExport(by))
}
