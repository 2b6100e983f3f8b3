package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// printedTenants is the output of tenant list.
type printedTenants struct {
	Tenants []printedTenant `json:"tenants"`
}

// printedTenantNamespaces is the output of tenant list --namespaces.
type printedTenantNamespaces struct {
	Namespaces []printedTenantNamespace `json:"namespaces"`
}

func newTenantList(by person) *cobra.Command {
	admin := adminFlags{by: by}
	var namespaces bool
	cmd := &cobra.Command{
		Use:   "list [--namespaces]",
		Short: "List the Tenants of a cluster, or their namespaces",
		Long: `List prints the Tenants of a cluster. The number in NAMESPACES does not include the home
namespace. READY and PROVISIONED show the conditions, and the reason if a condition is not True. A
dash means that the condition is missing; only the operator sets Provisioned. It is "deleting" while
the Tenant is being deleted: if that does not end, run landwaiter check.

With --namespaces, list prints the namespaces that have the label of a Tenant, or the label
tenant-name of flux-multitenant-demo.`,
		Example: `  landwaiter tenant list
  landwaiter tenant list --namespaces -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("list takes no name: for one Tenant, run landwaiter check --tenant %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, engine, err := admin.connect(cmd, operator.Options{})
			if err != nil {
				return err
			}
			if namespaces {
				rows, err := engine.Namespaces(cmd.Context())
				if err != nil {
					return program.Failed(err)
				}
				return by.output.print(cmd, printedTenantNamespaces{Namespaces: rows})
			}
			rows, err := engine.List(cmd.Context())
			if err != nil {
				return program.Failed(err)
			}
			return by.output.print(cmd, printedTenants{Tenants: rows})
		},
	}
	uses(cmd, 0, flagOutput, flagAccount)
	cmd.Flags().BoolVar(&namespaces, "namespaces", false, "list namespaces, each with its tenant")
	return cmd
}

func (p printedTenants) show(s *screen) {
	// No cell wraps, so that scripts can cut columns as they do with kubectl.
	s.wide = true
	s.row("NAME", "HOME NAMESPACE", "NAMESPACES", "POLICY LEVEL", "RECONCILER", "READY", "PROVISIONED")
	for _, t := range p.Tenants {
		s.row(t.Name, t.Home, t.Namespaces, t.PolicyLevel, cmp.Or(t.Reconciler, "-"), t.Ready, t.Provisioned)
	}
}

func (p printedTenantNamespaces) show(s *screen) {
	s.row("NAMESPACE", "NAME", "NS-STATUS")
	for _, n := range p.Namespaces {
		s.row(n.Namespace, n.Name, n.Status)
	}
}
