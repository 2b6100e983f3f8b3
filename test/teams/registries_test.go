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

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// limit returns the constraint of a Tenant, nil if there is none.
func (w *installation) limit(ctx context.Context, t *testing.T, tenant string) *unstructured.Unstructured {
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
func (w *installation) withTemplate(t *testing.T) {
	t.Helper()
	kind, err := cluster.DecodeFile("testdata/registries.yaml")
	require.NoError(t, err)
	require.NoError(t, w.Apply(suite.Within(t), kind...))
	t.Cleanup(func() {
		require.NoError(t, w.Client.Delete(suite.Within(t), kind[0]))
		suite.Eventually(t, func(ctx context.Context) error {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(kind[0]), kind[0]); !apierrors.IsNotFound(err) {
				return errors.Join(err, errors.New("the kind is there"))
			}
			return nil
		})
	})
}

func TestTheRegistriesOfATenantAreLimitedOnceTheTemplateIsThere(t *testing.T) {
	w := installed(t)
	w.gone(t, "limited", "commanded")
	w.vacant(t, "limited", "commanded", "commanded-web")
	args := append(typical("commanded"), "--set", "isolation.registries=registry.example.com/commanded/")
	without := w.program.Run(t, "", append([]string{"tenant", "add"}, args...)...)
	require.Equal(t, 1, without.Code)
	require.Contains(t, without.Stderr, "the cluster does not know TenantAllowedRegistries of constraints.gatekeeper.sh: install its template, "+
		"library/tenant-allowed-registries/template.yaml")
	for name := range w.objectsOf(t, "commanded") {
		require.NotContains(t, name, "RoleBinding", "nobody has permissions before the limit is in force")
	}
	w.operate(t)
	w.tenant(t, "metadata: {name: limited}\nspec: {homeNamespace: limited, access: {admins: [{kind: Group, name: a}]}, isolation: {registries: "+
		"[registry.example.com/limited/, docker.io/library/]}}")
	require.Contains(t, w.provisioned(t, "limited", metav1.ConditionFalse, "NotInstalled"), "install its template")
	require.NotContains(t, w.objectsOf(t, "limited"), "RoleBinding limited/limited-admins")

	w.withTemplate(t)
	added := w.add(t, args...)
	require.Greater(t, added.Created+added.Unchanged, 15, "all is there, by the operator if it was faster")
	require.Contains(t, w.objectsOf(t, "commanded"), "RoleBinding commanded/commanded-reconciler")
	require.NotNil(t, w.limit(suite.Within(t), t, "commanded"))
	// The operator looks again after a pause; any change of the Tenant is looked at now.
	patch := func(text string) {
		t.Helper()
		w.patchTenant(t, "limited", text)
	}
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/"]}}}`)
	w.provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, w.objectsOf(t, "limited"), "RoleBinding limited/limited-admins")
	prefixes := func(constraint *unstructured.Unstructured) []string {
		list, _, _ := unstructured.NestedStringSlice(constraint.Object, "spec", "parameters", "prefixes")
		return list
	}
	require.Equal(t, []string{"registry.example.com/limited/"}, prefixes(w.limit(suite.Within(t), t, "limited")))

	// It follows the Tenant, and goes with the list.
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/","ghcr.io/limited/"]}}}`)
	w.provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Equal(t, []string{"registry.example.com/limited/", "ghcr.io/limited/"}, prefixes(w.limit(suite.Within(t), t, "limited")))
	patch(`{"spec":{"isolation":{"registries":null}}}`)
	w.provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	require.Nil(t, w.limit(suite.Within(t), t, "limited"))

	// And with the Tenant.
	patch(`{"spec":{"isolation":{"registries":["registry.example.com/limited/"]}}}`)
	w.provisioned(t, "limited", metav1.ConditionTrue, "Provisioned")
	w.program.Must(t, "tenant", "delete", "limited", "--yes")
	require.Nil(t, w.limit(suite.Within(t), t, "limited"))

	// The command's own goes with it, too.
	w.program.Must(t, "tenant", "delete", "commanded", "--yes")
	suite.Eventually(t, func(ctx context.Context) error {
		if w.limit(ctx, t, "commanded") != nil {
			return errors.New("the constraint is there")
		}
		return nil
	})
}
