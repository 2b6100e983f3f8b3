//go:build e2e

package v1beta1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is a change of Tenants: the one that exists, if a rule is about changes, and the
// one that is asked for.
func (r rule) request(t *testing.T, server client.Client, row string) error {
	t.Helper()
	made := &unstructured.Unstructured{Object: decode(t, r.text("Tenant", row))}
	if r.before == "" {
		return server.Create(t.Context(), made, client.DryRunAll)
	}
	existing := &unstructured.Unstructured{Object: decode(t, r.text("Tenant", r.before))}
	if err := server.Create(t.Context(), existing); err != nil {
		return err
	}
	made.SetResourceVersion(existing.GetResourceVersion())
	err := server.Update(t.Context(), made, client.DryRunAll)
	require.NoError(t, server.Delete(t.Context(), existing))
	return err
}

func TestTenantRulesRefuseWithTheFix(t *testing.T) {
	server := client.WithFieldValidation(running(t).Client, metav1.FieldValidationStrict)
	rows := 0
	for _, r := range tenantRules() {
		for _, row := range r.accepted {
			require.NoError(t, r.request(t, server, row), row)
		}
		for _, row := range r.rejected {
			err := r.request(t, server, row)
			require.ErrorContains(t, err, r.message, row)
			require.ErrorContains(t, err, "Tenant.landwaiter.dev", row)
			rows++
		}
	}
	t.Logf("%d Tenants refused", rows)
}
