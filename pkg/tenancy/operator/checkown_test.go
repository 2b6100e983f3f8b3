package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestATeamsOwnCheckRunsWhatItMayAndNamesWhatItSkips(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "iris-web", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(binding).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*rbacv1.ClusterRole); ok {
				return apierrors.NewForbidden(rbacv1.Resource("clusterroles"), key.Name, nil)
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}}
	tenant.Spec.HomeNamespace, tenant.Spec.Namespaces = "iris", []string{"iris-web"}
	found, unchecked, err := New(c, Options{}).CheckOwn(t.Context(), tenant, "iris-web")
	require.NoError(t, err)
	require.Len(t, found, 2, "neither namespace has a default-deny")
	for i, namespace := range []string{"iris", "iris-web"} {
		require.Equal(t, findingNoDefaultDeny, found[i].ID)
		require.Equal(t, namespace, found[i].Object.Name)
	}
	require.Len(t, unchecked, 2)
	require.Contains(t, unchecked[0].IDs, findingConflict)
	require.Equal(t, []string{findingNamespaceReach, findingDefaultAccount, findingNoPermissions}, unchecked[1].IDs)
	require.Contains(t, unchecked[1].Why, "namespace iris-web")
}

// Where no controller aggregates, the default role of a team's account has no rules, and the API server
// refuses everything without saying why.
func TestABindingToARoleThatNobodyFilledInIsFound(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "iris", Name: "b"},
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "landwaiter-reconciler"}}
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris"}}
	for name, c := range map[string]struct {
		role *rbacv1.ClusterRole
		want bool
	}{
		"not filled in": {&rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}, true},
		"filled in": {&rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}, false},
		"a role that is empty on purpose": {&rbacv1.ClusterRole{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.role.Name = "landwaiter-reconciler"
			found, _, err := New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(binding.DeepCopy(), c.role).Build(), Options{}).
				CheckOwn(t.Context(), tenant, "iris")
			require.NoError(t, err)
			said := ""
			for _, f := range found {
				if f.ID == findingNoPermissions {
					said = f.Object.String() + " " + f.Message
				}
			}
			require.Equal(t, c.want, said != "", said)
			if c.want {
				require.Equal(t, "RoleBinding iris/b gives nothing: ClusterRole landwaiter-reconciler aggregates other roles, and has no rules", said)
			}
		})
	}
}
