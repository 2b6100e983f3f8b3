package library

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// The constraint that a Tenant stands for is one of this library's template.
func TestTheRegistriesOfATenantAreThoseThatTheTemplateAllows(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris-red"},
		Spec: v1beta1.TenantSpec{HomeNamespace: "iris-red", Namespaces: []string{"iris-red-web"},
			Isolation: v1beta1.TenantIsolation{Registries: []string{"registry.example.com/iris-red/", "localhost:5000/"}}}}
	objects, err := onboard.Objects(tenant, onboard.Options{Constraints: true})
	require.NoError(t, err)
	s := readTemplate(t, "tenant-allowed-registries")
	e := s.evaluator(t)
	found := false
	for _, constraint := range objects {
		if constraint.GetKind() != s.kind {
			continue
		}
		found = true
		spec, ok := constraint.Object["spec"].(object)
		require.True(t, ok)
		parameters, ok := spec["parameters"].(object)
		require.True(t, ok)
		for name := range parameters {
			require.Contains(t, s.parameters, name)
		}
		for image, allowed := range map[string]bool{
			"registry.example.com/iris-red/app:v1": true, "localhost:5000/app": true,
			"registry.example.com/iris-red-2/app:v1": false, "registry.example.com/iris-blue/app:v1": false, "localhost:5001/app": false, "nginx": false,
		} {
			review := reviewOf(object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "app", "namespace": "iris-red-web"},
				"spec": object{"containers": containers(image)}})
			messages, err := e.messages(t.Context(), ast.MustInterfaceToValue(object{"review": review, "parameters": parameters}), stored(object{}))
			require.NoError(t, err)
			require.Equal(t, allowed, len(messages) == 0, "%s: %q", image, messages)
		}
	}
	require.True(t, found)
}
