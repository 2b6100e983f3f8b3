package onboard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestADescriptionIsATenant(t *testing.T) {
	found := func() (*v1beta1.TenantSource, error) {
		return &v1beta1.TenantSource{URL: "https://example.com/found", Branch: "main"}, nil
	}
	for about, c := range map[string]struct {
		given Description
		form  string
		want  string // the spec as YAML
	}{
		"a name":           {Description{Name: "a"}, "", "{homeNamespace: a}"},
		"a home namespace": {Description{Name: "a", Settings: settings("homeNamespace=b")}, "", "{homeNamespace: b}"},
		"listed twice":     {Description{Name: "a", Settings: settings("namespaces=[a, b]")}, "", "{homeNamespace: a, namespaces: [b]}"},
		"no account unless set": {Description{Name: "a", Settings: settings("reconciler.createNamespaces=true")}, "",
			"{homeNamespace: a, reconciler: {createNamespaces: true}}"},
		"the demo": {Description{Name: "a", DemoNamespace: "foo", DemoSource: found}, FormDemo,
			`{homeNamespace: foo, isolation: {podSecurity: Baseline}, reconciler: {serviceAccount: foo,
			path: ./kustomizations/per-tenant, source: {url: 'https://example.com/found', branch: main}, variables: {PER_TENANT_SUBST: 'This tenant name is "a"'}}}`},
		"the demo, with settings": {
			Description{Name: "a", DemoNamespace: "foo",
				Settings: settings("isolation.podSecurity=Restricted", "reconciler={source: {url: https://example.com/x}, path: ./y, serviceAccount: z}",
					"reconciler.variables.A=1")},
			FormDemo, `{homeNamespace: foo, isolation: {podSecurity: Restricted}, reconciler: {serviceAccount: z, path: ./y, source: {url: 'https://example.com/x'}, ` +
				`variables: {A: '1', PER_TENANT_SUBST: 'This tenant name is "a"'}}}`},
		"the demo's shared source": {Description{Name: "a", DemoNamespace: "foo", SharedSource: true, DemoSource: found}, FormDemoShared,
			`{homeNamespace: foo, isolation: {podSecurity: Baseline},
			reconciler: {serviceAccount: foo, path: ./kustomizations/per-tenant, variables: {PER_TENANT_SUBST: 'This tenant name is "a"'}}}`},
	} {
		t.Run(about, func(t *testing.T) {
			var want v1beta1.TenantSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(c.want), &want))
			tenant, err := c.given.Tenant()
			require.NoError(t, err)
			require.Equal(t, "a", tenant.Name)
			require.Equal(t, c.form, tenant.Annotations[v1beta1.AnnotationForm])
			require.Equal(t, encoded(t, want), encoded(t, tenant.Spec))
		})
	}
}

func TestADescriptionThatContradictsItselfIsRefused(t *testing.T) {
	for message, given := range map[string]Description{
		"--shared-source requires --tenant-namespace": {Name: "a", SharedSource: true},
		"two home namespaces for one Tenant":          {Name: "a", DemoNamespace: "b", Settings: settings("homeNamespace=c")},
		"two sources for one Tenant": {Name: "a", DemoNamespace: "b", SharedSource: true,
			Settings: settings("reconciler.source.url=https://example.com/x")},
		"--tenant-namespace needs --set reconciler.source.url=URL": {Name: "a", DemoNamespace: "b"},
		"--set reconciler.source needs reconciler.source.url":      {Name: "a", DemoNamespace: "b", Settings: settings("reconciler.source.branch=main")},
		"there is none": {Name: "a", DemoNamespace: "b", DemoSource: func() (*v1beta1.TenantSource, error) { return nil, errors.New("there is none") }},
		"--set homeNamespace: the value is empty: give one, or leave the field out": {Name: "a", Settings: settings("homeNamespace=")},
	} {
		_, err := given.Tenant()
		require.ErrorContains(t, err, message)
	}
}
