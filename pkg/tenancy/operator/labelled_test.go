package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// restored is a Tenant as a restore creates it, so many seconds after the first.
func restored(seconds int64, tenant *v1beta1.Tenant) *v1beta1.Tenant {
	tenant.CreationTimestamp = metav1.NewTime(time.Unix(1000+seconds, 0))
	return tenant
}

func TestARestoreInAnotherOrderLeavesNamespacesToTheirTenants(t *testing.T) {
	var released []string
	c := fakeClient(t,
		interceptor.Funcs{Apply: accepts().Apply,
			Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
				released = append(released, object.GetName())
				return nil
			}}, restored(0, team("blue", "shop")), restored(9, team("green", "shop")), namespaceOf("blue", "blue"), namespaceOf("green", "green"),
		namespaceOf("green", "shop"))
	e := New(c, Options{})
	for tenant, want := range map[string][]string{"green": {"green", "shop"}, "blue": {"blue"}} {
		report, err := e.Apply(t.Context(), team(tenant, "shop"))
		require.NoError(t, err)
		require.Equal(t, want, report.Namespaces)
		if tenant == "blue" {
			require.Len(t, report.Problems, 1)
			require.Equal(t, "namespace shop belongs to Tenant green, which its label landwaiter.dev/tenant names: take it off one of them", report.Problems[0].Message)
		}
	}
	require.Empty(t, released)
}

func TestAChangedLabelConcernsWhoHadTheNamespaceAndWhoHasIt(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{}, restored(0, team("blue", "shop")), restored(9, team("green", "shop")), restored(5, team("red", "shop")))
	r := &reconciler{reader: c, client: c}
	for label, want := range map[string][]string{"": {"blue"}, "green": {"green"}, "red": {"red"}, "gone": {"gone", "blue"}} {
		var names []string
		for _, request := range r.ofNamespace(t.Context(), namespaceOf(label, "shop")) {
			names = append(names, request.Name)
		}
		require.Equal(t, want, names, "label %q", label)
	}
}
