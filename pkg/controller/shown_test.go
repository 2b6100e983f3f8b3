package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

func newRuleWriter(b *bench) *ruleWriter {
	return &ruleWriter{Controller: b.Controller, texts: map[verify.Namespace]string{}, told: map[verify.Namespace]bool{}, limiter: rate.NewLimiter(rate.Inf, 1)}
}

func iris() *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}}
	tenant.Spec.Home, tenant.Spec.Namespaces = "iris", []string{"iris-web"}
	return tenant
}

// shownFor returns the ConfigMap of a namespace, nil if there is none.
func (b *bench) shownFor(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	var found corev1.ConfigMap
	err := b.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: resource.ShownName}, &found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return &found
}

func TestRulesAreShownInTheNamespacesOfTenantsAndWrittenOnlyWhenTheyChange(t *testing.T) {
	writes := 0
	b := newBench(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		writes++
		return c.Apply(ctx, applied, options...)
	}}, team("iris"), team("iris-web"), team("alone"), iris())
	b.reconcile(t, verify.Cluster)
	w := newRuleWriter(b)
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), true))
	require.Equal(t, 2, writes)
	require.Nil(t, b.shownFor(t, "alone"))
	for _, namespace := range []string{"iris", "iris-web"} {
		shown := b.shownFor(t, namespace)
		require.Equal(t, map[string]string{v1alpha1.LabelOwner: v1alpha1.OwnerPlatform}, shown.Labels, "the guardrails protect it by this label")
		read, err := resource.ParseShown(namespace, shown.Data[resource.ShownKey])
		require.NoError(t, err)
		require.Equal(t, "iris", read.Tenant)
	}
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), false))
	require.Equal(t, 2, writes, "what does not change is not written")
	floor := &v1alpha1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "floor"}}
	floor.Spec.Scope = v1alpha1.PolicyScopeFloor
	require.NoError(t, b.api.Create(t.Context(), floor))
	b.reconcile(t, verify.Cluster)
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), false))
	require.Equal(t, 4, writes)
	require.Contains(t, b.shownFor(t, "iris").Data[resource.ShownKey], `"name": "floor"`)
}

func TestRulesAreRemovedWhereNoTenantHoldsTheNamespace(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("iris"), team("iris-web"), iris())
	b.reconcile(t, verify.Cluster)
	left := func(namespace string, labels map[string]string) {
		_, err := b.clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: resource.ShownName, Labels: labels}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ours := map[string]string{v1alpha1.LabelOwner: v1alpha1.OwnerPlatform}
	left("gone", ours)
	left("iris", ours)
	left("stranger", nil)
	require.NoError(t, newRuleWriter(b).round(t.Context(), b.set.Snapshot(), true))
	_, err := b.clients.CoreV1().ConfigMaps("gone").Get(t.Context(), resource.ShownName, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "an earlier leader has left it")
	for _, kept := range []string{"iris", "stranger"} {
		_, err := b.clients.CoreV1().ConfigMaps(kept).Get(t.Context(), resource.ShownName, metav1.GetOptions{})
		require.NoError(t, err, kept)
	}
}

func TestANamespaceThatRefusesDoesNotHoldUpOthers(t *testing.T) {
	asked := 0
	b := newBench(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		if asked++; asked == 1 { // for iris, the first by name
			return apierrors.NewForbidden(corev1.Resource("configmaps"), resource.ShownName, nil)
		}
		return c.Apply(ctx, applied, options...)
	}}, team("iris"), team("iris-web"), iris())
	b.reconcile(t, verify.Cluster)
	w := newRuleWriter(b)
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), true))
	require.True(t, w.failed, "it is tried again")
	require.NotNil(t, b.shownFor(t, "iris-web"))
}
