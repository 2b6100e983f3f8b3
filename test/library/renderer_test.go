package library

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// What a Tenant stands for passes the templates about Flux, with what Gatekeeper then has synced.
func TestTheFluxObjectsOfATenantPass(t *testing.T) {
	source := &v1beta1.TenantSource{URL: "https://github.com/example/iris-green", Branch: "main"}
	artifact := &v1beta1.TenantSource{URL: "oci://ghcr.io/example/iris-green", Branch: "latest"}
	shared := object{"allowedNamespaces": []any{"flux-system"}}
	for name, c := range map[string]struct {
		spec       v1beta1.TenantSpec
		form       string
		parameters object
		denied     bool // by flux-no-cross-namespace-refs without parameters
	}{
		"with members":                {spec: v1beta1.TenantSpec{Namespaces: []string{"iris-green-web"}, Reconciler: &v1beta1.TenantReconciler{Source: source}}},
		"alone":                       {spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{Source: source}}},
		"with an artifact":            {spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{Source: artifact}}},
		"with an account by its name": {spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "deployer", Source: source}}},
		"as the demo": {spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "iris-green", Source: source}},
			form: onboard.FormDemo},
		"as the demo, shared source": {spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "iris-green"}}, form: onboard.FormDemoShared,
			parameters: shared, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris-green"}, Spec: c.spec}
			tenant.Spec.HomeNamespace = "iris-green"
			if c.form != "" {
				tenant.Annotations = map[string]string{v1beta1.AnnotationForm: c.form}
			}
			objects, err := onboard.Objects(tenant, onboard.Options{})
			require.NoError(t, err)
			namespaces, seen := object{}, 0
			cluster := object{"v1": object{"Namespace": namespaces}}
			if account := tenant.Spec.Reconciler.ServiceAccount; account != "" {
				cluster["landwaiter.dev/v1beta1"] = object{"Tenant": object{"iris-green": object{"spec": object{"reconciler": object{"serviceAccount": account}}}}}
			}
			for _, given := range objects {
				if given.GetKind() == "Namespace" {
					namespaces[given.GetName()] = given.Object
				}
			}
			messages := func(folder string, given, parameters object) []string {
				found, err := readTemplate(t, folder).evaluator(t).
					messages(t.Context(), ast.MustInterfaceToValue(object{"review": reviewOf(given), "parameters": orEmpty(parameters)}), stored(object{"cluster": cluster}))
				require.NoError(t, err)
				return found
			}
			for _, given := range objects {
				switch given.GetKind() {
				case "Kustomization":
					require.Empty(t, messages("flux-service-account-required", given.Object, nil))
					require.Equal(t, c.denied, len(messages("flux-no-cross-namespace-refs", given.Object, nil)) > 0)
					fallthrough
				case "GitRepository", "OCIRepository":
					require.Empty(t, messages("flux-no-cross-namespace-refs", given.Object, c.parameters))
					seen++
				}
			}
			require.Positive(t, seen)
		})
	}
}
