package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func newRuleWriter(b *bench) *ruleWriter {
	return &ruleWriter{Controller: b.Controller, written: map[verify.Namespace][sha256.Size]byte{}, told: map[verify.Namespace]bool{}, limiter: rate.NewLimiter(rate.Inf, 1)}
}

func iris() *v1beta1.Tenant {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}}
	tenant.Spec.HomeNamespace, tenant.Spec.Namespaces = "iris", []string{"iris-web"}
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
		require.Equal(t, map[string]string{v1beta1.LabelOwner: v1beta1.OwnerPlatform}, shown.Labels, "the guardrails protect it by this label")
		read, err := resource.ParseShown(namespace, shown.Data[resource.ShownKey])
		require.NoError(t, err)
		require.Equal(t, "iris", read.Tenant)
	}
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), false))
	require.Equal(t, 2, writes, "what does not change is not written")
	mandatory := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mandatory"}}
	mandatory.Spec.Scope = v1beta1.PolicyScopeMandatory
	require.NoError(t, b.api.Create(t.Context(), mandatory))
	b.reconcile(t, verify.Cluster)
	require.NoError(t, w.round(t.Context(), b.set.Snapshot(), false))
	require.Equal(t, 4, writes)
	require.Contains(t, b.shownFor(t, "iris").Data[resource.ShownKey], `"name": "mandatory"`)
}

func TestRulesAreRemovedWhereNoTenantHoldsTheNamespace(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("iris"), team("iris-web"), iris())
	b.reconcile(t, verify.Cluster)
	left := func(namespace string, labels map[string]string) {
		_, err := b.clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: resource.ShownName, Labels: labels}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ours := map[string]string{v1beta1.LabelOwner: v1beta1.OwnerPlatform}
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

func TestAConfigMapThatCannotBeAppliedToIsMadeAgain(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		forged corev1.ConfigMap
		err    error
		kept   bool
	}{
		"immutable":              {corev1.ConfigMap{Immutable: &yes}, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, resource.ShownName, nil), false},
		"with binary data":       {corev1.ConfigMap{BinaryData: map[string][]byte{"x": {1}}}, apierrors.NewForbidden(corev1.Resource("configmaps"), resource.ShownName, nil), false},
		"with another key":       {corev1.ConfigMap{Data: map[string]string{"x": ""}}, apierrors.NewForbidden(corev1.Resource("configmaps"), resource.ShownName, nil), false},
		"refused as it is":       {corev1.ConfigMap{}, apierrors.NewForbidden(corev1.Resource("configmaps"), resource.ShownName, nil), true},
		"immutable, but no time": {corev1.ConfigMap{Immutable: &yes}, apierrors.NewTimeoutError("", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			alone := iris()
			alone.Spec.Namespaces = nil
			var b *bench
			there := func(ctx context.Context) bool {
				_, err := b.clients.CoreV1().ConfigMaps("iris").Get(ctx, resource.ShownName, metav1.GetOptions{})
				return err == nil
			}
			b = newBench(t, interceptor.Funcs{Apply: func(ctx context.Context, client client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if there(ctx) {
					return c.err
				}
				return client.Apply(ctx, applied, options...)
			}}, team("iris"), alone)
			b.reconcile(t, verify.Cluster)
			c.forged.Namespace, c.forged.Name, c.forged.UID = "iris", resource.ShownName, "forged"
			_, err := b.clients.CoreV1().ConfigMaps("iris").Create(t.Context(), &c.forged, metav1.CreateOptions{})
			require.NoError(t, err)
			w := newRuleWriter(b)
			require.NoError(t, w.round(t.Context(), b.set.Snapshot(), true))
			require.Equal(t, c.kept, there(t.Context()))
			require.Equal(t, c.kept, w.failed)
			require.Equal(t, c.kept, b.shownFor(t, "iris") == nil)
		})
	}
}

// A change in the middle of a round is in the rest of it, and then in the next one: the
// round's waits for its turn to write are no reason for a longer pause.
func TestAMandatoryPolicyIsShownEverywhereAtThePaceOfWrites(t *testing.T) {
	const many = 120
	objects, tenant := []client.Object{team("iris")}, iris()
	tenant.Spec.Namespaces = nil
	for i := range many {
		name := fmt.Sprintf("iris-%03d", i)
		objects, tenant.Spec.Namespaces = append(objects, team(name)), append(tenant.Spec.Namespaces, name)
	}
	b := newBench(t, interceptor.Funcs{}, append(objects, tenant)...)
	b.reconcile(t, verify.Cluster)
	before := b.set.Snapshot()
	mandatory := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mandatory"}}
	mandatory.Spec.Scope = v1beta1.PolicyScopeMandatory
	require.NoError(t, b.api.Create(t.Context(), mandatory))
	b.reconcile(t, verify.Cluster)
	after := b.set.Snapshot()
	b.set.Swap(before)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.showRules(ctx) }()
		time.Sleep(many / shownPerSecond / 2 * time.Second)
		b.set.Swap(after)
		time.Sleep(many/shownPerSecond*time.Second + 2*shownPause)
		var without []string
		for _, namespace := range tenant.Spec.Namespaces {
			if shown := b.shownFor(t, namespace); shown == nil || !strings.Contains(shown.Data[resource.ShownKey], `"mandatory"`) {
				without = append(without, namespace)
			}
		}
		stop()
		require.NoError(t, <-ended)
		require.Empty(t, without)
	})
}
