package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func TestWhoeverEditsInALoopTakesATenthOfTheCompiler(t *testing.T) {
	var p pace
	now := time.Unix(0, 0)
	require.Zero(t, p.wait("team-a", now), "the first change is compiled at once")
	p.compiled("team-a", now, now.Add(200*time.Millisecond))
	now = now.Add(200 * time.Millisecond)
	require.Equal(t, 1800*time.Millisecond, p.wait("team-a", now))
	require.Zero(t, p.wait("team-b", now))
	p.compiled("team-b", now, now)
	require.Equal(t, minPause, p.wait("team-b", now))
	p.compiled(verify.Cluster, now, now.Add(time.Second))
	require.Zero(t, p.wait(verify.Cluster, now))
	for i := range maxPaced + 10 {
		p.compiled(verify.Namespace(fmt.Sprint("n", i)), now, now)
		now = now.Add(time.Second)
	}
	require.LessOrEqual(t, len(p.next), maxPaced)
}

func TestALoopOfEditsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, interceptor.Funcs{}, team("team-a"), team("team-b"))
		b.reconcile(t, verify.Cluster)
		b.reconcile(t, "team-a")
		for range 100 {
			before := b.set.Snapshot()
			result, err := b.Reconcile(t.Context(), "team-a")
			require.NoError(t, err)
			require.Positive(t, result.RequeueAfter)
			require.Same(t, before, b.set.Snapshot(), "nothing is compiled")
		}
		require.NoError(t, b.api.Create(t.Context(), lax("team-b", "p")))
		result, err := b.Reconcile(t.Context(), "team-b")
		require.NoError(t, err)
		require.Zero(t, result)
		require.Equal(t, verify.DefaultAllow, b.set.Snapshot().For("team-b").Tiers[0].Judge.Default())
		time.Sleep(time.Second)
		result, err = b.Reconcile(t.Context(), "team-a")
		require.NoError(t, err)
		require.Zero(t, result, "its own last edit is compiled")
	})
}

func TestNamingNewSecretsDoesNotPostponeAChangeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, interceptor.Funcs{}, team("team-a"), keyStore("team-a", "secret-0"))
		clients, ok := b.clients.(*fake.Clientset)
		require.True(t, ok)
		clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is slow")
		})
		time.Sleep(firstReadAtStart)
		b.reconcile(t, verify.Cluster)
		before := b.set.Snapshot()
		began := time.Now()
		for i := 1; b.set.Snapshot() == before; i++ {
			require.Less(t, time.Since(began), time.Minute, "it is never compiled")
			moved := keyStore("team-a", "secret-0")
			require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
			moved.Spec.Source.SecretKeyRef.Name = fmt.Sprint("secret-", i)
			require.NoError(t, b.api.Update(t.Context(), moved))
			_, err := b.Reconcile(t.Context(), "team-a")
			require.NoError(t, err)
			time.Sleep(firstRead / 2)
		}
		require.LessOrEqual(t, time.Since(began), maxPostponed+firstRead)
	})
}

func TestAWaitForReferencesEndsAndBeginsAgainWithTheNextChange(t *testing.T) {
	var p pace
	now := time.Unix(0, 0)
	require.Equal(t, time.Second, p.postpone("team-a", time.Second, now))
	require.Zero(t, p.postpone("team-a", 0, now), "all is known")
	require.Equal(t, time.Second, p.postpone("team-a", firstRead, now.Add(maxPostponed-time.Second)))
	require.Zero(t, p.postpone("team-a", firstRead, now.Add(maxPostponed)))
	p.compiled("team-a", now, now.Add(maxPostponed))
	require.Equal(t, firstRead, p.postpone("team-a", firstRead, now.Add(maxPostponed)), "the next change may wait again")
}

// statusesOf counts the writes of statuses by namespace, and refuses some.
func statusesOf(writes map[string]*atomic.Int64, refuse func(metav1.Object) error) interceptor.Funcs {
	return interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, sub string, applied runtime.ApplyConfiguration,
		options ...client.SubResourceApplyOption) error {
		object, ok := applied.(metav1.Object)
		if !ok {
			return fmt.Errorf("%T has no metadata", applied)
		}
		writes[object.GetNamespace()].Add(1)
		if err := refuse(object); err != nil {
			return err
		}
		return c.SubResource(sub).Apply(ctx, applied, options...)
	}}
}

func TestAStatusThatIsRefusedIsNotTriedAgainAndDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 140
		writes := map[string]*atomic.Int64{"team-a": {}, "team-b": {}, "": {}}
		objects := []client.Object{team("team-a"), team("team-b"), lax("team-b", "p")}
		for i := range many {
			objects = append(objects, lax("team-a", fmt.Sprintf("p-%03d", i)))
		}
		b := newBench(t, statusesOf(writes, func(object metav1.Object) error {
			if object.GetNamespace() == "team-a" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "VerificationPolicy"}, object.GetName(), nil)
			}
			return nil
		}), objects...)
		b.reconcile(t, verify.Cluster)
		ctx, lose := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.writeStatuses(ctx) }()
		for range 50 { // a minute of edits elsewhere in the namespace
			synctest.Wait()
			b.outdated.mark("team-a", "team-b")
			time.Sleep(time.Second)
		}
		require.EqualValues(t, many, writes["team-a"].Load(), "each is tried once")
		require.EqualValues(t, 1, writes["team-b"].Load())
		read := lax("team-b", "p")
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(read), read))
		require.True(t, meta.IsStatusConditionTrue(read.Status.Conditions, v1beta1.ConditionReady))
		lose()
		require.NoError(t, <-ended)
	})
}

// Its objects may change all the time while it waits for a Secret.
func TestValidatingIsChargedThoughNothingIsCompiled(t *testing.T) {
	var p pace
	now := time.Now()
	p.validated("team-a", time.Second, now)
	require.Equal(t, pausePerCompile*time.Second, p.wait("team-a", now))
	require.Zero(t, p.wait("team-b", now))
	p.validated(verify.Cluster, time.Second, now)
	require.Zero(t, p.wait(verify.Cluster, now))
}

func TestStatusesOfOneNamespaceAreWrittenInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []client.Object{team("team-a")}
		for i := range 2*statusesAtOnce + 1 {
			objects = append(objects, lax("team-a", fmt.Sprintf("p-%03d", i)))
		}
		b := newBench(t, interceptor.Funcs{}, objects...)
		b.reconcile(t, verify.Cluster)
		w := newStatusWriter(b.Controller)
		require.Equal(t, 3, b.writeAll(t, w, "team-a"))
		require.Len(t, b.events.Events, eventBurst, "its events are bounded")
		require.Equal(t, 1, b.writeAll(t, w, "team-a"), "nothing is left")
	})
}

func TestChangesOfNamespacesLookAtTheClusterOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		b := newBench(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1beta1.ClusterVerificationPolicyList); ok {
				looks.Add(1)
			}
			return c.List(ctx, list, options...)
		}}, team("team-a"), &v1beta1.ClusterVerificationPolicy{})
		b.reconcile(t, verify.Cluster)
		ctx, lose := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.writeStatuses(ctx) }()
		synctest.Wait()
		before := looks.Load()
		for range 1000 {
			b.outdated.markCluster()
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(clusterPause)
		synctest.Wait()
		require.LessOrEqual(t, looks.Load()-before, int64(11))
		require.Positive(t, looks.Load()-before)
		lose()
		require.NoError(t, <-ended)
	})
}
