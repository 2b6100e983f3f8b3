//go:build e2e

package teams

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// limit returns the constraint of a Tenant, nil if there is none.
func limit(ctx context.Context, t *testing.T, tenant string) *unstructured.Unstructured {
	t.Helper()
	constraint := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "TenantAllowedRegistries"}}
	err := w.Client.Get(ctx, client.ObjectKey{Name: tenant}, constraint)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	require.NoError(t, err)
	return constraint
}

// withTemplate makes the constraint's kind known until the end of a test.
func withTemplate(t *testing.T) {
	t.Helper()
	kind, err := cluster.DecodeFile("testdata/registries.yaml")
	require.NoError(t, err)
	require.NoError(t, w.Apply(within(t), kind...))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), kind[0]); err != nil {
			t.Errorf("delete the kind: %v", err)
		}
	})
}

func TestTheRegistriesOfATenantAreLimitedOnceTheTemplateIsThere(t *testing.T) {
	gone(t, "limited", "commanded")
	args := append(green("commanded"), "--registry", "registry.example.com/commanded/")
	without := try(t, append([]string{"tenant", "add"}, args...)...)
	require.Equal(t, 1, without.code)
	require.Contains(t, without.stderr, "the cluster does not know TenantAllowedRegistries of constraints.gatekeeper.sh: install its template, library/tenant-allowed-registries/template.yaml")
	for name := range objectsOf(t, "commanded") {
		require.NotContains(t, name, "RoleBinding", "nobody has rights before the limit is in force")
	}
	operate(t)
	tenant(t, "metadata: {name: limited}\nspec: {home: limited, people: {admins: [{kind: Group, name: a}]}, isolation: {registries: [registry.example.com/limited/, docker.io/library/]}}")
	require.Contains(t, provisioned(t, "limited", metav1.ConditionFalse, "NotInstalled"), "install its template")
	require.NotContains(t, objectsOf(t, "limited"), "RoleBinding limited/limited-admins")

	withTemplate(t)
	added := add(t, args...)
	require.NotZero(t, added.Created)
	require.Contains(t, objectsOf(t, "commanded"), "RoleBinding commanded/commanded-reconciler")
	require.NotNil(t, limit(within(t), t, "commanded"))
	// The operator looks again after a pause; any change of the Tenant is looked at now.
	live := &v1alpha1.Tenant{}
	patch := func(text string) {
		t.Helper()
		require.NoError(t, w.Client.Get(within(t), client.ObjectKey{Name: "limited"}, live))
		require.NoError(t, w.Client.Patch(within(t), live, client.RawPatch("application/merge-patch+json", []byte(text))))
	}
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/"]}}}`)
	provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, objectsOf(t, "limited"), "RoleBinding limited/limited-admins")
	prefixes := func(constraint *unstructured.Unstructured) []string {
		list, _, _ := unstructured.NestedStringSlice(constraint.Object, "spec", "parameters", "prefixes")
		return list
	}
	require.Equal(t, []string{"registry.example.com/limited/"}, prefixes(limit(within(t), t, "limited")))

	// It follows the Tenant, and goes with the list.
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/","ghcr.io/limited/"]}}}`)
	provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Equal(t, []string{"registry.example.com/limited/", "ghcr.io/limited/"}, prefixes(limit(within(t), t, "limited")))
	patch(`{"spec":{"isolation":{"registries":null}}}`)
	provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Nil(t, limit(within(t), t, "limited"))

	// And with the Tenant.
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/"]}}}`)
	provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	must(t, "tenant", "delete", "limited", "--delete-namespaces", "--yes")
	require.Nil(t, limit(within(t), t, "limited"))

	// The command's own goes with it, too.
	must(t, "tenant", "delete", "commanded", "--delete-namespaces", "--yes")
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		if limit(ctx, t, "commanded") != nil {
			return errors.New("the constraint is there")
		}
		return nil
	}))
}
