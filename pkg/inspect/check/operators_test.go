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
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// goes is a Tenant that has been ending for a time.
func goes(name string, since time.Duration, finalizers ...string) *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	if since > 0 {
		tenant.DeletionTimestamp = &metav1.Time{Time: now().Add(-since)}
	}
	tenant.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProvisioned, Status: metav1.ConditionFalse, Reason: "Unfinished",
		Message: "Kustomization a/a waits for its finalizers"}}
	return tenant
}

// renewed is the operator's Lease, renewed some time ago.
func renewed(ago time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "landwaiter-system", Name: "landwaiter-operator"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: pointer("operator-1"), RenewTime: &metav1.MicroTime{Time: now().Add(-ago)}}}
}

// released is the operator's Lease after the operator has ended.
func released() *coordinationv1.Lease {
	lease := renewed(time.Second)
	lease.Spec.HolderIdentity = nil
	return lease
}

func operating(replicas, ready int32) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "landwaiter-system", Name: "landwaiter-operator"}, Spec: container("operate")}
	d.Spec.Replicas, d.Status.ReadyReplicas, d.Status.ObservedGeneration = &replicas, ready, 1
	return d
}

func TestATenantWhoseDeletionNobodyFinishesIsFound(t *testing.T) {
	const finalizer = "landwaiter.dev/operator"
	for name, c := range map[string]struct {
		tenant    *v1beta1.Tenant
		operators []appsv1.Deployment
		lease     *coordinationv1.Lease
		severity  resource.Severity // "" for no finding
		says      string
		remedy    string
	}{
		"no operator": {goes("a", time.Second, finalizer), nil, nil, resource.Error, "no operator runs", "landwaiter tenant delete a --yes"},
		"an operator that was scaled to none": {goes("a", time.Second, finalizer), []appsv1.Deployment{operating(0, 0)}, renewed(time.Hour), resource.Error,
			"no operator runs", "landwaiter tenant delete a --yes"},
		"one whose lease has run out": {goes("a", time.Second, finalizer), nil, renewed(2 * time.Minute), resource.Error, "no operator runs",
			"landwaiter tenant delete a --yes"},
		"one that has released its lease": {goes("a", time.Second, finalizer), nil, released(), resource.Error, "no operator runs",
			"landwaiter tenant delete a --yes"},
		"one that runs elsewhere":        {goes("a", time.Second, finalizer), nil, renewed(time.Second), "", "", ""},
		"one that has just been started": {goes("a", time.Second, finalizer), []appsv1.Deployment{operating(1, 0)}, nil, "", "", ""},
		"one that does not come up": {goes("a", 5*time.Minute, finalizer), []appsv1.Deployment{operating(1, 0)}, renewed(time.Hour), resource.Error,
			"no replica of the operator is ready", "kubectl rollout restart deployment landwaiter-operator --namespace=landwaiter-system"},
		"one that works":                 {goes("a", time.Minute, finalizer), []appsv1.Deployment{operating(1, 1)}, renewed(time.Second), "", "", ""},
		"one without a lease that works": {goes("a", time.Minute, finalizer), []appsv1.Deployment{operating(1, 1)}, nil, "", "", ""},
		"one that does not get on": {goes("a", time.Hour, finalizer), []appsv1.Deployment{operating(1, 1)}, renewed(time.Second), resource.Warning,
			"Kustomization a/a waits for its finalizers", "remove what its condition Provisioned names"},
		"a Tenant that is not being deleted": {goes("a", 0, finalizer), nil, nil, "", "", ""},
		"a Tenant that others keep":          {goes("a", time.Hour, "example.com/other"), nil, nil, "", "", ""},
		"a Tenant that others keep and we too": {goes("a", time.Hour, "example.com/other", finalizer), nil, nil, resource.Error, "no operator runs",
			"landwaiter tenant delete a --yes"},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Resources, i.OperatorLease = append(i.Resources, c.tenant), c.lease
			i.Landwaiters = append(i.Landwaiters, c.operators...)
			var found []resource.Finding
			for _, f := range check.Examine(i, schema.Embedded()).Findings {
				if f.ID == check.TenantStuck {
					found = append(found, f)
				}
			}
			if c.severity == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, c.severity, found[0].Severity)
			require.Equal(t, "Tenant a", found[0].Object.String())
			require.Contains(t, found[0].Message, c.says)
			require.NotEmpty(t, found[0].Why)
			require.Equal(t, c.remedy, found[0].Remedy())
		})
	}
}

func TestTheCommandThatDeletesAStuckTenantFindsLandwaiterElsewhere(t *testing.T) {
	i := sound(t)
	i.Resources, i.Namespace = append(i.Resources, goes("a", time.Hour, "landwaiter.dev/operator")), "elsewhere"
	i.Landwaiters[0].Spec.Template.Spec.ServiceAccountName = "verifier"
	for _, f := range check.Examine(i, schema.Embedded()).Findings {
		if f.ID == check.TenantStuck {
			require.Equal(t, "landwaiter tenant delete a --yes --landwaiter-account=elsewhere/verifier", f.Command)
		}
	}
}

// refusing answers nothing about one kind.
func refusing(what kube.GroupResource, err error) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, deployments := list.(*appsv1.DeploymentList); deployments && what.Resource == "deployments" {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, lease := object.(*coordinationv1.Lease); lease && what.Resource == "leases" {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
}

func TestWhetherTheOperatorIsGoneIsKnownOrSaid(t *testing.T) {
	there, none := operating(1, 1), operating(0, 0)
	for name, c := range map[string]struct {
		namespace string
		objects   []client.Object
		gone      bool
	}{
		"nothing is there":                          {"landwaiter-system", nil, true},
		"a Deployment":                              {"landwaiter-system", []client.Object{&there}, false},
		"a Deployment of 0 replicas":                {"landwaiter-system", []client.Object{&none}, true},
		"a lease that is held":                      {"landwaiter-system", []client.Object{renewed(time.Second)}, false},
		"a lease that is not held":                  {"landwaiter-system", []client.Object{renewed(time.Hour)}, true},
		"a lease that is held in another namespace": {"elsewhere", []client.Object{renewed(time.Second)}, false},
	} {
		gone, why, err := check.OperatorGone(t.Context(),
			fake.NewClientBuilder().WithObjects(c.objects...).WithIndex(&coordinationv1.Lease{}, "metadata.name",
				func(o client.Object) []string { return []string{o.GetName()} }).Build(), c.namespace, now())
		require.NoError(t, err, name)
		require.Equal(t, c.namespace == "elsewhere", why == "an operator runs in namespace landwaiter-system", name)
		require.Equal(t, c.gone, gone, name)
	}
	for _, forbidden := range []kube.GroupResource{{Group: "apps", Resource: "deployments"}, {Group: "coordination.k8s.io", Resource: "leases"}} {
		gone, why, err := check.OperatorGone(t.Context(), refusing(forbidden, apierrors.NewForbidden(forbidden, "", nil)), "landwaiter-system", now())
		require.NoError(t, err)
		require.False(t, gone, "who does not know must not do the operator's work")
		require.Contains(t, why, "you cannot")
		require.Contains(t, why, forbidden.String())
		_, _, err = check.OperatorGone(t.Context(), refusing(forbidden, errors.New("connection refused")), "landwaiter-system", now())
		require.ErrorContains(t, err, "connection refused")
	}
}
