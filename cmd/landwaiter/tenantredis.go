package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// tenantRedisFlags say where the Tenants are: in flags, in files, or in a cluster.
type tenantRedisFlags struct {
	tenantFlags
	admin adminFlags
}

func newTenantRedisACL(by person) *cobra.Command {
	flags := tenantRedisFlags{admin: adminFlags{by: by}}
	cmd := &cobra.Command{
		Use:   "redis-acl NAME",
		Short: "Print the rules in Redis that show a team its own verdicts and no others",
		Long: `Redis-acl prints commands for redis-cli. They make a user that may read the keys of
the Tenant's namespaces, which are encrypted, and no others. Replace PASSWORD.

The Tenant is read from the cluster, or with --filename from files, or described by
flags. Files should have all Tenants: where another Tenant lists a namespace that
the prefix would cover, the namespaces are named one by one, and the command has to be
run again when the team gets another.

Exit codes: 0 the rules are printed, 64 the command line is wrong, or a file or the
Tenant in it cannot be used, 69 the cluster cannot be asked, or the result cannot be
written.`,
		Example: `  landwaiter tenant redis-acl iris-green
  landwaiter tenant redis-acl iris-green --prefix iris-green-
  kubectl get tenants,namespaces -o yaml | landwaiter tenant redis-acl iris-green -f -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, members, err := flags.members(cmd, args)
			if err != nil {
				return err
			}
			s := newScreen(cmd.OutOrStdout())
			for _, line := range onboard.RedisACL(tenant, members) {
				s.line("%s", line)
			}
			return program.Failed(s.flush())
		},
	}
	flags.register(cmd)
	uses(cmd, false, 0, true)
	return cmd
}

// members returns a Tenant, and the names of its namespaces if its prefix does not tell
// them: where another Tenant holds a namespace with the prefix.
func (f *tenantRedisFlags) members(cmd *cobra.Command, args []string) (*v1beta1.Tenant, []string, error) {
	name, err := f.name(cmd, args)
	if err != nil {
		return nil, nil, err
	}
	spare := f.spare(cmd)
	if spare != "" && len(f.files) == 0 {
		tenant, err := f.tenant(cmd, args)
		return tenant, nil, err
	}
	if spare != "" {
		return nil, nil, fmt.Errorf("--%s and --filename both describe the Tenant: leave one out", spare)
	}
	found, err := f.find(cmd)
	if err != nil {
		return nil, nil, err
	}
	tenant, err := pickTenant(found.tenants, name)
	if err != nil {
		return nil, nil, err
	}
	all := resource.NewTenants(found.tenants)
	if conflict := all.Conflict(tenant); conflict != "" {
		return nil, nil, fmt.Errorf("%s %s would be shown the verdicts of another: %s", v1beta1.KindTenant, tenant.Name, conflict)
	}
	for _, other := range found.tenants {
		if other != tenant && takes(other, tenant.Spec.NamespacePrefix) {
			return tenant, all.ActiveNamespaces(tenant, found.namespaces), nil
		}
	}
	return tenant, nil, nil
}

// find returns the Tenants in the files, or in the cluster if there are no files.
func (f *tenantRedisFlags) find(cmd *cobra.Command) (tenantFiles, error) {
	if len(f.files) > 0 {
		return readTenants(cmd, f.files)
	}
	c, _, err := f.admin.connect(cmd, operator.Options{})
	if err != nil {
		return tenantFiles{}, err
	}
	var tenants v1beta1.TenantList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&tenants, &namespaces} {
		if err := c.List(cmd.Context(), list); err != nil {
			return tenantFiles{}, program.Failed(fmt.Errorf("list what the cluster has (use --filename without one): %w", err))
		}
	}
	found := tenantFiles{namespaces: namespaces.Items}
	for i := range tenants.Items {
		found.tenants = append(found.tenants, &tenants.Items[i])
	}
	return found, nil
}

// takes reports whether a Tenant lists a namespace that begins with the prefix of another.
func takes(tenant *v1beta1.Tenant, prefix string) bool {
	begins := func(namespace string) bool { return strings.HasPrefix(namespace, prefix) }
	return prefix != "" && (begins(tenant.Spec.HomeNamespace) || slices.ContainsFunc(tenant.Spec.Namespaces, begins))
}
