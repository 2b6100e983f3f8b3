package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func newTenant(by person) *cobra.Command {
	return group("tenant", "Set up teams that have namespaces, people and a Git repository", newTenantAdd(by), newTenantList(by), newTenantDelete(by), newTenantExport(by), newTenantRedisACL(by), newTenantScaffold(by))
}

// Values of --format of tenant export.
const (
	exportObjects = "objects"
	exportTenant  = "tenant"
	exportFlux    = "flux"
)

// exportFlags are the flags of tenant export besides those that describe the Tenant.
type exportFlags struct {
	tenantFlags
	as            string
	by            person
	constraints   bool
	skipNamespace bool
	labels        map[string]string
}

func newTenantExport(by person) *cobra.Command {
	flags := exportFlags{by: by}
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Print a Tenant and the objects it stands for, for Git or kubectl",
		Long: `Export prints YAML in the order in which to apply it. It needs no cluster, so it
provisions the home namespace and those that are listed; namespaces that only --prefix covers
get their objects from tenant add or from the operator.

--format=objects prints the Tenant and everything that it stands for, --format=tenant
the Tenant alone, for the operator, and --format=flux the bytes of
flux create tenant NAME --with-namespace=HOME_NAMESPACE --export, with the role cluster-admin
unless --cluster-role names another.

Exit codes: 0 the objects are printed, 64 the command line is wrong, or a file or the
Tenant in it cannot be used, 69 the result cannot be written.`,
		Example: `  landwaiter tenant export iris-green --namespace iris-green-web --git-url https://github.com/example/iris-green
  landwaiter tenant export iris-green -f tenants/ --format=tenant
  landwaiter tenant export dev-team --home-namespace apps --format=flux`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, err := flags.tenant(cmd, args)
			if err != nil {
				return err
			}
			text, err := flags.export(tenant)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return program.Failed(err)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&flags.as, "format", exportObjects, "objects, tenant or flux")
	uses(cmd, false, 0, true)
	cmd.Flags().BoolVar(&flags.constraints, "constraints", false, "print the constraint TenantAllowedRegistries of --registry, which needs its template in the cluster")
	cmd.Flags().BoolVar(&flags.skipNamespace, "skip-namespace", false, "leave out the Namespace, with --format=flux")
	cmd.Flags().StringToStringVar(&flags.labels, "label", nil, "NAME=VALUE of a further label of every object, with --format=flux (repeatable)")
	return cmd
}

func (f *exportFlags) export(tenant *v1beta1.Tenant) ([]byte, error) {
	if f.skipNamespace && f.as != exportFlux {
		return nil, errors.New("--skip-namespace means nothing without --format=flux")
	}
	if len(f.labels) > 0 && f.as != exportFlux {
		return nil, errors.New("--label means nothing without --format=flux")
	}
	own, err := onboard.Manifest(tenant)
	if err != nil {
		return nil, err
	}
	switch f.as {
	case exportTenant:
		return onboard.YAML(own.Object)
	case exportFlux:
		return onboard.Flux(tenant, onboard.FluxOptions{SkipNamespace: f.skipNamespace, Labels: f.labels})
	case exportObjects:
	default:
		return nil, fmt.Errorf("--format is %q, it must be objects, tenant or flux", f.as)
	}
	account, err := f.by.landwaiter()
	if err != nil {
		return nil, err
	}
	objects, err := onboard.Objects(tenant, onboard.Options{Landwaiter: account, NamespaceMaker: true, Constraints: f.constraints})
	if err != nil {
		return nil, err
	}
	contents := []map[string]any{own.Object}
	for _, object := range objects {
		contents = append(contents, object.Object)
	}
	return onboard.YAML(contents...)
}
