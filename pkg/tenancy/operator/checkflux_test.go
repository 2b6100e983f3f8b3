package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestFindsWhatFluxAppliesAsAnotherAccountOrFromElsewhere(t *testing.T) {
	for about, c := range map[string]struct {
		namespace, spec string
		findings        []string
		says            string
	}{
		"the team's account, from the home namespace": {"green", "{serviceAccountName: flux, sourceRef: {name: x}}", nil, ""},
		"a source of its own namespace":               {"green", "{serviceAccountName: flux, sourceRef: {name: x, namespace: green}}", nil, ""},
		"no account":                                  {"web", "{sourceRef: {name: x}}", []string{findingOtherAccount}, "names no account"},
		"another account in the home namespace":       {"green", "{serviceAccountName: admin}", []string{findingOtherAccount}, "set spec.serviceAccountName to flux"},
		"an account that developers may use": {"web", "{serviceAccountName: deployer}", []string{findingOtherAccount},
			"move it to the home namespace green"},
		"another cluster": {"green", "{serviceAccountName: flux, kubeConfig: {secretRef: {name: x}}}", []string{findingOtherAccount},
			"spec.kubeConfig"},
		"the source of the platform": {"green", "{serviceAccountName: flux, sourceRef: {name: default, namespace: flux-system}}",
			[]string{findingSharedSource}, "of namespace flux-system"},
		"the chart of somebody else": {"green", "{serviceAccountName: flux, chart: {spec: {sourceRef: {namespace: red}}}}",
			[]string{findingSharedSource}, "of namespace red"},
		"the artifact of somebody else": {"green", "{serviceAccountName: flux, chartRef: {namespace: red}}", []string{findingSharedSource},
			"of namespace red"},
		"no account, and a source from beyond": {"green", "{sourceRef: {namespace: red}}", []string{findingSharedSource, findingOtherAccount}, ""},
	} {
		t.Run(about, func(t *testing.T) {
			tenant := team("green", "web")
			tenant.Spec.Reconciler = &v1beta1.TenantReconciler{ServiceAccount: "flux"}
			object := &unstructured.Unstructured{Object: map[string]any{"kind": "Kustomization"}}
			spec := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(c.spec), &spec))
			object.Object["spec"] = spec
			object.SetNamespace(c.namespace)
			object.SetName("apps")
			checks := &checker{}
			checks.applier(tenant, object)
			var findings []string
			for _, f := range checks.found {
				findings = append(findings, f.ID)
				require.Equal(t, "Kustomization "+c.namespace+"/apps", f.Object.String())
				require.Contains(t, f.Message+": "+f.Remedy(), c.says)
			}
			require.Equal(t, c.findings, findings)
		})
	}
}

func TestFindsNamespacesWhoseTenantIsGone(t *testing.T) {
	accepts := interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return nil
	}}
	reader := func(tenant, name string) *rbacv1.ClusterRoleBinding {
		binding := makerBinding(name, name, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "people"})
		binding.Labels = map[string]string{v1beta1.LabelTenant: tenant, v1beta1.LabelOwner: v1beta1.OwnerPlatform}
		return binding
	}
	e := New(fakeClient(t, accepts, team("green"), namespaceOf("green", "green"), namespaceOf("gone", "left"), namespaceOf("", "default"),
		reader("green", "green-tenant-reader"), reader("gone", "gone-tenant-reader"), reader("gone", "another")), Options{})
	where := func(name string) (found []string) {
		findings, _, err := e.Check(t.Context(), name)
		require.NoError(t, err)
		for _, f := range findings {
			if f.ID == findingNoTenant {
				found = append(found, f.Object.String())
				require.Equal(t, "landwaiter tenant delete gone --yes", f.Command)
			}
		}
		return found
	}
	require.Equal(t, []string{"ClusterRoleBinding gone-tenant-reader", "Namespace left"}, where(""))
	require.Empty(t, where("green"), "it is about no Tenant that there is")
	_, _, err := e.TakeAway(t.Context(), "gone", Away{})
	require.NoError(t, err, "the command of the finding")
	require.Empty(t, where(""))
}
