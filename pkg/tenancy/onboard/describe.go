package onboard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// Description is a Tenant as described by a command line.
type Description struct {
	// Name of the Tenant, and of its home namespace unless a setting or DemoNamespace says
	// another.
	Name string
	// Settings are fields below spec.
	Settings Settings
	// DemoNamespace is the home namespace of a Tenant whose objects have flux-multitenant-demo's
	// names; empty for all others.
	DemoNamespace string
	// SharedSource makes such a Tenant apply the source that all tenants of the demo share.
	SharedSource bool
	// DemoSource finds the repository of such a Tenant if no setting names one. It is nil for
	// commands without a cluster.
	DemoSource func() (*v1beta1.TenantSource, error)
}

// Tenant returns the Tenant without defaults. It may lack fields that an existing Tenant has, so it
// is not checked; see [Complete].
func (d Description) Tenant() (*v1beta1.Tenant, error) {
	if d.SharedSource && d.DemoNamespace == "" {
		return nil, errors.New("--shared-source requires --tenant-namespace")
	}
	tenant := &v1beta1.Tenant{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.KindTenant},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
	spec := &tenant.Spec
	if err := Set(spec, d.Settings); err != nil {
		return nil, err
	}
	if home := spec.HomeNamespace; home != "" && d.DemoNamespace != "" && home != d.DemoNamespace {
		return nil, fmt.Errorf("%s homeNamespace=%s and --tenant-namespace=%s are two home namespaces for one Tenant: use one", SetFlag, home,
			d.DemoNamespace)
	}
	spec.HomeNamespace = cmp.Or(spec.HomeNamespace, d.DemoNamespace, d.Name)
	withoutHome(spec)
	if d.DemoNamespace == "" {
		return tenant, nil
	}
	return tenant, d.asDemo(tenant)
}

// asDemo gives a Tenant the settings of the demo's tenants.
func (d Description) asDemo(tenant *v1beta1.Tenant) error {
	tenant.Annotations = map[string]string{v1beta1.AnnotationForm: FormDemo}
	spec := &tenant.Spec
	spec.Isolation.PodSecurity = cmp.Or(spec.Isolation.PodSecurity, v1beta1.PodSecurityBaseline) // the demo's pod runs as root
	if spec.Reconciler == nil {
		spec.Reconciler = &v1beta1.TenantReconciler{}
	}
	r := spec.Reconciler
	r.ServiceAccount, r.Path = cmp.Or(r.ServiceAccount, d.DemoNamespace), cmp.Or(r.Path, DemoPath)
	variables := DemoVariables(d.Name)
	maps.Copy(variables, r.Variables)
	r.Variables = variables
	switch {
	case d.SharedSource && r.Source != nil:
		return fmt.Errorf("--shared-source and %s reconciler.source are two sources for one Tenant: use one", SetFlag)
	case d.SharedSource:
		tenant.Annotations[v1beta1.AnnotationForm] = FormDemoShared
	case r.Source != nil && r.Source.URL == "":
		return fmt.Errorf("%s reconciler.source needs reconciler.source.url", SetFlag)
	case r.Source != nil:
	case d.DemoSource == nil:
		return fmt.Errorf("--tenant-namespace needs %s reconciler.source.url=URL: the repository that Flux fetches for this Tenant; or "+
			"--shared-source", SetFlag)
	default:
		source, err := d.DemoSource()
		r.Source = source
		return err
	}
	return nil
}

// withoutHome removes the home namespace from the list, where it is optional.
func withoutHome(spec *v1beta1.TenantSpec) {
	spec.Namespaces = slices.DeleteFunc(spec.Namespaces, func(n string) bool { return n == spec.HomeNamespace })
}
