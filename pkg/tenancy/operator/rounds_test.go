package operator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// writeTakes is how long a write takes in these tests.
const writeTakes = 5 * time.Millisecond

// operated is a Tenant with some namespaces that an operator keeps.
type operated struct {
	*reconciler
	applied []string // as "Kind namespace/name"
	busy    time.Duration
	// said is the condition that was written last.
	said      metav1.Condition
	uncounted bool // the quota controller has not come yet
}

func newOperated(t *testing.T, namespaces ...string) *operated {
	t.Helper()
	o := &operated{}
	tenant := team("green", namespaces...)
	tenant.Finalizers = []string{Finalizer}
	tenant.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "admins"}}
	objects := []client.Object{tenant, namespaceOf("green", "green")}
	for _, name := range namespaces {
		objects = append(objects, namespaceOf("green", name))
	}
	funcs := applying(t, nil, &o.applied)
	funcs.SubResourceApply = func(_ context.Context, _ client.Client, _ string, configuration runtime.ApplyConfiguration,
		_ ...client.SubResourceApplyOption) error {
		conditionOf(t, configuration, o)
		return nil
	}
	apply := funcs.Apply
	funcs.Apply = func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		time.Sleep(writeTakes)
		if o.uncounted {
			answerQuota(t, configuration)
		} else {
			answerQuota(t, configuration, limits()...)
		}
		return apply(ctx, c, configuration, options...)
	}
	c := fakeClient(t, funcs, objects...)
	log, _ := test.NewNullLogger()
	o.reconciler = &reconciler{engine: New(c, Options{}), client: c, reader: c, log: log}
	return o
}

// reconciled answers a request as the queue of the operator does, until only a comparison without
// a reason is left to do.
func (o *operated) reconciled(t *testing.T, requests ...reconcile.Request) {
	t.Helper()
	for _, request := range requests {
		for o.step(t, request) < maxRetryPause {
			time.Sleep(time.Second)
		}
	}
}

// step answers a request once.
func (o *operated) step(t *testing.T, request reconcile.Request) time.Duration {
	t.Helper()
	began := time.Now()
	result, err := o.Reconcile(t.Context(), request)
	require.NoError(t, err)
	o.busy += time.Since(began)
	return result.RequeueAfter
}

// places returns the namespaces in which something was applied since it was last asked.
func (o *operated) places() []string {
	var places []string
	for _, ref := range o.applied {
		kind, name, _ := strings.Cut(ref, " ")
		place, _, inside := strings.Cut(name, "/")
		if (inside || kind == kindNamespace) && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	o.applied = nil
	slices.Sort(places)
	return places
}

func bindingIn(namespace string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "green-admins", Labels: labelsOf("green")}}
	object.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kindRoleBinding))
	return object
}

func TestAChangeInANamespaceIsPutRightThereAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperated(t, "api", "web")
		o.reconciled(t, request("green"))
		require.Equal(t, []string{"api", "green", "web"}, o.places())
		o.reconciled(t, o.ofObject(t.Context(), bindingIn("web"))...)
		require.Equal(t, []string{"web"}, o.places())
	})
}

func TestAFloodOfChangesTakesAPartOfOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []string
		for _, name := range "abcdefghijklmnopqrstuvwxyz" {
			many = append(many, string(name))
		}
		o := newOperated(t, many...)
		o.reconciled(t, request("green"))
		o.applied, o.busy = nil, 0
		began := time.Now()
		for time.Since(began) < time.Minute {
			for _, request := range o.ofObject(t.Context(), bindingIn("a")) {
				o.step(t, request)
			}
			for _, request := range o.ask(o.ofNamespace(t.Context(), namespaceOf("green", "b")), "") {
				o.step(t, request)
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, o.busy, time.Minute/4, "other Tenants find the worker free")
		require.NotEmpty(t, o.places())
	})
}

func TestARoundIsOfWhatChangedUnlessSomethingElseIsDue(t *testing.T) {
	at := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return at.Add(d) }
	var r rounds
	everything := func(about string, now time.Time) {
		t.Helper()
		only, wait := r.take("green", now)
		require.Zero(t, wait, about)
		require.Empty(t, only, about)
	}
	everything("at the start", at)
	require.Equal(t, resync, r.done("green", true, resync, at, after(time.Second)))
	r.add("green", "web")
	_, wait := r.take("green", after(2*time.Second))
	require.Equal(t, 3*time.Second, wait, "four times what the last one took")
	r.add("green", "api")
	r.add("green", "web")
	only, wait := r.take("green", after(5*time.Second))
	require.Zero(t, wait)
	require.Equal(t, []string{"web", "api"}, only)
	require.Equal(t, resync-4*time.Second, r.donePartly("green", true, after(5*time.Second), after(5*time.Second)), "the comparison is not put off")

	r.add("green", "web")
	r.hurry("green")
	everything("the Tenant was changed", after(5*time.Second))
	r.add("green", "web") // meanwhile
	require.Equal(t, maxRetryPause, r.done("green", false, maxRetryPause, after(5*time.Second), after(5*time.Second)))
	_, wait = r.take("green", after(5*time.Second))
	require.Equal(t, minPause, wait)
	everything("the last one had problems", after(6*time.Second))
	r.done("green", true, resync, after(6*time.Second), after(6*time.Second))

	r.add("green", "web")
	only, _ = r.take("green", after(8*time.Second))
	require.Equal(t, []string{"web"}, only)
	require.Equal(t, minPause, r.donePartly("green", false, after(8*time.Second), after(8*time.Second)))
	everything("a part had problems", after(9*time.Second))
	r.failed("green", after(9*time.Second))
	r.add("green", "web")
	everything("the last one failed", after(10*time.Second))
	r.done("green", true, resync, after(10*time.Second), after(10*time.Second))

	r.add("green", "web")
	r.add("green", "")
	everything("a namespace appeared", after(20*time.Second))
	r.done("green", true, resync, after(20*time.Second), after(20*time.Second))
	everything("nobody asked, so it is a comparison or a retry", after(30*time.Second))
	r.done("green", true, resync, after(30*time.Second), after(30*time.Second))
	r.add("green", "web")
	everything("the comparison is due", after(30*time.Second+resync))
	r.forget("green")
	require.Empty(t, r.of)
}

func TestAChangeOfANamespaceConcernsAllOnlyIfItAppearsOrGoes(t *testing.T) {
	for about, c := range map[string]struct {
		change func(*corev1.Namespace)
		places []string
	}{
		"a label": {func(n *corev1.Namespace) { n.Labels[onboard.LabelPodSecurity+"enforce"] = "privileged" }, []string{"web"}},
		"its end": {func(n *corev1.Namespace) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, []string{"api", "green", "web"}},
		"another": {func(n *corev1.Namespace) { n.UID = "2" }, []string{"api", "green", "web"}},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOperated(t, "api", "web")
				o.reconciled(t, request("green"))
				o.places()
				asked := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer asked.ShutDown()
				before, after := namespaceOf("green", "web"), namespaceOf("green", "web")
				c.change(after)
				o.namespaces().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, asked)
				require.Equal(t, 1, asked.Len())
				asking, _ := asked.Get()
				o.reconciled(t, asking)
				require.Equal(t, c.places, o.places())
			})
		})
	}
}
