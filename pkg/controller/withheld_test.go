package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// large is a policy of some 50 KiB that allows everything.
func large(namespace string, number int) *v1alpha1.VerificationPolicy {
	p := lax(namespace, fmt.Sprintf("large-%03d", number))
	p.UID = types.UID(p.Name)
	for i := range 100 {
		p.Spec.Rules = append(p.Spec.Rules, v1alpha1.PolicyRule{Images: []string{fmt.Sprintf("r.example.com/%s/%d", strings.Repeat("x", 480), i)}, Action: v1alpha1.RuleActionAllow})
	}
	return p
}

// keeping is what intercepts a fake API server for a bench: policies that it lists are
// reduced as those of a cache are that never hears of deletions. reads counts those that are
// read one by one.
func keeping(reads *int) interceptor.Funcs {
	var ledger resource.Ledger
	return interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if policies, ok := list.(*v1alpha1.VerificationPolicyList); ok && err == nil {
				for i := range policies.Items {
					if err := ledger.Keep(&policies.Items[i]); err != nil {
						return err
					}
				}
			}
			return err
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*v1alpha1.VerificationPolicy); ok {
				*reads++
			}
			return api.Get(ctx, key, object, options...)
		},
	}
}

func TestANamespacePastWhatIsKeptDeniesAndComesBackOnceItFits(t *testing.T) {
	everywhere := lax("", "everywhere")
	objects := []client.Object{team("hoard"), team("quiet"), &v1alpha1.ClusterVerificationPolicy{ObjectMeta: everywhere.ObjectMeta, Spec: everywhere.Qualified()}}
	const many = 120
	for i := range many {
		objects = append(objects, large("hoard", i))
	}
	reads := 0
	b := newBench(t, keeping(&reads), objects...)
	broken := func(namespace verify.Namespace) string { return b.set.Snapshot().For(namespace).Layers[0].Broken }
	b.reconcile(t, verify.Cluster)
	require.Contains(t, broken("hoard"), "the limit is 4096 KiB (VerificationPolicy ")
	require.Contains(t, broken("hoard"), "delete some")
	require.Empty(t, broken("quiet"))
	require.Zero(t, reads, "nothing is read again while there is no room for it")
	for source, report := range b.set.Snapshot().Reports("hoard") {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
	}
	var kept v1alpha1.VerificationPolicyList
	require.NoError(t, b.reader.List(t.Context(), &kept, client.InNamespace("hoard")))
	require.Error(t, resource.Missing(&kept.Items[many-1]), "it came when there was no room")

	for i := range many - 2 {
		require.NoError(t, b.api.Delete(t.Context(), large("hoard", i)))
	}
	b.reconcile(t, "hoard")
	require.Empty(t, broken("hoard"))
	require.Equal(t, 2, reads)
	for source, report := range b.set.Snapshot().Reports("hoard") {
		require.Equal(t, policy.ReasonValid, report.Ready.Reason, source)
	}
}
