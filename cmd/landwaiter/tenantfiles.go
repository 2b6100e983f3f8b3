package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
)

// tenantFiles are the Tenants in files, and the namespaces that are declared there.
type tenantFiles struct {
	tenants    []*v1beta1.Tenant
	namespaces []corev1.Namespace
}

// readTenants fails if a Tenant cannot be read, or a file: it might have the one that is
// meant. What is wrong with other objects does not matter here.
func readTenants(cmd *cobra.Command, paths []string) (tenantFiles, error) {
	files, err := configdir.Read(cmd.Context(), paths, cmd.InOrStdin())
	if err != nil {
		return tenantFiles{}, err
	}
	for _, problem := range files.Problems {
		if problem.Source.Kind == v1beta1.KindTenant || problem.Source.Kind == configdir.KindFile {
			return tenantFiles{}, fmt.Errorf("%s: %s", problem.Source, problem.Message)
		}
	}
	found := tenantFiles{namespaces: files.Objects.Namespaces}
	for _, object := range files.Objects.Resources {
		if tenant, ok := object.(*v1beta1.Tenant); ok {
			found.tenants = append(found.tenants, tenant)
		}
	}
	return found, nil
}

// pickTenant returns the Tenant of a name, or the only one if no name is given.
func pickTenant(tenants []*v1beta1.Tenant, name string) (*v1beta1.Tenant, error) {
	var names []string
	for _, tenant := range tenants {
		if tenant.Name == name || name == "" && len(tenants) == 1 {
			return tenant, nil
		}
		names = append(names, tenant.Name)
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("there is no Tenant in the files")
	case name == "":
		return nil, fmt.Errorf("which Tenant? there are %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no Tenant %s; there are: %s", name, strings.Join(names, ", "))
}

// oneTenant refuses a second argument.
func oneTenant(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one Tenant, not %d; see %s --help", cmd.Name(), len(args), cmd.CommandPath())
	}
	return nil
}

// noTenant says that the cluster has no Tenant of a name.
func noTenant(name string) error {
	return fmt.Errorf("there is no Tenant %s: see landwaiter tenant list", name)
}
