//go:build e2e

package teams

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// stuckTenants are the Tenants that check finds.
func (w *installation) stuckTenants(t *testing.T) (names []string) {
	t.Helper()
	r := w.program.Run(t, "", "check", "--output", "json")
	var printed struct {
		Findings []struct {
			ID, Command string
			Object      struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &printed), r.Stderr)
	for _, f := range printed.Findings {
		if f.ID == "TenantStuck" {
			require.Equal(t, "landwaiter tenant delete "+f.Object.Name+" --yes", f.Command)
			names = append(names, f.Object.Name)
		}
	}
	return names
}

func TestATenantWhoseOperatorIsGoneIsFoundAndDeleted(t *testing.T) {
	w := installed(t)
	w.gone(t, "stuck")
	w.vacant(t, "stuck", "stuck-web")
	process, _ := w.operate(t)
	w.add(t, typical("stuck")...)
	w.provisioned(t, "stuck", metav1.ConditionTrue, "Provisioned")
	process.Terminate(suite.Patience)
	scale := func(replicas int) {
		w.patch(t, suite.Object("{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %s, name: landwaiter-operator}}", suite.System),
			fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	}
	scale(0)
	t.Cleanup(func() { scale(1) })

	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "stuck"}}
	require.Empty(t, w.stuckTenants(t))
	require.NoError(t, w.Client.Delete(suite.Within(t), tenant))
	require.Equal(t, []string{"stuck"}, w.stuckTenants(t))
	require.Contains(t, w.program.Must(t, "tenant", "list"), "deleting")

	preview := w.program.Run(t, "", "tenant", "delete", "stuck")
	require.Equal(t, 1, preview.Code)
	require.Contains(t, preview.Stdout, "2 namespaces would be kept (namespaceReclaimPolicy: Retain)")
	require.Contains(t, preview.Stdout, "the operator's finalizer would be removed, because no operator runs")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(tenant), tenant))
	require.NotEmpty(t, w.objectsOf(t, "stuck"))

	require.Contains(t, w.program.Must(t, "tenant", "delete", "stuck", "--yes"), "2 namespaces kept (namespaceReclaimPolicy: Retain)")
	err := w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(tenant), tenant)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Empty(t, w.objectsOf(t, "stuck"), "nobody keeps permissions")
	require.True(t, w.exists(t, "stuck-web"))
	require.Empty(t, w.stuckTenants(t))
}

// A restore creates Tenants in any order.
func TestARestoreInAnotherOrderLeavesANamespaceToItsTenant(t *testing.T) {
	w := installed(t)
	w.gone(t, "restored-a", "restored-b")
	w.vacant(t, "restored-a", "restored-b", "restored-shop")
	const second = "metadata: {name: restored-b}\nspec: {homeNamespace: restored-b, namespaces: [restored-shop]}"
	w.operate(t)
	w.tenant(t, second)
	w.provisioned(t, "restored-b", metav1.ConditionTrue, "Provisioned")
	w.tenant(t, "metadata: {name: restored-a}\nspec: {homeNamespace: restored-a, namespaces: [restored-shop]}")
	require.Contains(t, w.provisioned(t, "restored-a", metav1.ConditionFalse, "NotOwned"),
		"namespace restored-shop belongs to Tenant restored-b, which its label landwaiter.dev/tenant names")

	// It goes without the operator's work, and comes back as the younger one.
	lost := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "restored-b"}}
	w.patch(t, lost, `{"metadata":{"finalizers":null}}`)
	before := w.objectsOf(t, "restored-b")
	require.NoError(t, w.Client.Delete(suite.Within(t), lost, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.tenant(t, second)
	w.provisioned(t, "restored-b", metav1.ConditionTrue, "Provisioned")
	require.Contains(t, w.provisioned(t, "restored-a", metav1.ConditionFalse, "NotOwned"), "restored-shop")
	for name := range before {
		require.Contains(t, w.objectsOf(t, "restored-b"), name)
	}
}
