package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
// reduced as those of a cache are that has some Tenants and never hears of deletions. Those that are
// read one by one are counted in reads, and fail while down.
type keeping struct {
	reads int
	down  bool
}

func (k *keeping) funcs(tenants ...*v1beta1.Tenant) interceptor.Funcs {
	var room resource.Room
	room.Hold(resource.NewTenants(tenants))
	return interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				if object, ok := item.(v1beta1.Object); ok {
					return room.Keep(object)
				}
				return nil
			})
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(v1beta1.Object); ok {
				k.reads++
				if k.down {
					return errors.New("the API server is down")
				}
			}
			return api.Get(ctx, key, object, options...)
		},
	}
}

// later is a queue that notes what is to be compiled again later.
type later struct {
	namespaces
	noted []verify.Namespace
}

func (l *later) AddAfter(namespace verify.Namespace, _ time.Duration) {
	l.noted = append(l.noted, namespace)
}

// noting lets a bench note what is to be compiled again later.
func noting(b *bench) *later {
	l := &later{}
	var queue namespaces = l
	b.queue.Store(&queue)
	return l
}

func (b *bench) broken(namespace verify.Namespace) string {
	return b.set.Snapshot().For(namespace).Tiers[0].Judge.Why()
}

// unread counts the resources of a namespace whose specs have to be read.
func (b *bench) unread(namespace verify.Namespace) (found int) {
	for _, report := range conditions.Reports(b.set.Snapshot(), namespace) {
		if report.Ready.Reason == policy.ReasonUnreadable {
			found++
		}
	}
	return found
}

func TestANamespacePastWhatIsKeptDeniesAndComesBackOnceItFits(t *testing.T) {
	everywhere := lax("", "everywhere")
	objects := []client.Object{team("hoard"), team("quiet"), &v1beta1.ClusterVerificationPolicy{ObjectMeta: everywhere.ObjectMeta, Spec: everywhere.Spec}}
	const many = 120
	for i := range many {
		objects = append(objects, large("hoard", i))
	}
	var k keeping
	b := newBench(t, k.funcs(), objects...)
	queue := noting(b)
	b.reconcile(t, verify.Cluster)
	require.Contains(t, b.broken("hoard"), "the limit is 4096 KiB: delete some")
	require.Empty(t, b.broken("quiet"))
	b.reconcile(t, "hoard")
	require.Zero(t, k.reads, "nothing is read while there is no room for it")
	for source, report := range conditions.Reports(b.set.Snapshot(), "hoard") {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
	}
	var kept v1beta1.VerificationPolicyList
	require.NoError(t, b.reader.List(t.Context(), &kept, client.InNamespace("hoard")))
	require.Error(t, resource.Missing(&kept.Items[many-1]), "it came when there was no room")

	for i := range many - 2 {
		require.NoError(t, b.api.Delete(t.Context(), large("hoard", i)))
	}
	require.Empty(t, queue.noted)
	k.down = true
	b.reconcile(t, "hoard")
	require.NotEmpty(t, b.broken("hoard"), "what cannot be read denies")
	require.Equal(t, 2, b.unread("hoard"))
	require.Equal(t, []verify.Namespace{"hoard"}, queue.noted, "and is read later")
	k.reads, k.down = 0, false
	b.reconcile(t, "hoard")
	require.Empty(t, b.broken("hoard"))
	require.Equal(t, 2, k.reads)
	require.Len(t, queue.noted, 1)
	for source, report := range conditions.Reports(b.set.Snapshot(), "hoard") {
		require.Equal(t, policy.ReasonValid, report.Ready.Reason, source)
	}
}

func TestNamespacesPastWhatIsKeptOfTheirTenantComeBackOnceTheyFit(t *testing.T) {
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}}
	objects := []client.Object{iris, team("iris"), lax("iris", "p"), team("quiet"), lax("quiet", "p")}
	members := []verify.Namespace{"iris-a", "iris-b", "iris-c", "iris-d"}
	for _, name := range members {
		objects = append(objects, team(string(name)), lax(string(name), "p"))
		for i := range 55 {
			objects = append(objects, dense(string(name), i))
		}
	}
	var k keeping
	b := newBench(t, k.funcs(iris), objects...)
	queue := noting(b)
	b.reconcile(t, verify.Cluster)
	require.Empty(t, b.broken("iris"), "the home namespace has room of its own")
	require.Empty(t, b.broken("quiet"))
	for _, namespace := range members {
		require.Contains(t, b.broken(namespace), "the specs of the resources of Tenant iris take more than 12288 KiB", namespace)
	}
	require.Empty(t, queue.noted)

	require.NoError(t, b.api.DeleteAllOf(t.Context(), &v1beta1.Verifier{}, client.InNamespace("iris-a")))
	b.reconcile(t, "iris-a")
	for _, namespace := range members {
		require.NotContains(t, b.broken(namespace), "12288 KiB", namespace)
	}
	require.Equal(t, []verify.Namespace{"iris-d"}, queue.noted)
	require.NotZero(t, b.unread("iris-d"), "until they are read, they deny")
	require.Zero(t, k.reads)
	b.reconcile(t, "iris-d")
	require.Empty(t, b.broken("iris-d"))
	require.Zero(t, b.unread("iris-d"))
	require.NotZero(t, k.reads)
	require.Len(t, queue.noted, 1)
}
