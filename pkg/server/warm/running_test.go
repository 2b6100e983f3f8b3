package warm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

func TestImagesOfPodsAreReportedForTheirTopOwner(t *testing.T) {
	w, err := assemble(&fake{}, logrus.New(), Options{Interval: time.Hour, Metrics: prometheus.NewRegistry()}, source{&corev1.Pod{}, &cache.ListWatch{}},
		source{&appsv1.Deployment{}, &cache.ListWatch{}}, source{&batchv1.Job{}, &cache.ListWatch{}})
	require.NoError(t, err)
	is := true
	meta := func(name string, owner workload.Ref, hash string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"pod-template-hash": hash}}
		if owner.Name != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: &is}}
		}
		return m
	}
	put := func(informer cache.SharedIndexInformer, object any) {
		kept, err := keep(object)
		require.NoError(t, err)
		require.NoError(t, informer.GetIndexer().Add(kept))
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: one}}}
	pod := func(name string, owner workload.Ref, hash string) {
		put(w.pods, &corev1.Pod{ObjectMeta: meta(name, owner, hash), Spec: spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: two}}}}
	put(w.byKind["Deployment"], &appsv1.Deployment{ObjectMeta: meta("web", workload.Ref{}, ""), Spec: appsv1.DeploymentSpec{Template: template}})
	cron := workload.Ref{APIVersion: "batch/v1", Kind: "CronJob", Name: "night", UID: "c"}
	put(w.byKind["Job"], &batchv1.Job{ObjectMeta: meta("night-1", cron, ""), Spec: batchv1.JobSpec{Template: template}})
	set := func(name string) workload.Ref {
		return workload.Ref{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "r"}
	}
	pod("web-1-a", set("web-1"), "1")
	pod("web-1-b", set("web-1"), "1")
	pod("other-1-a", set("other-1"), "1") // its Deployment does not exist
	pod("night-1-a", workload.Ref{APIVersion: "batch/v1", Kind: "Job", Name: "night-1", UID: "j"}, "")
	pod("alone", workload.Ref{}, "")

	var of []workload.Ref
	for r := range w.Running("team-a") {
		require.Equal(t, workload.Running{Of: r.Of, ContainerType: workload.Container, Container: "main", Image: one}, r)
		of = append(of, r.Of)
	}
	deployment := workload.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web"}
	alone := workload.Ref{APIVersion: "v1", Kind: "Pod", Name: "alone", UID: "uid-alone"}
	require.ElementsMatch(t, []workload.Ref{deployment, deployment, set("other-1"), cron, alone}, of, "for each pod")
	for range w.Running("team-a") {
		break // whoever stops early gets no more
	}
	for range w.Running("team-b") {
		require.Fail(t, "nothing runs there")
	}

	require.Equal(t, []workload.Ref{cron, deployment}, w.Having("team-a", two, 5), "the template counts, whether or not a pod has it")
	require.Equal(t, []workload.Ref{cron}, w.Having("team-a", two, 1))
	require.Empty(t, w.Having("team-b", two, 5))
	_, synced := w.Namespaces()
	require.False(t, synced, "nothing was read from the API server")
}

// sink remembers what it was told.
type sink struct{ verified, changed int }

func (s *sink) Verified(verify.Namespace, string, verify.Result) { s.verified++ }
func (s *sink) Changed(verify.Namespace)                         { s.changed++ }

func TestANewRuleIsAppliedToWhatRunsSoonAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		told, generation := &sink{}, "1"
		w.sink, w.generation = told, func(verify.Namespace) string { return generation }
		f := following{Watcher: w.Watcher, known: map[string]string{}, left: map[string]string{}}
		look := func() {
			f.look(time.Now())
			synctest.Wait()
		}
		w.put(w.pods, "team-a", "web", one)
		w.put(w.workloads, "team-a", "web", two)
		look()
		w.taken()
		look()
		require.Empty(t, w.taken())
		generation = "2"
		look()
		calls := w.taken()
		require.Len(t, calls, 1)
		require.Equal(t, one, calls[0].image, "of workloads without pods nothing runs")
		require.False(t, calls[0].renew, "what the cache knows by these rules is not verified again")
		look()
		require.Empty(t, w.taken())
		generation = "" // no rules are loaded
		look()
		require.Empty(t, w.taken())
		require.Equal(t, 4, told.verified)
		require.Equal(t, 2, told.changed)
	})
}

// An account with many images has more of them than may wait.
func TestANewRuleReachesEveryImageOnceThereIsRoomForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		generation := "1"
		w.generation = func(verify.Namespace) string { return generation }
		f := following{Watcher: w.Watcher, known: map[string]string{}, left: map[string]string{}}
		const images = 2*maxWaitingEach + 5
		for i := range images {
			name := in("", i).image
			w.put(w.pods, "team-a", name, name)
		}
		w.put(w.pods, "team-b", "web", one)
		f.look(time.Now())
		for range 5 {
			synctest.Wait()
			f.look(time.Now())
		}
		synctest.Wait()
		w.taken()
		w.answer = func(_ context.Context, of target) verify.Result { // it takes time, so that others wait
			time.Sleep(time.Millisecond)
			return outcome(policy.Allowed)
		}
		generation = "2"
		f.look(time.Now())
		require.Len(t, f.left, 1, "the other account has room")
		for range 4 {
			time.Sleep(followEvery)
			synctest.Wait()
			f.look(time.Now())
		}
		time.Sleep(followEvery)
		synctest.Wait()
		asked := map[target]int{}
		for _, call := range w.taken() {
			asked[call.target]++
		}
		require.Len(t, asked, images+1)
		for of, times := range asked {
			require.Equal(t, 1, times, of)
		}
		require.Empty(t, f.left)
		require.Zero(t, w.counted("dropped"), "nothing was lost")
	})
}

func TestAnExceptionThatEndsWhileTheQueueIsFullIsLookedAtLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.answer = func(ctx context.Context, of target) verify.Result {
			<-ctx.Done()
			return outcome(policy.Allowed)
		}
		for i := range maxWaitingEach + 2 {
			w.put(w.pods, "team-a", in("", i).image, in("", i).image)
		}
		of := target{"team-a", "r.example.com/excepted:1"}
		w.ends.set(of, time.Now())
		time.Sleep(time.Second)
		f := following{Watcher: w.Watcher, known: map[string]string{}, left: map[string]string{}}
		f.look(time.Now())
		require.Contains(t, w.ends.at, of)
	})
}

func TestTheEndOfAnExceptionIsLookedAtWhenItComes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var e ends
	of := target{"team-a", one}
	e.set(of, now)
	require.Empty(t, e.past(now.Add(-time.Second)))
	require.Equal(t, []target{of}, e.past(now.Add(time.Second)))
	require.Empty(t, e.past(now.Add(time.Hour)), "once")
	e.set(of, now)
	e.set(of, time.Time{})
	require.Empty(t, e.past(now.Add(time.Hour)), "the verdict needs no exception any more")
	for i := range 2 * maxEnds {
		e.set(in("team-a", i), now)
	}
	require.Len(t, e.at, maxEnds)
}

func TestUndecidedResultsAndPodsThatGoAreToldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		told := &sink{}
		w.sink, w.answer = told, func(context.Context, target) verify.Result { return outcome(policy.Undecided) }
		w.put(w.pods, "team-a", "web", one)
		require.Equal(t, &sink{verified: 1, changed: 1}, told)
		w.gone(cache.DeletedFinalStateUnknown{Obj: &record{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}})
		require.Equal(t, 2, told.changed)
	})
}
