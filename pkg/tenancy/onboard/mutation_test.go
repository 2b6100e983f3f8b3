package onboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestMutationObjectsAreThoseOfTheGoldenFile(t *testing.T) {
	m := Mutation{ProviderURL: "https://landwaiter.landwaiter-system.svc:443", CABundle: []byte("PEM"), TimeoutSeconds: 1,
		Labels: map[string]string{"app.kubernetes.io/name": "landwaiter"}}
	tenant := readTenant(t, "prefix")
	objects := append(m.Everywhere([]string{"kube-system", "gatekeeper-system", "kube-system"}),
		m.Stores(tenant, tenant.Spec.HomeNamespace, []string{"iris-green-web", "iris-green"})...)
	golden(t, "mutation.yaml", documents(t, append(objects, m.Stores(tenant, "greenhouse", []string{"greenhouse"})...)))
}

func TestAnEmptyListNeverMeansEveryNamespace(t *testing.T) {
	tenant := readTenant(t, "prefix")
	require.Equal(t, []string{"Provider/landwaiter-mutate"}, ids(Mutation{}.Only(nil)))
	require.Empty(t, Mutation{}.Stores(tenant, tenant.Spec.HomeNamespace, nil))
	for _, object := range append(Mutation{}.Only([]string{"a"}), Mutation{}.Stores(tenant, tenant.Spec.HomeNamespace, []string{"b"})...) {
		if object.GetKind() != "Assign" {
			continue
		}
		namespaces, found, err := unstructured.NestedStringSlice(object.Object, "spec", "match", "namespaces")
		require.NoError(t, err)
		require.True(t, found)
		require.NotEmpty(t, namespaces, object.GetName())
	}
}

// A member's objects must not take the place of another Tenant's.
func TestNamesOfMutationObjectsAreOneTenantsAlone(t *testing.T) {
	names := map[string]bool{}
	for _, tenant := range []string{"a", "a-b", "a-b-c"} {
		one := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: tenant}}
		one.Name = tenant
		objects := Mutation{}.Stores(one, one.Spec.HomeNamespace, []string{tenant})
		for _, namespace := range []string{"b", "b-c", "c"} {
			objects = append(objects, Mutation{}.Stores(one, namespace, []string{namespace})...)
		}
		for _, id := range ids(objects) {
			require.False(t, names[id], id)
			names[id] = true
		}
	}
}

// Gatekeeper refuses longer names of Assigns.
func TestNamesOfMutationObjectsAreShortAndStillDiffer(t *testing.T) {
	names := map[string]bool{}
	for _, last := range []string{"a", "b"} {
		tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "home"}}
		tenant.Name = strings.Repeat("x", 39) + last
		for _, object := range append(Mutation{}.Stores(tenant, tenant.Spec.HomeNamespace, []string{"home"}),
			Mutation{}.Stores(tenant, strings.Repeat("n", 63), []string{strings.Repeat("n", 63)})...) {
			require.LessOrEqual(t, len(object.GetName()), 63)
			require.True(t, strings.HasPrefix(object.GetName(), tenantMutation), "the operator guardrail knows it by that")
			require.False(t, names[object.GetKind()+object.GetName()], object.GetName())
			names[object.GetKind()+object.GetName()] = true
		}
	}
}

// The operator guardrail compares the name of a Provider with the namespace that it asks.
func TestAProvidersNameSaysWhichNamespaceItAsks(t *testing.T) {
	tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "home"}}
	tenant.Name = "iris-green"
	namespace := "iris-green-" + strings.Repeat("x", 23)
	for _, object := range append(Mutation{}.Stores(tenant, tenant.Spec.HomeNamespace, []string{"home"}),
		Mutation{}.Stores(tenant, namespace, []string{namespace})...) {
		provider, _, err := unstructured.NestedString(object.Object, "spec", "parameters", "assign", "externalData", "provider")
		require.NoError(t, err)
		if object.GetKind() == "Provider" {
			provider = object.GetName()
		}
		require.Contains(t, []string{"landwaiter-tenant-iris-green", "landwaiter-tenant-iris-green." + namespace}, provider)
	}
}
