package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// tenantFlags describe a Tenant on the command line, in settings or in a file.
type tenantFlags struct {
	files                   []string
	settings                onboard.Settings
	demoName, demoNamespace string
	sharedSource            bool
	// demoSource finds the demo's own repository. It is nil for commands without a
	// cluster.
	demoSource func() (*v1beta1.TenantSource, error)
}

// register declares the flags that describe a Tenant.
func (f *tenantFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or directory with the Tenant, or - for standard input (repeatable)")
	flags.StringArrayVar(&f.settings.Values, "set", nil, "FIELD=VALUE below spec of the Tenant, such as isolation.quota.pods=50 (repeatable)")
	f.settings.Near = policy.Nearest
}

// registerDemo declares the flags of flux-multitenant-demo's ctrl.py.
func (f *tenantFlags) registerDemo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.demoName, "tenant-name", "", "NAME of the Tenant, as in ctrl.py of flux-multitenant-demo")
	flags.StringVar(&f.demoNamespace, "tenant-namespace", "", "home namespace, as in ctrl.py; objects get the names and labels of the demo")
	flags.BoolVar(&f.sharedSource, "shared-source", false, "with --tenant-namespace, use the demo's shared source instead of a copy")
}

// described reports whether flags other than those for files describe the Tenant, in addition to
// its name.
func (f *tenantFlags) described() bool {
	return len(f.settings.Values) > 0 || f.demoNamespace != "" || f.sharedSource
}

// fromSettings returns the Tenant that flags describe. It may lack fields that an existing
// Tenant has, so it is not checked.
func (f *tenantFlags) fromSettings(name string) (*v1beta1.Tenant, error) {
	if f.demoName != "" && f.demoNamespace == "" {
		return nil,
			fmt.Errorf("--tenant-name needs --tenant-namespace: the home namespace of a tenant of flux-multitenant-demo; for another Tenant, give "+
				"its name alone: %s", f.demoName)
	}
	return onboard.Description{Name: name, Settings: f.settings, DemoNamespace: f.demoNamespace, SharedSource: f.sharedSource,
		DemoSource: f.demoSource}.Tenant()
}

// fromFiles returns the Tenants of the files: the one with a name, or all if there is no name and
// no setting. Settings add to the one Tenant. All are as [onboard.Complete] checks them, but
// without defaults.
func (f *tenantFlags) fromFiles(found tenantFiles, name string) ([]*v1beta1.Tenant, error) {
	if f.demoNamespace != "" || f.sharedSource {
		return nil, errors.New("--tenant-namespace and --filename both describe the Tenant: leave one out")
	}
	tenants := found.tenants
	if name != "" || len(f.settings.Values) > 0 || len(tenants) == 0 {
		tenant, err := pickTenant(tenants, name)
		if err != nil {
			return nil, err
		}
		if err := onboard.Restate(tenant, f.settings); err != nil {
			return nil, err
		}
		tenants = []*v1beta1.Tenant{tenant}
	}
	for _, tenant := range tenants {
		if _, err := onboard.Complete(tenant); err != nil {
			return nil, err
		}
	}
	return tenants, nil
}

// name is the name of the Tenant; a file may contain it.
func (f *tenantFlags) name(cmd *cobra.Command, args []string) (string, error) {
	if err := oneTenant(cmd, args); err != nil {
		return "", err
	}
	if err := nothingEmpty(cmd); err != nil {
		return "", err
	}
	if err := noKubectlFlag(cmd, "namespace", "--set namespaces=%s gives the Tenant a namespace"); err != nil {
		return "", err
	}
	switch {
	case slices.Contains(args, ""):
		return "", fmt.Errorf("the name of the Tenant is empty; see %s --help", cmd.CommandPath())
	case len(args) == 1 && f.demoName != "" && f.demoName != args[0]:
		return "", fmt.Errorf("%s and --tenant-name=%s are two names for one Tenant: use one", args[0], f.demoName)
	case len(args) == 1:
		return args[0], nil
	case f.demoName != "" || len(f.files) > 0:
		return f.demoName, nil
	}
	if f.demoNamespace != "" {
		return "", errors.New("--tenant-namespace requires --tenant-name, the name of the Tenant")
	}
	return "", fmt.Errorf("no Tenant is given; see %s --help", cmd.CommandPath())
}

// nothingEmpty refuses an empty value, as from a script whose variable is not set. Such a
// flag would silently omit a file or a location.
func nothingEmpty(cmd *cobra.Command) error {
	found := ""
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = "x"
			if entries := list.GetSlice(); len(entries) == 0 || slices.Contains(entries, "") {
				value = ""
			}
		}
		if (value == "" || value == "[]") && !strings.Contains(flag.Usage, "(empty: ") {
			found = flag.Name
		}
	})
	if found == "" {
		return nil
	}
	return fmt.Errorf("--%s is empty: give it a value, or leave it out", found)
}

// noKubectlFlag refuses a common kubectl flag that has no effect on the command, because the user
// may expect one.
func noKubectlFlag(cmd *cobra.Command, flag, instead string) error {
	if given := cmd.Flags().Lookup(flag); given != nil && given.Changed {
		return fmt.Errorf("%s does not accept --%s: "+instead, cmd.CommandPath(), flag, given.Value)
	}
	return nil
}

// tenantFiles are the Tenants in files or in a cluster, and the existing namespaces.
type tenantFiles struct {
	tenants    []*v1beta1.Tenant
	namespaces []corev1.Namespace
}

// holders returns the Tenant that holds each namespace.
func (f tenantFiles) holders() *resource.Tenants {
	return resource.NewTenants(f.tenants).Labelled(resource.LabelsOf(f.namespaces))
}

// readTenants fails if a Tenant or a file cannot be read: it might be the selected one. It
// ignores errors of other objects.
func readTenants(cmd *cobra.Command, paths []string) (tenantFiles, error) {
	var stdin bytes.Buffer
	files, err := configdir.Read(cmd.Context(), "", paths, io.TeeReader(cmd.InOrStdin(), &stdin))
	if err != nil {
		return tenantFiles{}, err
	}
	for _, problem := range files.Problems {
		if problem.Source.Kind == v1beta1.KindTenant || problem.Source.Kind == configdir.KindFile {
			return tenantFiles{}, located(cmd.Context(), problem, paths, &stdin)
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

// located returns an error of a file, with its line and the intended field where these are known.
func located(ctx context.Context, problem resource.Problem, paths []string, stdin io.Reader) error {
	report, err := lint.Check(ctx, "", paths, stdin, conditions.Check)
	if err != nil {
		return fmt.Errorf("%s: %s", problem.Source, problem.Message)
	}
	found := slices.DeleteFunc(report.Findings, func(f resource.Finding) bool {
		return f.Severity != resource.Error || f.File == "" || f.Object != problem.Source && problem.Source.Kind != configdir.KindFile
	})
	if len(found) == 0 {
		return fmt.Errorf("%s: %s", problem.Source, problem.Message)
	}
	// A misspelt field is also missing under its correct name.
	first := max(0, slices.IndexFunc(found, func(f resource.Finding) bool { return strings.HasPrefix(f.Fix, "did you mean ") }))
	return fmt.Errorf("%s: %s", place(found[first]), found[first].Remedied())
}

// pickTenant returns the Tenant with a name, or the only one if no name is given.
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
		return nil, fmt.Errorf("choose one Tenant by its name; there are %s", strings.Join(names, ", "))
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

// noTenant says that the cluster has no Tenant with a name.
func noTenant(name string) error {
	return fmt.Errorf("there is no Tenant %s: see landwaiter tenant list", name)
}
