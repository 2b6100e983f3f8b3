package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// printedChecks is what tenant check prints.
type printedChecks struct {
	Findings []printedCheck `json:"findings"`
	// Skipped are checks that need more permissions than the person has, and why.
	Skipped []string `json:"skipped,omitempty"`
}

func newTenantCheck(by person) *cobra.Command {
	admin := adminFlags{by: by}
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Find where a cluster differs from its Tenants, or lets teams reach too far",
		Long: `Check compares a Tenant, or all of them, with the cluster, and changes nothing.
It finds trust that developers can change, roles that may change their namespace,
permissions of default accounts, objects of Flux that act as other accounts, namespaces
without a default-deny, objects that differ from what the Tenant says, namespaces that
two Tenants name or that nobody gave, pods in a home namespace, sources of another namespace,
namespaces whose Tenant is gone, and missing guardrails.

Whoever may not list Tenants checks the namespace of -n and the home namespace of its Tenant, which
ConfigMap landwaiter-effective-rules of the namespace names (serve --show-effective-rules).
Checks that need more permissions are skipped and listed.

Exit codes: 0 there are no findings, 1 there are, or no such Tenant, 64 the command line
is wrong, 69 the Kubernetes API does not answer.`,
		Example: `  landwaiter tenant check
  landwaiter tenant check iris-green -o json
  landwaiter tenant check iris-green -n iris-green-web`,
		Args: oneTenant,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, engine, err := admin.connect(cmd, operator.Options{})
			if err != nil {
				return err
			}
			timeout := by.within(cmd)
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			found, err := engine.Check(ctx, cmp.Or(args...))
			var skipped []string
			if apierrors.IsForbidden(err) {
				found, skipped, err = admin.checkOwn(ctx, c, engine, cmp.Or(args...), err)
			}
			if err != nil {
				if apierrors.IsNotFound(err) && len(args) > 0 {
					return &program.Exit{Code: program.ExitDenied, Err: noTenant(args[0])}
				}
				return notApplied(err)
			}
			if err := by.output.print(cmd, printedChecks{Skipped: skipped, Findings: append([]printedCheck{}, found...)}); err != nil {
				return err
			}
			if len(found) > 0 {
				return &program.Exit{Code: program.ExitDenied}
			}
			return nil
		},
	}
	uses(cmd, true, 5*time.Minute, true)
	return cmd
}

// checkOwn checks a namespace of the person's own team, and its home namespace, by what Landwaiter shows
// there. refused is why the whole cluster is not checked.
func (a *adminFlags) checkOwn(ctx context.Context, c client.Client, engine *operator.Engine, name string, refused error) ([]operator.Finding, []string, error) {
	_, namespace, err := a.by.scope(false)
	if err != nil {
		return nil, nil, err
	}
	var found corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: string(namespace), Name: resource.ShownName}, &found); err != nil {
		return nil, nil, fmt.Errorf("%w; and a team checks its own namespace (-n) where serve runs with %s: %w", refused, live.ShowFlag, err)
	}
	shown, err := resource.ReadShown(&found)
	if err != nil {
		return nil, nil, fmt.Errorf("read ConfigMap %s of namespace %s: %w", resource.ShownName, namespace, err)
	}
	for _, object := range shown.Resources {
		if tenant, ok := object.(*v1beta1.Tenant); ok && (name == "" || name == tenant.Name) {
			return engine.CheckOwn(ctx, tenant, string(namespace))
		}
	}
	return nil, nil, fmt.Errorf("%w; and namespace %s belongs to Tenant %s, or to one whose rules cannot be shown", refused, namespace, shown.Tenant)
}

func (p printedChecks) show(s *screen) {
	if len(p.Findings) > 0 {
		s.row("FINDING", "WHERE", "WHAT TO DO")
	}
	for _, f := range p.Findings {
		s.row(f.Finding, f.Where, f.Fix)
	}
	for _, skipped := range p.Skipped {
		s.line("skipped: %s", skipped)
	}
	s.line("%s", amount(len(p.Findings), "finding"))
}
