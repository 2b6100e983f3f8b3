package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/landwaiter/landwaiter/pkg/operator"
)

// printedChecks is what tenant check prints.
type printedChecks struct {
	Findings []printedCheck `json:"findings"`
}

// printedCheck is one finding.
type printedCheck struct {
	Tenant  string     `json:"tenant,omitempty"`
	Finding string     `json:"finding"`
	Where   printedRef `json:"where"`
	Fix     string     `json:"fix"`
}

func newTenantCheck() *cobra.Command {
	var admin adminFlags
	var output format
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Find where a cluster differs from its Tenants, or lets teams reach too far",
		Long: `Check compares a Tenant, or all of them, with the cluster, and changes nothing.
It finds trust that developers can change, roles that may change their namespace,
rights of default accounts, objects of Flux that act as other accounts, namespaces
without a default-deny, objects that differ from what the Tenant says, namespaces that
two Tenants name or that nobody gave, pods in a home, sources of another namespace,
namespaces whose Tenant is gone, and missing guardrails.

Exit codes: 0 there are no findings, 1 there are, or no such Tenant, 64 the command line
is wrong, 69 the Kubernetes API does not answer.`,
		Example: `  landwaiter tenant check
  landwaiter tenant check iris-green -o json`,
		Args: oneTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, engine, err := admin.connect(operator.Options{})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			found, err := engine.Check(ctx, firstOf(args...))
			if err != nil {
				if apierrors.IsNotFound(err) && len(args) > 0 {
					return &exitError{code: exitDenied, err: noTenant(args[0])}
				}
				return notApplied(err)
			}
			printed := printedChecks{Findings: mapped(found, func(f operator.Finding) printedCheck {
				return printedCheck{Tenant: f.Tenant, Finding: f.Finding, Where: printedRef(f.Where), Fix: f.Fix}
			})}
			if err := output.print(cmd, printed, printed.print); err != nil {
				return err
			}
			if len(found) > 0 {
				return &exitError{code: exitDenied}
			}
			return nil
		},
	}
	admin.register(cmd, false)
	output.register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "time for everything")
	return cmd
}

func (p printedChecks) print(out io.Writer) error {
	s := newScreen(out)
	if len(p.Findings) > 0 {
		s.row("FINDING", "WHERE", "WHAT TO DO")
	}
	for _, f := range p.Findings {
		s.row(f.Finding, f.Where, f.Fix)
	}
	s.line("%s", amount(len(p.Findings), "finding"))
	return s.flush()
}
