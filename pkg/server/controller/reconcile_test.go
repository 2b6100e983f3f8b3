package controller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// closed is a registry that no test here asks anything.
type closed struct{ verify.Registry }

// bench is a controller over a fake API server.
type bench struct {
	*Controller
	api    client.WithWatch
	events *events.FakeRecorder
	gone   []verify.Namespace
}

func newBench(t *testing.T, intercept interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme, err := newScheme()
	require.NoError(t, err)
	builder := fakeclient.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(intercept).WithObjects(objects...)
	for _, kind := range v1beta1.Kinds() {
		builder = builder.WithStatusSubresource(kind.New())
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	var secrets []runtime.Object
	for _, object := range objects {
		if secret, ok := object.(*corev1.Secret); ok {
			secrets = append(secrets, secret)
		}
	}
	b := &bench{api: builder.Build(), events: events.NewFakeRecorder(100)}
	b.Controller = &Controller{set: &service.Set{}, schemas: newValidated(schema.Embedded()), log: log, clients: fake.NewClientset(secrets...),
		started: time.Now(),
		reader:  objectReader{Reader: b.api}, writer: b.api, api: b.api, events: b.events, synced: func(context.Context) bool { return true },
		outside: resolve.Outside{Registry: func(registry.Access) verify.Registry { return closed{} },
			Revocation: func(verify.Namespace) http.RoundTripper { return nil }},
		options: Options{Forget: func(namespace verify.Namespace) { b.gone = append(b.gone, namespace) }}}
	b.secrets = newSecretWatches(b.clients, b.enqueue)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); b.secrets.set.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return b
}

// reconcile calls Reconcile until it has nothing to wait for.
func (b *bench) reconcile(t *testing.T, level verify.Namespace) {
	t.Helper()
	require.Eventually(t, func() bool {
		result, err := b.Reconcile(t.Context(), level)
		require.NoError(t, err)
		return result.RequeueAfter == 0
	}, 6*settled, time.Millisecond)
}

// writeAll writes the statuses of a namespace, in as many turns as it takes.
func (b *bench) writeAll(t *testing.T, w *statusWriter, namespace verify.Namespace) (turns int) {
	t.Helper()
	for more := true; more; turns++ {
		var err error
		more, err = w.write(t.Context(), namespace)
		require.NoError(t, err)
	}
	return turns
}

func team(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
}

func lax(namespace, name string) *v1beta1.VerificationPolicy {
	p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 3}}
	p.Spec.DefaultAction = v1beta1.DefaultActionAllow
	return p
}

func keyStore(namespace, secret string) *v1beta1.TrustStore {
	s := &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys", Generation: 1}}
	s.Spec.Type = v1beta1.TrustStoreTypePublicKeys
	s.Spec.Source.SecretKeyRef = &v1beta1.KeyReference{Name: secret, Key: "key"}
	return s
}

func TestTheFirstReconcileCompilesEverything(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), lax("team-a", "p"), lax("not-there-yet", "p"))
	result, err := b.Reconcile(t.Context(), "team-a")
	require.NoError(t, err)
	require.Zero(t, result)
	require.Nil(t, b.set.Snapshot(), "one namespace alone is not put in force")
	b.reconcile(t, verify.Cluster)
	require.True(t, b.set.Snapshot().Has("team-a"))
	require.False(t, b.set.Snapshot().Has("not-there-yet"), "a resource waits for its namespace")
	require.Equal(t, verify.DefaultAllow, b.set.Snapshot().For("team-a").Tiers[0].Judge.Default())
}

func TestAChangeOfANamespaceIsPutInForceAndItsEndIsToldToOthers(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), team("team-b"))
	b.reconcile(t, verify.Cluster)
	other := b.set.Snapshot().For("team-b")
	require.NoError(t, b.api.Create(t.Context(), lax("team-a", "p")))
	b.reconcile(t, "team-a")
	require.Equal(t, verify.DefaultAllow, b.set.Snapshot().For("team-a").Tiers[0].Judge.Default())
	require.Same(t, other, b.set.Snapshot().For("team-b"))
	require.Empty(t, b.gone)
	require.NoError(t, b.api.Delete(t.Context(), team("team-a")))
	b.reconcile(t, "team-a")
	require.False(t, b.set.Snapshot().Has("team-a"))
	require.Equal(t, []verify.Namespace{"team-a"}, b.gone)
}

func TestAChangeOfTheClusterLeavesNamespacesWithPoliciesOfTheirOwn(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), team("team-b"), lax("team-a", "p"))
	b.reconcile(t, verify.Cluster)
	a := b.set.Snapshot().For("team-a")
	shared := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	require.NoError(t, b.api.Create(t.Context(), shared))
	b.reconcile(t, verify.Cluster)
	require.Same(t, a, b.set.Snapshot().For("team-a"))
	require.Equal(t, "shared", b.set.Snapshot().For("team-b").Tiers[0].Source.Name)
}

func TestWhatCannotBeListedLeavesWhatIsInForce(t *testing.T) {
	var failing string
	down := errors.New("the API server is down")
	b := newBench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*corev1.NamespaceList); ok && failing == "namespaces" {
				return down
			}
			if _, ok := list.(*v1beta1.VerificationPolicyList); ok && failing == "policies" {
				return down
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if failing == "namespace" {
				return down
			}
			return c.Get(ctx, key, object, options...)
		},
	}, team("team-a"), lax("team-a", "p"))
	for _, failing = range []string{"namespaces", "policies"} {
		_, err := b.Reconcile(t.Context(), verify.Cluster)
		require.ErrorIs(t, err, down)
		require.Nil(t, b.set.Snapshot())
	}
	failing = ""
	b.reconcile(t, verify.Cluster)
	before := b.set.Snapshot()
	for _, failing = range []string{"policies", "namespace"} {
		_, err := b.Reconcile(t.Context(), "team-a")
		require.ErrorIs(t, err, down)
		require.Same(t, before, b.set.Snapshot())
	}
}

func TestSecretsThatResourcesNameAreReadBeforeAnythingIsInForce(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), secret("team-a", "pub", "1"), keyStore("team-a", "pub"))
	result, err := b.Reconcile(t.Context(), verify.Cluster)
	require.NoError(t, err)
	if b.set.Snapshot() == nil {
		require.Positive(t, result.RequeueAfter)
	}
	b.reconcile(t, verify.Cluster)
	reports := conditions.Reports(b.set.Snapshot(), "team-a")
	require.Equal(t, policy.ReasonInvalid, reports[policy.ObjectRef{Kind: "TrustStore", Namespace: "team-a", Name: "keys"}].Ready.Reason,
		"the Secret was read, and holds no key")
	moved := keyStore("team-a", "elsewhere")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(moved), moved))
	moved.Spec.Source.SecretKeyRef.Name = "elsewhere"
	require.NoError(t, b.api.Update(t.Context(), moved))
	b.reconcile(t, "team-a")
	require.Equal(t, policy.ReasonNotFound,
		conditions.Reports(b.set.Snapshot(), "team-a")[policy.ObjectRef{Kind: "TrustStore", Namespace: "team-a", Name: "keys"}].Ready.Reason)
}

func TestExternalMaterialIsWantedAndKnown(t *testing.T) {
	kms := &v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "kms"}}
	kms.Spec.Type = v1beta1.TrustStoreTypePublicKeys
	kms.Spec.Source.KMS = &v1beta1.KMSSource{URI: "awskms:///alias/release"}
	b := newBench(t, interceptor.Funcs{}, team("team-a"), kms)
	fetcher := external.New(external.Options{UnsafePod: true, Fetch: map[external.Kind]external.Fetch{
		external.KMS: func(context.Context, external.Source) (external.Content, error) {
			return external.Content{Bytes: []byte("no key")}, nil
		},
	}}, time.Now)
	b.options.External = fetcher
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fetcher.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	ref := policy.ObjectRef{Kind: "ClusterTrustStore", Name: "kms"}
	for range 2 { // at the start, and by a change
		b.reconcile(t, verify.Cluster)
		require.Equal(t, policy.ReasonInvalid, conditions.Reports(b.set.Snapshot(), verify.Cluster)[ref].Ready.Reason, "it was fetched, and is no key")
	}
}

func TestStatusesSayWhatTheSnapshotSays(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), lax("team-a", "p"), keyStore("team-a", "gone"))
	b.reconcile(t, verify.Cluster)
	b.writeAll(t, newStatusWriter(b.Controller), "team-a")
	read := lax("team-a", "p")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(read), read))
	require.EqualValues(t, 3, read.Status.ObservedGeneration)
	require.True(t, meta.IsStatusConditionTrue(read.Status.Conditions, v1beta1.ConditionReady))
	require.True(t, meta.IsStatusConditionTrue(read.Status.Conditions, v1beta1.ConditionEffective))
	broken := keyStore("team-a", "gone")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(broken), broken))
	ready := meta.FindStatusCondition(broken.Status.Conditions, v1beta1.ConditionReady)
	require.Equal(t, metav1.ConditionFalse, ready.Status)
	require.Equal(t, "NotFound", ready.Reason)
	require.Len(t, b.events.Events, 2)

	version := read.ResourceVersion
	b.writeAll(t, newStatusWriter(b.Controller), "team-a")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(read), read))
	require.Equal(t, version, read.ResourceVersion, "what a status says already is not written again")
	require.Len(t, b.events.Events, 2)
	require.Equal(t, 1, b.writeAll(t, newStatusWriter(b.Controller), "team-z"), "nothing exists there")
}

func TestAResourceThatChangedSinceKeepsItsStatusUntilItIsCompiled(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), lax("team-a", "p"))
	b.reconcile(t, verify.Cluster)
	newer := lax("team-a", "p")
	newer.Generation = 4
	tried, err := newStatusWriter(b.Controller).apply(t.Context(), newer, b.set.Snapshot(), conditions.Reports(b.set.Snapshot(), "team-a"))
	require.NoError(t, err)
	require.False(t, tried)
	require.Empty(t, newer.Status.Conditions)
}

func TestStatusesThatCannotBeWrittenAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		b := newBench(t, interceptor.Funcs{
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, applied runtime.ApplyConfiguration,
				options ...client.SubResourceApplyOption) error {
				if failures--; failures >= 0 {
					return errors.New("conflict")
				}
				return c.SubResource(sub).Apply(ctx, applied, options...)
			},
		}, team("team-a"), lax("team-a", "p"))
		b.reconcile(t, verify.Cluster)
		ctx, lose := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.writeStatuses(ctx) }()
		time.Sleep(10 * retryPause)
		synctest.Wait()
		read := lax("team-a", "p")
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(read), read))
		require.True(t, meta.IsStatusConditionTrue(read.Status.Conditions, v1beta1.ConditionReady))
		require.Negative(t, failures)
		lose()
		require.NoError(t, <-ended)
	})
}

func TestEventsOfObjectsEnqueueTheirLevel(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[verify.Namespace]())
	defer queue.ShutDown()
	h, ctx := byNamespace(), t.Context()
	h.Create(ctx, event.CreateEvent{Object: lax("team-a", "p")}, queue)
	h.Update(ctx, event.UpdateEvent{ObjectOld: team("team-b"), ObjectNew: team("team-b")}, queue)
	h.Delete(ctx, event.DeleteEvent{Object: &v1beta1.ClusterStore{}}, queue)
	h.Generic(ctx, event.GenericEvent{Object: lax("team-c", "p")}, queue)
	for _, want := range []verify.Namespace{"team-a", "team-b", verify.Cluster, "team-c"} {
		got, _ := queue.Get()
		require.Equal(t, want, got)
	}
	again := team("team-a")
	again.UID = "another"
	ending := team("team-a")
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	labelled := team("team-a")
	labelled.Labels = map[string]string{v1beta1.LabelTenant: "iris"}
	predicate := namespaceChanged()
	require.True(t, predicate.Update(event.UpdateEvent{ObjectOld: team("team-a"), ObjectNew: labelled}),
		"of two Tenants that claim it, the label says which one has it")
	require.True(t, predicate.Update(event.UpdateEvent{ObjectOld: team("team-a"), ObjectNew: ending}), "a home namespace that is ending is compiled at once")
	require.False(t, predicate.Update(event.UpdateEvent{ObjectOld: ending, ObjectNew: ending}))
	require.False(t, predicate.Update(event.UpdateEvent{ObjectOld: team("team-a"), ObjectNew: team("team-a")}))
	require.True(t, predicate.Update(event.UpdateEvent{ObjectOld: team("team-a"), ObjectNew: again}))
}

func TestSecretsThatChangeEnqueueTheNamespaceThatNamesThem(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[verify.Namespace]())
	defer queue.ShutDown()
	c := &Controller{}
	c.enqueue("too-early") // there is no queue yet
	require.NoError(t, c.onStart(t.Context(), queue))
	c.enqueue("team-a")
	for _, want := range []verify.Namespace{verify.Cluster, "team-a"} {
		got, _ := queue.Get()
		require.Equal(t, want, got)
	}
}

func TestOnlyTheReplicaThatHoldsTheLeaseDoesItsDuties(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"))
	b.reconcile(t, verify.Cluster)
	started := make(chan struct{})
	var last atomic.Value // who holds the lease when the duty ends
	b.options = Options{OwnNamespace: "landwaiter-system", LeaderElection: true, Duties: []Duty{{Name: "wait", Run: func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); { // it takes its time to end
			lease, err := b.clients.CoordinationV1().Leases("landwaiter-system").Get(context.Background(), leaseName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			last.Store(holder(lease))
		}
		return nil
	}}}}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.runDuties(ctx) }()
	<-started
	lease, err := b.clients.CoordinationV1().Leases("landwaiter-system").Get(ctx, leaseName, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, holder(lease))
	end()
	require.NoError(t, <-ended)
	lease, err = b.clients.CoordinationV1().Leases("landwaiter-system").Get(context.Background(), leaseName, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, holder(lease), "the lease is given back, so that another replica need not wait")
	require.NotEmpty(t, last.Load(), "and not before the duties have ended")
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestAReplicaWithoutElectionDoesItsDutiesAtOnceAndNoneBeforeItHasRead(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"))
	b.reconcile(t, verify.Cluster)
	ran := make(chan struct{}, 1)
	b.options.Duties = []Duty{{Name: "run", Run: func(ctx context.Context) error { ran <- struct{}{}; <-ctx.Done(); return nil }}}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.runDuties(ctx) }()
	<-ran
	end()
	require.NoError(t, <-ended)
	b.synced = func(context.Context) bool { return false }
	require.NoError(t, b.runDuties(t.Context()))
	require.Empty(t, ran)
}

func TestAControllerIsAssembledWithoutAnAPIServerAndEndsWithItsContext(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, &service.Set{}, resolve.Outside{}, schema.Embedded(), log,
		Options{External: external.New(external.Options{}, time.Now)})
	require.NoError(t, err)
	require.Equal(t, "landwaiter-reference-reader", c.options.ReferenceReaderRole)
	ctx, end := context.WithCancel(t.Context())
	end()
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(settled):
		t.Fatal("Run does not end with its context")
	}
	require.Nil(t, c.set.Snapshot())
}

func TestLongMessagesAreCutForEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	recordEvent(recorder, lax("team-a", "p"), metav1.Condition{Status: metav1.ConditionFalse, Reason: "Invalid", Message: strings.Repeat("ä", maxMessage)})
	require.LessOrEqual(t, len(<-recorder.Events), maxMessage+len("Warning Invalid "))
}
