package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// Values of --format of tenant export.
const (
	exportObjects = "objects"
	exportTenant  = "tenant"
	exportFlux    = "flux"
	exportRedis   = "redis-acl"
)

// exportFlags are the flags of tenant export in addition to those that describe the Tenant.
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
		Short: "Print a Tenant and its objects for Git or kubectl, or its access rules for Redis",
		Long: `Export prints a Tenant of the cluster and the objects of the Tenant. If --set or --filename
describes the Tenant, export needs no cluster. The output then covers the home namespace and the
listed namespaces; "tenant add" or the operator provisions namespaces that only namespacePrefix
covers. With both flags, --set changes the Tenant of the file.

Formats (--format):
  objects    the Tenant and its objects, in the order in which to apply them
  tenant     the Tenant alone, for the operator
  flux       the exact output of "flux create tenant NAME --with-namespace=HOME_NAMESPACE --export";
             the role is cluster-admin unless reconciler.clusterRole names another role
  redis-acl  commands for redis-cli that create a user with only read access to the keys of the
             Tenant's namespaces; replace PASSWORD

For redis-acl, the files should contain all Tenants. If another Tenant lists a namespace with the
prefix, the rules list every namespace by name: run the command again for each new namespace.

Exit codes (64 and 69: see landwaiter --help):
  0  the output is complete
  1  the cluster has no such Tenant`,
		Example: `  landwaiter tenant export iris-green
  landwaiter tenant export iris-green -f tenants/ --format=tenant
  landwaiter tenant export dev-team --set homeNamespace=apps --format=flux
  kubectl get tenants,namespaces -o yaml | landwaiter tenant export iris-green -f - --format=redis-acl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := flags.export(cmd, args)
			if err != nil {
				return err
			}
			return document(cmd.OutOrStdout(), text)
		},
	}
	flags.register(cmd)
	flags.registerDemo(cmd)
	uses(cmd, 0, flagAccount)
	cmd.Flags().StringVar(&flags.as, "format", exportObjects, "output: objects, tenant, flux or redis-acl")
	cmd.Flags().BoolVar(&flags.constraints, "constraints", false, "also print the constraint for isolation.registries; its template must be "+
		"in the cluster")
	cmd.Flags().BoolVar(&flags.skipNamespace, "skip-namespace", false, "with --format=flux, omit the Namespace")
	cmd.Flags().StringToStringVar(&flags.labels, "label", nil, "with --format=flux, another label NAME=VALUE for every object (repeatable)")
	return cmd
}

// exported is a Tenant, with the data that determines its namespaces.
type exported struct {
	*v1beta1.Tenant
	// all are all Tenants and namespaces, including it; none if only settings describe it.
	all tenantFiles
	// live says that all are from the cluster.
	live bool
}

func (f *exportFlags) export(cmd *cobra.Command, args []string) ([]byte, error) {
	name, err := f.name(cmd, args)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains([]string{exportObjects, exportTenant, exportFlux, exportRedis}, f.as):
		return nil, fmt.Errorf("--format is %q, it must be objects, tenant, flux or redis-acl", f.as)
	case f.skipNamespace && f.as != exportFlux:
		return nil, errors.New("--skip-namespace requires --format=flux")
	case len(f.labels) > 0 && f.as != exportFlux:
		return nil, errors.New("--label requires --format=flux")
	}
	account, err := f.by.landwaiter()
	if err != nil {
		return nil, err
	}
	found, err := f.find(cmd, name)
	if err != nil {
		return nil, err
	}
	switch f.as {
	case exportFlux:
		return onboard.Flux(found.Tenant, onboard.FluxOptions{SkipNamespace: f.skipNamespace, Labels: f.labels})
	case exportRedis:
		members, err := found.members()
		return []byte(strings.Join(onboard.RedisACL(found.Tenant, members), "\n") + "\n"), err
	}
	own, err := onboard.Manifest(found.Tenant)
	if err != nil || f.as == exportTenant {
		return yamlOf(err, own.Object)
	}
	objects, err := onboard.Objects(found.Tenant,
		onboard.Options{Namespaces: found.provisioned(), Landwaiter: account, ClusterRights: true, Constraints: f.constraints})
	contents := []map[string]any{own.Object}
	for _, object := range objects {
		contents = append(contents, object.Object)
	}
	return yamlOf(err, contents...)
}

// yamlOf writes objects unless there is an error.
func yamlOf(err error, objects ...map[string]any) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return onboard.YAML(objects...)
}

// find returns the Tenant that files or flags describe, or that of the cluster.
func (f *exportFlags) find(cmd *cobra.Command, name string) (found exported, err error) {
	switch {
	case len(f.files) > 0:
		found.all, err = readTenants(cmd, f.files)
	case f.described():
		found.Tenant, err = f.fromSettings(name)
		if err == nil {
			_, err = onboard.Complete(found.Tenant)
		}
		return found, err
	default:
		found.live = true
		if found.all, err = f.inCluster(cmd); err != nil {
			err = fmt.Errorf("read Tenant %s from the cluster (--set or --filename describes one without it): %w", name, err)
		}
	}
	if err != nil {
		return found, err
	}
	if found.live && !slices.ContainsFunc(found.all.tenants, func(t *v1beta1.Tenant) bool { return t.Name == name }) {
		return found, &program.Exit{Code: program.ExitDenied, Err: noTenant(name)}
	}
	tenants, err := f.fromFiles(found.all, name)
	if err != nil {
		return found, err
	}
	found.Tenant, err = pickTenant(tenants, name)
	return found, err
}

// inCluster returns all Tenants and namespaces of the cluster.
func (f *exportFlags) inCluster(cmd *cobra.Command) (tenantFiles, error) {
	admin := adminFlags{by: f.by}
	c, _, err := admin.connect(cmd, operator.Options{})
	if err != nil {
		return tenantFiles{}, err
	}
	var tenants v1beta1.TenantList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&tenants, &namespaces} {
		if err := c.List(cmd.Context(), list); err != nil {
			return tenantFiles{}, program.Failed(err)
		}
	}
	found := tenantFiles{namespaces: namespaces.Items}
	for i := range tenants.Items {
		found.tenants = append(found.tenants, &tenants.Items[i])
	}
	return found, nil
}

// provisioned returns the namespaces that get objects: those in the cluster, even if only the prefix
// covers them, and listed ones that do not exist yet. It is nil without a cluster.
func (e exported) provisioned() (names []string) {
	if !e.live {
		return nil
	}
	for _, n := range e.all.holders().Namespaces(e.Tenant, e.all.namespaces) {
		if n.State != v1beta1.NamespaceConflict && n.State != v1beta1.NamespaceTerminating {
			names = append(names, n.Name)
		}
	}
	return names
}

// members returns the names of the Tenant's namespaces if its prefix does not determine them:
// if another Tenant holds a namespace with the prefix.
func (e exported) members() ([]string, error) {
	if len(e.all.tenants) == 0 {
		return nil, nil
	}
	all := e.all.holders()
	if conflict := all.Conflict(e.Tenant); conflict != "" {
		return nil, fmt.Errorf("%s %s would be shown the verdicts of another: %s", v1beta1.KindTenant, e.Name, conflict)
	}
	for _, other := range e.all.tenants {
		if other != e.Tenant && takes(other, e.Spec.NamespacePrefix) {
			return all.ActiveNamespaces(e.Tenant, e.all.namespaces), nil
		}
	}
	return nil, nil
}

// takes reports whether a Tenant lists a namespace that begins with the prefix of another.
func takes(tenant *v1beta1.Tenant, prefix string) bool {
	begins := func(namespace string) bool { return strings.HasPrefix(namespace, prefix) }
	return prefix != "" && (begins(tenant.Spec.HomeNamespace) || slices.ContainsFunc(tenant.Spec.Namespaces, begins))
}
