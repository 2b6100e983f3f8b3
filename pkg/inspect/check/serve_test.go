package check_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/pkg/inspect/check"
)

func TestTheDeploymentSaysHowServeRuns(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: named("system", "landwaiter"),
		Spec: container("serve", "--max-exception=1h", "--break-glass", "30m", "--max-exception=2h", "--cluster-role=reference-reader=a,operated-tenants=b",
			"--cluster-role", "reference-reader=c")}
	reader := func(err error, objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err != nil {
					return err
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
	}
	serve, why, err := check.ReadServe(t.Context(), reader(nil, deployment), "system")
	require.NoError(t, err)
	require.Empty(t, why)
	for name, want := range map[string]string{"max-exception": "2h", "break-glass": "30m"} {
		value, ok := serve.Flag(name)
		require.True(t, ok, name)
		require.Equal(t, want, value)
	}
	for name, want := range map[string]string{"reference-reader": "c", "operated-tenants": "b", "provider-suffix": "none"} {
		require.Equal(t, want, serve.Named("cluster-role", name, "none"))
	}
	_, ok := serve.Flag("max-delegation")
	require.False(t, ok)

	for name, c := range map[string]struct {
		reader client.Client
		says   string
	}{
		"another namespace": {reader(nil, deployment.DeepCopy()), "no Deployment in namespace other runs landwaiter-server serve"},
		"somebody without permission": {reader(apierrors.NewForbidden(appsv1.Resource("deployments"), "", nil)),
			"you cannot list deployments.apps in namespace other"},
	} {
		serve, why, err := check.ReadServe(t.Context(), c.reader, "other")
		require.NoError(t, err, name)
		require.Nil(t, serve, name)
		require.Equal(t, c.says, why)
	}
	_, _, err = check.ReadServe(t.Context(), reader(errors.New("connection refused")), "system")
	require.ErrorContains(t, err, "connection refused")
}

func TestALeaseThatNobodyRenewsSaysThatLandwaiterStopped(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: named("system", "landwaiter"), Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
	c := fake.NewClientBuilder().WithObjects(lease).Build()
	for name, row := range map[string]struct {
		namespace string
		now       time.Time
		stopped   bool
	}{
		"renewed lately":    {"system", at.Add(10 * time.Second), false},
		"not for a while":   {"system", at.Add(5 * time.Minute), true},
		"there is no Lease": {"other", at.Add(5 * time.Minute), false},
	} {
		stopped, unread, err := check.ReadStopped(t.Context(), c, row.namespace, row.now)
		require.NoError(t, err, name)
		require.Empty(t, unread, name)
		require.Equal(t, row.stopped, !stopped.IsZero(), name)
	}
	forbidden := fake.NewClientBuilder().
		WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(coordinationv1.Resource("leases"), "landwaiter", nil)
		}}).Build()
	stopped, unread, err := check.ReadStopped(t.Context(), forbidden, "system", at)
	require.NoError(t, err)
	require.Equal(t, "you cannot get leases.coordination.k8s.io in namespace system", unread)
	require.Zero(t, stopped)
}
