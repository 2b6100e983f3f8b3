package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

func TestBindingsThatNoTenantMadeAreNamedWhenItGoes(t *testing.T) {
	binding := func(name, role string, labels map[string]string, groups ...string) client.Object {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		for _, group := range groups {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: group})
		}
		return b
	}
	green := team("green", "web")
	green.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: "Group", Name: "green-admins"}, {Kind: "Group", Name: "operators"}}
	red := team("red", "web")
	red.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: "Group", Name: "operators"}}
	c := fakeClient(t, interceptor.Funcs{}, green, red,
		binding("operators", "landwaiter-cluster-reader", nil, "operators"),
		binding("green-cluster-reader", "landwaiter-cluster-reader", nil, "somebody"),
		binding("previews", "lw-cluster-reader", nil, "green-admins"),
		binding("everybody", "landwaiter-cluster-reader", nil, "green-admins", "red-admins"),
		binding("nobody", "landwaiter-cluster-reader", nil),
		binding("green-admins", "view", nil, "green-admins"),
		binding("green-tenant-reader", "green-tenant-reader", labelsOf("green"), "green-admins"),
		binding("red-tenant-reader", "red-tenant-reader", nil, "red-admins"))
	left, err := New(c, Options{}).LeftOver(t.Context(), green)
	require.NoError(t, err)
	require.Equal(t, []string{"green-cluster-reader", "previews"}, left.Bindings, "not what others use too, nor what goes with the Tenant")

	left, err = New(c, Options{}).LeftOver(t.Context(), team("red"))
	require.NoError(t, err)
	require.Equal(t, []string{"red-tenant-reader"}, left.Bindings, "an admin made it beside the operator")
}

func TestWhoMayNotListBindingsDeletesATenantAllTheSame(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterrolebindings"}, "", nil)
	}})
	left, err := New(c, Options{}).LeftOver(t.Context(), team("green"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRulesOfTheHomeNamespaceAreNamedWhenATenantGoes(t *testing.T) {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	green := team("green", "web")
	c := fakeClient(t, interceptor.Funcs{}, green, &v1beta1.Verifier{ObjectMeta: in("green", "release")}, &v1beta1.TrustStore{ObjectMeta: in("green", "keys")},
		&v1beta1.Verifier{ObjectMeta: in("web", "its-own")})
	left, err := New(c, Options{}).LeftOver(t.Context(), green)
	require.NoError(t, err)
	require.Equal(t, []policy.ObjectRef{{Kind: "Verifier", Namespace: "green", Name: "release"}, {Kind: "TrustStore", Namespace: "green", Name: "keys"}},
		left.Rules)
}

// A later Tenant of the name would have the old delegation at once.
func TestClusterResourcesThatNameATenantAreNamedWhenItGoes(t *testing.T) {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	green, red := team("green"), team("red")
	c := fakeClient(t, interceptor.Funcs{}, red,
		&v1beta1.ClusterException{ObjectMeta: in("may"), Spec: v1beta1.ExceptionSpec{Delegate: &v1beta1.ExceptionDelegation{Tenants: []string{"red", "green"}}}},
		&v1beta1.ClusterException{ObjectMeta: in("images")},
		&v1beta1.ClusterQuota{ObjectMeta: in("green"), Spec: v1beta1.ClusterQuotaSpec{Tenants: []string{"green"}}},
		&v1beta1.ClusterQuota{ObjectMeta: in("red"), Spec: v1beta1.ClusterQuotaSpec{Tenants: []string{"red"}}})
	left, err := New(c, Options{}).LeftOver(t.Context(), green)
	require.NoError(t, err)
	names := []policy.ObjectRef{{Kind: "ClusterException", Name: "may"}, {Kind: "ClusterQuota", Name: "green"}}
	require.Equal(t, names, left.Names)

	findings, _, err := New(c, Options{}).Check(t.Context(), "")
	require.NoError(t, err)
	var found []policy.ObjectRef
	for _, f := range findings {
		if f.ID == findingNoTenant {
			found = append(found, f.Object)
			require.Contains(t, f.Message, "names Tenant green, which does not exist")
		}
	}
	require.ElementsMatch(t, names, found, "Tenant red exists")
}
