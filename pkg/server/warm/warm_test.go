package warm

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// asked is a call of the fake verifier.
type asked struct {
	target
	renew bool
	at    time.Duration
}

// fake answers as a test says, and records its calls.
type fake struct {
	mu     sync.Mutex
	began  time.Time
	calls  []asked
	answer func(ctx context.Context, of target) verify.Result
}

func (f *fake) ask(ctx context.Context, namespace verify.Namespace, ref image.Reference, renew bool) verify.Result {
	of := target{namespace, ref.String()}
	f.mu.Lock()
	f.calls = append(f.calls, asked{of, renew, time.Since(f.began)})
	f.mu.Unlock()
	if f.answer != nil {
		return f.answer(ctx, of)
	}
	return outcome(policy.Allowed)
}

func (f *fake) Warm(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	return f.ask(ctx, namespace, ref, false)
}

func (f *fake) Refresh(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	return f.ask(ctx, namespace, ref, true)
}

func (f *fake) Account(namespace verify.Namespace) verify.Account { return namespace.Account() }

// taken returns the calls since the last time.
func (f *fake) taken() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func outcome(o policy.Outcome) verify.Result {
	return verify.Result{Verdict: policy.Verdict{Outcome: o}, Overloaded: o == policy.Undecided}
}

const interval = 30 * time.Minute

// world is a watcher whose objects a test puts into the informers' stores.
type world struct {
	*Watcher
	*fake
	t         *testing.T
	workloads cache.SharedIndexInformer
}

// start runs a watcher until the test ends; it must be called in a bubble of synctest.
func start(t *testing.T) *world {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	f := &fake{began: time.Now()}
	w, err := assemble(f, log, Options{Interval: interval, Metrics: prometheus.NewRegistry()},
		source{&corev1.Pod{}, &cache.ListWatch{}}, source{&appsv1.Deployment{}, &cache.ListWatch{}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.renew(ctx) })
	w.work(ctx, &running)
	t.Cleanup(func() { cancel(); running.Wait() })
	return &world{Watcher: w, fake: f, t: t, workloads: w.informers[0]}
}

// put makes an object, or changes it, as an informer does.
func (w *world) put(informer cache.SharedIndexInformer, namespace, name string, images ...string) {
	w.t.Helper()
	r := &record{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, images: images}
	before, _, err := informer.GetIndexer().Get(r)
	require.NoError(w.t, err)
	require.NoError(w.t, informer.GetIndexer().Add(r))
	w.changed(before, r)
	synctest.Wait()
}

func (w *world) remove(informer cache.SharedIndexInformer, namespace, name string) {
	w.t.Helper()
	require.NoError(w.t, informer.GetIndexer().Delete(&record{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
}

func (w *world) counted(outcome string) int {
	return int(testutil.ToFloat64(w.images.WithLabelValues(outcome)))
}

const (
	one = "r.example.com/app:1"
	two = "r.example.com/app:2"
)

func TestAWorkloadsNewImagesAreVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.put(w.workloads, "team-a", "web", one)
		require.Equal(t, []asked{{target{"team-a", one}, false, 0}}, w.taken())
		w.put(w.workloads, "team-a", "web", one, two)
		require.Equal(t, []asked{{target{"team-a", two}, false, 0}}, w.taken(), "what it had before is not looked at")
		w.put(w.workloads, "team-b", "web", one)
		require.Equal(t, []asked{{target{"team-b", one}, false, 0}}, w.taken(), "in another namespace it is another question")
		time.Sleep(10 * interval) // of the bubble's clock
		require.Empty(t, w.taken(), "without a pod it is not kept warm")
		require.Equal(t, 3, w.counted("allowed"))
	})
}

func TestImagesOfRunningPodsAreRenewedInEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.put(w.pods, "team-a", "web-1", one)
		w.put(w.pods, "team-a", "web-2", one)
		w.put(w.pods, "team-b", "web-1", two)
		w.taken()
		last := map[target]time.Duration{}
		for range 20 {
			time.Sleep(interval) // of the bubble's clock
			synctest.Wait()
			calls := w.taken()
			require.Len(t, calls, 2, "each once, however many pods have it")
			for _, call := range calls {
				require.True(t, call.renew)
				require.LessOrEqual(t, call.at-last[call.target], interval+interval/steps)
				last[call.target] = call.at
			}
		}
		require.Len(t, last, 2)
		w.remove(w.pods, "team-a", "web-1")
		time.Sleep(interval)
		synctest.Wait()
		require.Len(t, w.taken(), 2, "another pod still has it")
		w.remove(w.pods, "team-a", "web-2")
		w.remove(w.pods, "team-b", "web-1")
		time.Sleep(2 * interval)
		synctest.Wait()
		require.Empty(t, w.taken(), "what no pod has is forgotten")
	})
}

func TestRenewalsAreSpreadOverTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		const pods = 600
		for i := range pods {
			w.put(w.pods, "team-a", in("", i).image, in("", i).image)
		}
		w.taken()
		time.Sleep(interval)
		synctest.Wait()
		each := map[time.Duration]int{}
		for _, call := range w.taken() {
			each[call.at]++
		}
		require.Greater(t, len(each), steps/2)
		for at, n := range each {
			require.Less(t, n, pods/4, at)
		}
	})
}

func TestUndecidedImagesAreRetriedUntilNoObjectHasThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		var free atomic.Bool
		w.answer = func(context.Context, target) verify.Result {
			if free.Load() {
				return outcome(policy.Denied)
			}
			return outcome(policy.Undecided)
		}
		w.put(w.workloads, "team-a", "web", one)
		w.put(w.workloads, "team-a", "other", two)
		time.Sleep(4 * longestPause)
		synctest.Wait()
		calls := w.taken()
		require.GreaterOrEqual(t, len(calls), 16)
		require.LessOrEqual(t, len(calls), 32, "with pauses")
		w.remove(w.workloads, "team-a", "other")
		free.Store(true)
		time.Sleep(2 * longestPause)
		synctest.Wait()
		calls = w.taken()
		require.Len(t, calls, 1)
		require.Equal(t, one, calls[0].image)
		require.Equal(t, 1, w.counted("denied"))
		time.Sleep(10 * interval)
		require.Empty(t, w.taken())
		require.Empty(t, w.queue.jobs)
		require.Zero(t, w.queue.waiting)
	})
}

func TestAHangingRegistryDelaysNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.answer = func(ctx context.Context, of target) verify.Result {
			if of.namespace == "slow" {
				<-ctx.Done()
			}
			return outcome(policy.Allowed)
		}
		for i := range 2 * maxWaitingEach {
			w.put(w.workloads, "slow", in("", i).image, in("", i).image)
		}
		require.Len(t, w.taken(), 1)
		w.put(w.workloads, "team-a", "web", one, two)
		require.Len(t, w.taken(), 2)
		require.Equal(t, maxWaitingEach-1, w.counted("dropped"))
	})
}
