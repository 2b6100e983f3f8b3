package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestANamespaceWithoutConsentIsNamedFirstAsWhatHoldsUpTheRest(t *testing.T) {
	tenant := team("green", "listed")
	tenant.Spec.NamespacePrefix = "green-"
	e := New(fakeClient(t, accepts(), tenant, namespaceOf("green", "green"), namespaceOf("", "green-old"), namespaceOf("", "listed")), Options{})
	findings, _, err := e.Check(t.Context(), "green")
	require.NoError(t, err)
	var found []resource.Finding
	for _, f := range findings {
		if f.Tenant == "green" {
			found = append(found, f)
		}
	}
	require.Greater(t, len(found), 2)
	for i, want := range []string{"its name begins with the Tenant's prefix", "or take it off the Tenant"} {
		require.Equal(t, string(policy.ReasonNotOwned), found[i].ID)
		require.Contains(t, found[i].Message, want)
	}
	drifts := 0
	for _, f := range found[2:] {
		if f.ID == findingDrift {
			drifts++
			require.Contains(t, f.Fix, "`landwaiter tenant add green --set adopt=true`")
		}
	}
	require.NotZero(t, drifts)
}

func TestWhoMayNotReadTenantsIsToldTheRole(t *testing.T) {
	refuses := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "landwaiter.dev", Resource: "tenants"}, "", nil)
	}, Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "landwaiter.dev", Resource: "tenants"}, "green", nil)
	}}
	e := New(fakeClient(t, refuses), Options{})
	_, err := e.List(t.Context())
	require.ErrorContains(t, err, "landwaiter-cluster-admin")
	_, err = e.Namespaces(t.Context())
	require.ErrorContains(t, err, "landwaiter-cluster-admin")
	_, _, err = e.Merge(t.Context(), team("green"))
	require.ErrorContains(t, err, "landwaiter-cluster-admin")
	require.True(t, apierrors.IsForbidden(err))
}
