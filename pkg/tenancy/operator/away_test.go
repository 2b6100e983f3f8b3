package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// left is a Tenant that the operator has managed, with what it stands for.
func left(finalizers ...string) []client.Object {
	tenant := team("green", "web")
	tenant.Finalizers, tenant.UID = append(finalizers, Finalizer), "1"
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "admins", Labels: labelsOf("green")}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "tenant", Labels: labelsOf("green")}}
	return []client.Object{tenant, namespaceOf("green", "green"), namespaceOf("green", "web"), binding, quota}
}

func TestWithoutItsOperatorATenantIsDeletedByTheCommand(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{}, left()...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	_, preview, err := New(c, Options{DryRun: true}).TakeAway(ctx, "green", Away{OperatorGone: true})
	require.NoError(t, err)
	require.True(t, preview.Freed)
	require.Equal(t, []string{"green", "web"}, preview.Adopted, "it says what stays")
	tenant := &v1beta1.Tenant{}
	require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "green"}, tenant))
	require.Equal(t, []string{Finalizer}, tenant.Finalizers)
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "admins"}, &rbacv1.RoleBinding{}))

	_, deletion, err := New(c, Options{}).TakeAway(ctx, "green", Away{OperatorGone: true})
	require.NoError(t, err)
	require.True(t, deletion.Freed)
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: "green"}, tenant)))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "admins"}, &rbacv1.RoleBinding{})), "nobody keeps permissions")
	namespace := &corev1.Namespace{}
	require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "web"}, namespace))
	require.Empty(t, namespace.Labels, "the next may have it")
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "tenant"}, &corev1.ResourceQuota{}))
}

func TestATenantThatIsStuckAlreadyIsFreed(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{}, left()...)
	require.NoError(t, c.Delete(t.Context(), team("green")))
	_, deletion, err := New(c, Options{}).TakeAway(t.Context(), "green", Away{OperatorGone: true})
	require.NoError(t, err)
	require.True(t, deletion.Freed)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "green"}, &v1beta1.Tenant{})))
}

func TestFinalizersOfOthersStay(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{}, left("example.com/other")...)
	_, _, err := New(c, Options{}).TakeAway(t.Context(), "green", Away{OperatorGone: true})
	var unfinished *UnfinishedError
	require.ErrorAs(t, err, &unfinished)
	require.ErrorContains(t, err, "Tenant green waits for the finalizers of others: example.com/other")
	tenant := &v1beta1.Tenant{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "green"}, tenant))
	require.Equal(t, []string{"example.com/other"}, tenant.Finalizers)
}

func TestWhileAnOperatorRunsItDeletesTheTenant(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{}, left()...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, _, err := New(c, Options{}).TakeAway(ctx, "green", Away{})
	require.ErrorContains(t, err, "the operator has not finished to delete Tenant green")
	require.ErrorContains(t, err, "scale landwaiter-operator to 0 replicas")
	tenant := &v1beta1.Tenant{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "green"}, tenant))
	require.Equal(t, []string{Finalizer}, tenant.Finalizers)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "admins"}, &rbacv1.RoleBinding{}))
}
