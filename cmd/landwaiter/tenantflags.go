package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// tenantFlags describe a Tenant on the command line, in flags or in a file.
type tenantFlags struct {
	spec                        v1beta1.TenantSpec
	admins, developers, viewers []string
	git                         v1beta1.TenantReconciler
	repository                  v1beta1.TenantSource
	gitSecret                   string
	variables, quota            map[string]string
	demoName, demoNamespace     string
	sharedSource                bool
	files                       []string
	// demoSource finds the demo's own repository. It is nil for commands without a
	// cluster.
	demoSource func() (*v1beta1.TenantSource, error)
}

// register declares the flags that describe a Tenant.
func (f *tenantFlags) register(cmd *cobra.Command) {
	flags, spec := cmd.Flags(), &f.spec
	flags.StringVar(&spec.HomeNamespace, "home-namespace", "", "namespace of the team's rules, keys, logins and Git account (empty: the Tenant's name)")
	flags.StringSliceVar(&spec.Namespaces, "namespace", nil, "another namespace of the team (repeatable)")
	flags.StringVar(&spec.NamespacePrefix, "prefix", "", "gives the Tenant every namespace whose name begins with it; it ends with a dash")
	flags.StringSliceVar(&f.admins, "admin-group", nil, "group with the role admin in all of the team's namespaces (repeatable)")
	flags.StringSliceVar(&f.developers, "developer-group", nil, "group with the role edit in the namespaces other than the home namespace (repeatable)")
	flags.StringSliceVar(&f.viewers, "viewer-group", nil, "group with the role view in the namespaces other than the home namespace (repeatable)")
	flags.StringVar(&f.repository.URL, "git-url", "", "repository that Flux applies as the team's account: https, ssh, or oci for an artifact")
	flags.StringVar(&f.repository.Branch, "git-branch", "", "branch of the repository, or tag of the artifact (empty: main, or latest)")
	flags.StringVar(&f.gitSecret, "git-secret", "", "Secret in the home namespace with credentials for the repository")
	flags.StringVar(&f.git.Path, "path", "", "path in the repository (empty: its root)")
	flags.StringVar(&f.git.ClusterRole, "cluster-role", "", "ClusterRole of the team's account in its namespaces (empty: "+onboard.RoleReconciler+")")
	flags.StringVar(&f.git.ServiceAccount, "service-account", "", "name of the team's account (empty: the Tenant's name)")
	flags.BoolVar(&f.git.CreateNamespaces, "create-namespaces", false, "let the team's account make namespaces with --prefix")
	flags.StringToStringVar(&f.variables, "variable", nil, "NAME=VALUE that Flux substitutes in the team's manifests (repeatable)")
	flags.StringToStringVar(&f.quota, "quota", nil, "RESOURCE=AMOUNT that each namespace may use, such as pods=50 (repeatable)")
	flags.StringSliceVar(&spec.Isolation.Registries, "registry", nil, "prefix of images that the team may use, such as registry.example.com/team/ (repeatable)")
	flags.StringVar((*string)(&spec.Isolation.Network), "network", "", "Deny denies traffic other than DNS and that within the team, Open does not (empty: Deny)")
	flags.StringVar((*string)(&spec.Isolation.PodSecurity), "pod-security", "", "Restricted, Baseline or Privileged (empty: Restricted)")
	flags.BoolVar(&spec.Adopt, "adopt", false, "take over namespaces that exist and that no Tenant has")
	flags.StringVar((*string)(&spec.NamespaceReclaimPolicy), "namespace-reclaim-policy", "", "Retain, or DeleteCreated to delete the namespaces that were made for the Tenant with it (empty: Keep)")
	flags.StringVar((*string)(&spec.Verification.PolicyLevel), "policy-level", "", "nearest level whose rules count: Namespace, Tenant or Cluster (empty: Namespace)")
	flags.StringVar(&f.demoName, "tenant-name", "", "NAME, as ctrl.py of flux-multitenant-demo has it")
	flags.StringVar(&f.demoNamespace, "tenant-namespace", "", "--home-namespace, as ctrl.py of flux-multitenant-demo has it: the objects have the names and labels of the demo")
	flags.BoolVar(&f.sharedSource, "shared-source", false, "with --tenant-namespace, apply the one source of all tenants, as the demo does, instead of a copy in the home namespace; needs Flux with --no-cross-namespace-refs=false")
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or directory with the Tenant, or - for standard input, instead of the flags that describe one (repeatable)")
}

// tenant returns the one Tenant that arguments and flags, or a file, describe, as
// [onboard.Complete] checks it, but without its defaults.
func (f *tenantFlags) tenant(cmd *cobra.Command, args []string) (*v1beta1.Tenant, error) {
	tenants, err := f.tenants(cmd, args)
	if err != nil {
		return nil, err
	}
	return pickTenant(tenants, "")
}

// tenants is [tenantFlags.tenant] for a command that takes all Tenants of a file if no
// name is given.
func (f *tenantFlags) tenants(cmd *cobra.Command, args []string) ([]*v1beta1.Tenant, error) {
	name, err := f.name(cmd, args)
	if err != nil {
		return nil, err
	}
	tenants, err := f.described(cmd, name)
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		if _, err := onboard.Complete(tenant); err != nil {
			return nil, err
		}
	}
	return tenants, nil
}

func (f *tenantFlags) described(cmd *cobra.Command, name string) ([]*v1beta1.Tenant, error) {
	if flag := f.emptied(cmd); flag != "" {
		return nil, fmt.Errorf("--%s is empty: give it a value, or leave it out", flag)
	}
	if len(f.files) == 0 {
		tenant, err := f.fromFlags(name)
		return []*v1beta1.Tenant{tenant}, err
	}
	if flag := f.spare(cmd); flag != "" {
		return nil, fmt.Errorf("--%s and --filename both describe the Tenant: write it into the file, or leave out --filename", flag)
	}
	found, err := readTenants(cmd, f.files)
	if err != nil {
		return nil, err
	}
	if name == "" && len(found.tenants) > 0 {
		return found.tenants, nil
	}
	tenant, err := pickTenant(found.tenants, name)
	return []*v1beta1.Tenant{tenant}, err
}

// name is that of the Tenant; a file may tell it.
func (f *tenantFlags) name(cmd *cobra.Command, args []string) (string, error) {
	if err := oneTenant(cmd, args); err != nil {
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
	return "", fmt.Errorf("which Tenant? see %s --help", cmd.CommandPath())
}

// spare returns a flag that says something of the Tenant besides its name, "" if none was
// given.
func (f *tenantFlags) spare(cmd *cobra.Command) (found string) {
	own := &cobra.Command{}
	(&tenantFlags{}).register(own)
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if own.Flags().Lookup(flag.Name) != nil && !slices.Contains([]string{"filename", "tenant-name"}, flag.Name) {
			found = flag.Name
		}
	})
	return found
}

// emptied returns a flag that was given without a value, as scripts do whose variable is
// not set. Such a flag would silently leave out a group or a namespace.
func (f *tenantFlags) emptied(cmd *cobra.Command) (found string) {
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
	return found
}

func (f *tenantFlags) fromFlags(name string) (*v1beta1.Tenant, error) {
	spec := f.spec.DeepCopy()
	if spec.HomeNamespace != "" && f.demoNamespace != "" && spec.HomeNamespace != f.demoNamespace {
		return nil, fmt.Errorf("--home-namespace=%s and --tenant-namespace=%s are two home namespaces for one Tenant: use one", spec.HomeNamespace, f.demoNamespace)
	}
	spec.HomeNamespace = cmp.Or(spec.HomeNamespace, f.demoNamespace, name)
	spec.Namespaces = slices.DeleteFunc(spec.Namespaces, func(n string) bool { return n == spec.HomeNamespace })
	spec.Access = v1beta1.TenantAccess{Admins: groupSubjects(f.admins), Developers: groupSubjects(f.developers), Viewers: groupSubjects(f.viewers)}
	if f.demoNamespace != "" {
		spec.Isolation.PodSecurity = cmp.Or(spec.Isolation.PodSecurity, v1beta1.PodSecurityBaseline) // the demo's pod runs as root
	}
	var err error
	if spec.Isolation.Quota, err = parseQuota(f.quota); err != nil {
		return nil, err
	}
	if spec.Reconciler, err = f.reconciler(name); err != nil {
		return nil, err
	}
	return &v1beta1.Tenant{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.KindTenant},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: f.form()}, Spec: *spec}, nil
}

// form returns the annotations of a Tenant whose objects have the names of the demo.
func (f *tenantFlags) form() map[string]string {
	switch {
	case f.demoNamespace == "":
		return nil
	case f.sharedSource:
		return map[string]string{v1beta1.AnnotationForm: onboard.FormDemoShared}
	}
	return map[string]string{v1beta1.AnnotationForm: onboard.FormDemo}
}

// reconciler is nil if no flag asks for a Git account.
func (f *tenantFlags) reconciler(name string) (*v1beta1.TenantReconciler, error) {
	source, err := f.source()
	if err != nil {
		return nil, err
	}
	reconciler := f.git
	reconciler.Source, reconciler.ServiceAccount = source, cmp.Or(f.git.ServiceAccount, f.demoNamespace)
	variables := map[string]v1beta1.Variable{}
	if f.demoNamespace != "" {
		variables, reconciler.Path = onboard.DemoVariables(name), cmp.Or(f.git.Path, onboard.DemoPath)
	}
	for key, value := range f.variables {
		variables[key] = v1beta1.Variable(value)
	}
	if len(variables) > 0 {
		reconciler.Variables = variables
	}
	if source == nil && len(variables) == 0 && !reconciler.CreateNamespaces && reconciler.ServiceAccount+reconciler.ClusterRole == "" {
		return nil, nil // a Tenant without a Git account
	}
	return &reconciler, nil
}

// source is nil if Flux fetches nothing for this Tenant alone.
func (f *tenantFlags) source() (*v1beta1.TenantSource, error) {
	switch {
	case f.sharedSource && f.demoNamespace == "":
		return nil, errors.New("--shared-source means nothing without --tenant-namespace")
	case f.sharedSource && f.repository.URL != "":
		return nil, errors.New("--shared-source and --git-url are two sources for one Tenant: use one")
	case f.repository.URL != "":
		source := f.repository
		if f.gitSecret != "" {
			source.SecretRef = &v1beta1.Reference{Name: f.gitSecret}
		}
		return &source, nil
	}
	needs := map[string]string{"git-branch": f.repository.Branch, "git-secret": f.gitSecret}
	if f.demoNamespace == "" {
		needs["path"] = f.git.Path
	}
	for flag, value := range needs {
		if value != "" {
			return nil, fmt.Errorf("--%s means nothing without --git-url", flag)
		}
	}
	switch {
	case f.demoNamespace == "" || f.sharedSource:
		return nil, nil
	case f.demoSource == nil:
		return nil, errors.New("--tenant-namespace needs --git-url: the repository that Flux fetches for this Tenant; or --shared-source")
	}
	return f.demoSource()
}

func parseQuota(amounts map[string]string) (map[corev1.ResourceName]resource.Quantity, error) {
	if len(amounts) == 0 {
		return nil, nil
	}
	quota := map[corev1.ResourceName]resource.Quantity{}
	for name, amount := range amounts {
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("--quota %s=%s is not an amount such as 50, 500m or 2Gi: %w", name, amount, err)
		}
		quota[corev1.ResourceName(name)] = quantity
	}
	return quota, nil
}

func groupSubjects(names []string) []v1beta1.TenantSubject {
	return mapped(names, func(name string) v1beta1.TenantSubject {
		return v1beta1.TenantSubject{Kind: v1beta1.SubjectGroup, Name: name}
	})
}

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
