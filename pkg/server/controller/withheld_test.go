package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// large is a policy of some 50 KiB in memory that allows everything.
func large(namespace string, number int) *v1beta1.VerificationPolicy {
	p := lax(namespace, fmt.Sprintf("large-%03d", number))
	p.UID = types.UID(p.Name)
	for i := range 50 {
		rule := v1beta1.PolicyRule{Action: v1beta1.RuleActionAllow}
		for j := range 2 {
			rule.Images = append(rule.Images, fmt.Sprintf("r.example.com/%s/%d/%d", strings.Repeat("x", 480), i, j))
		}
		p.Spec.Rules = append(p.Spec.Rules, rule)
	}
	return p
}

// dense is a broken Verifier of 63 KiB that weighs little once it is compiled.
func dense(namespace string, number int) *v1beta1.Verifier {
	v := &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("dense-%03d", number), Generation: 1}}
	v.UID = types.UID(v.Name)
	v.Spec.Type, v.Spec.Notation = "None", &v1beta1.NotationVerifier{TrustedIdentities: []string{strings.Repeat("x", 64_000)}}
	return v
}

// keeping is what intercepts a fake API server for a bench: resources that it lists are
// reduced as those of a cache are that has some Tenants and never hears of deletions. reads
// counts those that are read one by one.
func keeping(t *testing.T, reads *int, tenants ...*v1beta1.Tenant) interceptor.Funcs {
	t.Helper()
	var ledger resource.Ledger
	for _, tenant := range tenants {
		require.NoError(t, ledger.Keep(tenant))
	}
	return interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				if object, ok := item.(v1beta1.Object); ok {
					return ledger.Keep(object)
				}
				return nil
			})
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(v1beta1.Object); ok {
				*reads++
			}
			return api.Get(ctx, key, object, options...)
		},
	}
}

func TestANamespacePastWhatIsKeptDeniesAndComesBackOnceItFits(t *testing.T) {
	everywhere := lax("", "everywhere")
	objects := []client.Object{team("hoard"), team("quiet"), &v1beta1.ClusterVerificationPolicy{ObjectMeta: everywhere.ObjectMeta, Spec: everywhere.Spec}}
	const many = 120
	for i := range many {
		objects = append(objects, large("hoard", i))
	}
	reads := 0
	b := newBench(t, keeping(t, &reads), objects...)
	broken := func(namespace verify.Namespace) string { return b.set.Snapshot().For(namespace).Tiers[0].Judge.Why() }
	b.reconcile(t, verify.Cluster)
	require.Contains(t, broken("hoard"), "the limit is 4096 KiB (VerificationPolicy ")
	require.Contains(t, broken("hoard"), "delete some")
	require.Empty(t, broken("quiet"))
	require.Zero(t, reads, "nothing is read again while there is no room for it")
	for source, report := range conditions.Reports(b.set.Snapshot(), "hoard") {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
	}
	var kept v1beta1.VerificationPolicyList
	require.NoError(t, b.reader.List(t.Context(), &kept, client.InNamespace("hoard")))
	require.Error(t, resource.Missing(&kept.Items[many-1]), "it came when there was no room")

	for i := range many - 2 {
		require.NoError(t, b.api.Delete(t.Context(), large("hoard", i)))
	}
	b.reconcile(t, "hoard")
	require.Empty(t, broken("hoard"))
	require.Equal(t, 2, reads)
	for source, report := range conditions.Reports(b.set.Snapshot(), "hoard") {
		require.Equal(t, policy.ReasonValid, report.Ready.Reason, source)
	}
}

func TestNamespacesPastWhatIsKeptOfTheirTenantComeBackOnceTheyFit(t *testing.T) {
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}}
	objects := []client.Object{iris, team("iris"), team("iris-z"), large("iris-z", 0), large("iris-z", 1), team("quiet"), lax("quiet", "p")}
	for _, name := range []string{"iris-a", "iris-b", "iris-c", "iris-d", "iris-e"} {
		objects = append(objects, team(name), lax(name, "p"))
		for i := range 55 {
			objects = append(objects, dense(name, i))
		}
	}
	reads := 0
	b := newBench(t, keeping(t, &reads, iris), objects...)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[verify.Namespace]())
	t.Cleanup(queue.ShutDown)
	b.queue.Store(&queue)
	broken := func(namespace verify.Namespace) string { return b.set.Snapshot().For(namespace).Tiers[0].Judge.Why() }
	unread := func(namespace verify.Namespace) (found int) {
		for _, report := range conditions.Reports(b.set.Snapshot(), namespace) {
			if report.Ready.Reason == policy.ReasonUnreadable {
				found++
			}
		}
		return found
	}
	b.reconcile(t, verify.Cluster)
	for _, namespace := range []verify.Namespace{"iris-a", "iris-d", "iris-z", "quiet"} {
		require.Empty(t, broken(namespace), namespace)
		require.Zero(t, unread(namespace), "%s: what came late was read again", namespace)
	}
	require.Contains(t, broken("iris-e"), "the specs of the resources of Tenant iris take more than 16384 KiB")
	require.Equal(t, 2, reads, "of iris-z, and none of iris-e")

	require.NoError(t, b.api.DeleteAllOf(t.Context(), &v1beta1.Verifier{}, client.InNamespace("iris-a")))
	for queue.Len() > 0 {
		item, _ := queue.Get()
		queue.Done(item)
	}
	b.reconcile(t, "iris-a")
	require.NotContains(t, broken("iris-e"), "16384 KiB")
	require.NotZero(t, unread("iris-e"), "until they are read, they deny")
	require.Equal(t, 1, queue.Len())
	next, _ := queue.Get()
	require.Equal(t, verify.Namespace("iris-e"), next)
	b.reconcile(t, next)
	require.Empty(t, broken("iris-e"))
	require.Zero(t, unread("iris-e"))
	require.Greater(t, reads, 2)
	queue.Done(next)

	for i := range 55 {
		require.NoError(t, b.api.Create(t.Context(), dense("iris-a", i)))
	}
	b.reconcile(t, "iris-a")
	require.Contains(t, broken("iris-e"), "16384 KiB")
	require.NotEmpty(t, b.withheld.set.Keys())
	for queue.Len() > 0 {
		item, _ := queue.Get()
		b.reconcile(t, item)
		queue.Done(item)
	}
	for _, key := range b.withheld.set.Keys() {
		require.NotEqual(t, "iris-e", key.source.Namespace, "what is denied again is not kept")
	}
}
