package onboard

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// demoTenant is what `tenant add --tenant-namespace foo --tenant-name sometenant` asks for.
func demoTenant(form string) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "foo",
		Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "foo", Path: DemoPath, Variables: DemoVariables("sometenant")}}}
	tenant.Name, tenant.Annotations = "sometenant", map[string]string{v1beta1.AnnotationForm: form}
	if form == FormDemo {
		tenant.Spec.Reconciler.Source = &v1beta1.TenantSource{URL: "https://github.com/example/demo"}
	}
	return tenant
}

// What the demo's ctrl.py makes, but for its binding of cluster-admin and with an account
// in the Kustomization.
func TestTheDemoHasTheObjectsAndNamesOfItsScript(t *testing.T) {
	for form, source := range map[string]map[string]any{
		FormDemo:       {"kind": "GitRepository", "name": "default"},
		FormDemoShared: {"kind": "GitRepository", "name": "default", "namespace": "flux-system"},
	} {
		t.Run(form, func(t *testing.T) {
			objects := render(t, demoTenant(form), everything())
			labels := find(t, objects, "Namespace/foo").GetLabels()
			require.Equal(t, "sometenant", labels["flux-multitenant-demo.ringerc.github.com/tenant-name"])
			require.Equal(t, "sometenant", labels["toolkit.fluxcd.io/tenant"])
			require.Equal(t, map[string]any{"PER_TENANT_SUBST": `This tenant name is "sometenant"`}, find(t, objects, "ConfigMap foo/tenant-vars").Object["data"])
			find(t, objects, "ServiceAccount foo/foo")
			binding := find(t, objects, "RoleBinding foo/foo-reconciler")
			require.Equal(t, []any{map[string]any{"kind": "ServiceAccount", "name": "foo", "namespace": "foo"}}, binding.Object["subjects"])
			require.Equal(t, map[string]any{
				"force": false, "interval": "5m", "path": "./kustomizations/per-tenant", "prune": true, "targetNamespace": "foo", "serviceAccountName": "foo",
				"sourceRef": source,
				"postBuild": map[string]any{"substitute": map[string]any{"SUBST_LITERAL": "sometenant"},
					"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "tenant-vars", "optional": false}}},
			}, find(t, objects, "Kustomization foo/dummy").Object["spec"])
			var sources []string
			for _, object := range objects {
				if object.GetKind() == "GitRepository" {
					url, _, _ := unstructured.NestedString(object.Object, "spec", "url")
					sources = append(sources, object.GetNamespace()+"/"+object.GetName()+" "+url)
				}
			}
			if form == FormDemoShared {
				require.Empty(t, sources)
			} else {
				require.Equal(t, []string{"foo/default https://github.com/example/demo"}, sources)
			}
			require.NotContains(t, ids(objects), "RoleBinding foo/sometenant-reconciler")
		})
	}
}

func TestAFormWithoutWhatItAppliesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1beta1.Tenant)
		says   string
	}{
		"a form that nobody knows": {func(t *v1beta1.Tenant) { t.Annotations[v1beta1.AnnotationForm] = "x" },
			`landwaiter.dev/form is "x"; use flux-multitenant-demo or flux-multitenant-demo-shared-source`},
		"no account": {func(t *v1beta1.Tenant) { t.Spec.Reconciler = nil }, "needs spec.reconciler"},
		"no source": {func(t *v1beta1.Tenant) { t.Spec.Reconciler.Source = nil },
			"spec.reconciler.source: the form flux-multitenant-demo needs the URL"},
		"an artifact": {func(t *v1beta1.Tenant) { t.Spec.Reconciler.Source.URL = "oci://example.com/x" }, "needs the URL of a Git repository"},
		"a variable that is the name's": {func(t *v1beta1.Tenant) {
			t.Spec.Reconciler.Variables = map[string]v1beta1.Variable{"SUBST_LITERAL": "x"}
		}, "SUBST_LITERAL is always the name of the Tenant"},
		"a source next to a shared one": {func(t *v1beta1.Tenant) { t.Annotations[v1beta1.AnnotationForm] = FormDemoShared },
			"uses GitRepository flux-system/default; leave out the source"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := demoTenant(FormDemo)
			c.change(tenant)
			_, err := Objects(tenant, everything())
			require.ErrorContains(t, err, c.says)
		})
	}
}

// A team can write its Secrets, so what the platform says wins: Flux takes the last entry that has a key.
func TestThePlatformsVariablesWinOverThoseOfSecrets(t *testing.T) {
	secrets := []v1beta1.VariablesSource{{SecretRef: v1beta1.Reference{Name: "app"}}, {SecretRef: v1beta1.Reference{Name: "more"}, Optional: true}}
	fromSecrets := []any{map[string]any{"kind": "Secret", "name": "app", "optional": false}, map[string]any{"kind": "Secret", "name": "more", "optional": true}}
	both := append(fromSecrets[:2:2], map[string]any{"kind": "ConfigMap", "name": "tenant-vars", "optional": false})
	own := &v1beta1.Tenant{
		Spec: v1beta1.TenantSpec{HomeNamespace: "web",
			Reconciler: &v1beta1.TenantReconciler{VariablesFrom: secrets, Source: &v1beta1.TenantSource{URL: "https://example.com/x"}}}}
	own.Name = "web"
	demo := demoTenant(FormDemo)
	demo.Spec.Reconciler.VariablesFrom = secrets
	for kustomization, c := range map[string]struct {
		tenant *v1beta1.Tenant
		want   []any
	}{"web/web": {own, fromSecrets}, "foo/dummy": {demo, both}} {
		objects := render(t, c.tenant, everything())
		got, _, err := unstructured.NestedSlice(find(t, objects, "Kustomization "+kustomization).Object, "spec", "postBuild", "substituteFrom")
		require.NoError(t, err)
		require.Equal(t, c.want, got, kustomization)
	}
	require.NotContains(t, ids(render(t, own, everything())), "ConfigMap web/tenant-vars")
}
