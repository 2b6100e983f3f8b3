package report

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maypok86/otter/v2"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

const (
	post      = "POST /apis/openreports.io/v1alpha1/namespaces/team-a/reports"
	put       = "PUT /apis/openreports.io/v1alpha1/namespaces/team-a/reports/landwaiter-running"
	postEvent = "POST /api/v1/namespaces/team-a/events"
)

// lead begins a term, and ends it with the test. It must be called in a bubble of synctest.
func lead(t *testing.T, r *Reporter) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Lead(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

// pass lets time go by, and everything that it causes happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestUnchangedResultsAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		stop := lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		require.Equal(t, []string{post}, server.written())
		for range 20 {
			r.Verified("team-a", imageOne, allowed)
			r.Changed("team-a")
			pass(time.Minute)
		}
		require.Empty(t, server.written())
		require.InDelta(t, 1, testutil.ToFloat64(newGauge(r)), 0)
		stop()
		require.Zero(t, testutil.CollectAndCount(newGauge(r)), "only who leads has series")
	})
}

func runs1(image string) workload.Running { return runs(web, "main", image) }

func TestARevocationIsOneEventAcrossTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		stop := lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.written()
		// The API server takes the Event, and then not the report: the process ends between.
		down := apierrors.NewServiceUnavailable("away")
		server.failing = func(_, path string) *apierrors.StatusError {
			if strings.Contains(path, "/reports") {
				return down
			}
			return nil
		}
		r.Verified("team-a", imageOne, denied)
		pass(5 * time.Second)
		require.Len(t, server.events, 1)
		stop()
		server.failing = nil

		next, _, _, _ := newReporter(t)
		next.reports, next.clients, next.metadata = r.reports, r.clients, r.metadata
		next.Attach(runs)
		lead(t, next)
		next.Verified("team-a", imageOne, denied)
		pass(20 * time.Second)
		require.Equal(t, 1, server.reports["team-a/landwaiter-running"].Summary.Fail)
		require.Len(t, server.events, 1)
		for range 5 {
			next.Verified("team-a", imageOne, denied)
			pass(time.Minute)
		}
		require.Len(t, server.events, 1)
		for _, e := range server.events {
			require.Equal(t, v1beta1.EventImageNoLongerTrusted, e.Reason)
			require.Equal(t, "Deployment web", e.InvolvedObject.Kind+" "+e.InvolvedObject.Name)
		}
	})
}

func TestReportsAreWrittenOnceTheirDefinitionComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		server.undefined = true
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		r.Verified("team-a", imageOne, allowed)
		lead(t, r)
		pass(5 * time.Minute)
		require.Empty(t, server.written())
		require.Len(t, log.AllEntries(), 1, "it is said once")
		require.Contains(t, log.LastEntry().Message, "reports.installCRDs")
		server.mu.Lock()
		server.undefined = false
		server.mu.Unlock()
		pass(20 * time.Second)
		require.Equal(t, []string{post}, server.written())
	})
}

func TestADefinitionThatGoesIsWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		newT := newTerm(r)
		server.undefined = true
		newT.mark("team-a", 0)
		r.Verified("team-a", imageOne, allowed)
		require.ErrorContains(t, newT.flushDue(t.Context()), "write report")
	})
}

func TestAReportThatSomebodyElseWritesIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.written()
		term := r.leading.Load()
		meta := func() *metav1.PartialObjectMetadata {
			server.mu.Lock()
			defer server.mu.Unlock()
			return &metav1.PartialObjectMetadata{ObjectMeta: server.reports["team-a/landwaiter-running"].ObjectMeta}
		}
		term.compare(meta(), false)
		pass(10 * time.Second)
		require.Empty(t, server.written(), "it is our own version")

		server.mu.Lock()
		server.store("team-a/landwaiter-running", &openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "landwaiter-running"}}, "kubectl-edit")
		server.mu.Unlock()
		term.compare(meta(), false)
		pass(30 * time.Second)
		require.Equal(t, []string{put}, server.written())
		require.Equal(t, 1, server.reports["team-a/landwaiter-running"].Summary.Pass)

		gone := meta()
		gone.ResourceVersion = "1000"
		server.mu.Lock()
		delete(server.reports, "team-a/landwaiter-running")
		server.mu.Unlock()
		term.compare(gone, true)
		pass(30 * time.Second)
		require.Equal(t, []string{post}, server.written())

		other := meta()
		other.Name, other.ResourceVersion = "landwaiter-checker", "2000"
		term.compare(other, false)
		pass(30 * time.Second)
		require.Empty(t, server.written(), "others' reports are not ours to write")
	})
}

func TestWhatTheWatchMissedIsFoundByTheNextList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.mu.Lock()
		delete(server.reports, "team-a/landwaiter-running")
		server.mu.Unlock()
		server.written()
		r.leading.Load().missed(nil)
		pass(30 * time.Second)
		require.Equal(t, []string{post}, server.written())
	})
}

// Another process believes that it still leads.
func TestDenialsThatAnotherTermHasWrittenAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		term := r.leading.Load()
		recent := func(counter string, count int) note {
			n := noteAt(counter, count, time.Now())
			n.First = n.Last
			return n
		}
		term.fold("team-a", recent("r0-1", 2))
		pass(10 * time.Second)
		other := newSpace()
		other.fold(recent("r0-1", 2), time.Now())
		other.fold(recent("r1-1", 3), time.Now())
		server.mu.Lock()
		server.store("team-a/landwaiter-denied", other.all()[0], "landwaiter")
		server.mu.Unlock()
		term.fold("team-a", recent("r0-1", 4))
		pass(time.Minute)
		require.Equal(t, "7", server.reports["team-a/landwaiter-denied"].Results[0].Properties[v1beta1.PropertyCount])
	})
}

func TestANoteCountsForTheNamespaceOfItsEventAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _, _ := newReporter(t)
		term := newTerm(r)
		n := noteAt("r0-1", 2, time.Now())
		n.First = n.Last
		e, err := newNoted("team-a", n, web)
		require.NoError(t, err)
		e.InvolvedObject.Namespace = "team-b" // the API server refuses it; here it counts for nothing
		term.noted(e)
		require.Len(t, term.spaces, 1)
		require.Equal(t, 2, term.spaces["team-a"].denials[imageOne].count())
		e.Reason = "Other"
		e.Namespace = "team-c"
		term.noted(e)
		term.noted(&corev1.Pod{})
		require.Len(t, term.spaces, 1)
	})
}

func TestANamespaceThatIsGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		server.failing = func(verb, _ string) *apierrors.StatusError {
			if verb == http.MethodPost {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team-a")
			}
			return nil
		}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(5 * time.Second)
		require.Empty(t, r.leading.Load().spaces)
		require.Empty(t, log.AllEntries())
		r.Forget("team-a")
		require.Empty(t, r.known.of)
		require.Empty(t, r.known.each)
	})
}

// Anyone who may write Events in a namespace can forge one, and advice is a command to copy.
func TestAdviceIsNeverTakenFromAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, _, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		r.notes.add("team-a", "team-a", note{Image: imageOne, Reason: "it is not signed", Remediation: "sign it", Command: "cosign sign it"}, time.Now())
		const evil = "kubectl create clusterrolebinding x"
		for i, image := range []string{imageOne, imageTwo, "no image; " + evil} {
			text := fmt.Sprintf(`{"counter":"forged-%d","image":%q,"policy":"p","reason":"it is not signed. Ask: mallory. To fix: `+
				`%s","remediation":%q,"command":"x","contact":"mallory","first":%q,"last":%q,"count":1}`,
				i, image, evil, evil, stamp(time.Now()), stamp(time.Now()))
			r.leading.Load().
				noted(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Annotations: map[string]string{annotationNote: text}},
					Reason: v1beta1.EventImageDenied})
		}
		pass(30 * time.Second)
		advice := map[string]string{}
		for _, result := range server.reports["team-a/landwaiter-denied"].Results {
			require.Equal(t, "it is not signed", result.Description)
			p := result.Properties
			advice[p[v1beta1.PropertyImage]] = policy.Fix(p[v1beta1.PropertyRemediation], p[v1beta1.PropertyCommand])
			require.Empty(t, p[v1beta1.PropertyContact], "no policy p applies, so nobody is asked about it")
		}
		require.Equal(t,
			map[string]string{imageOne: "if your build made it: sign it. Command: cosign sign it",
				imageTwo: "ask Landwaiter what is missing. Command: landwaiter verify --explain --namespace team-a " + imageTwo, "no image; " + evil: ""}, advice)
	})
}

// A team may have thousands of pods with an image that is denied.
func TestLookingForWorkloadsKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		slow := &slowly{cluster: runs, looking: make(chan struct{}), seen: make(chan struct{})}
		r.Attach(slow)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		pass(time.Second)
		n := noteAt("r0-1", 2, time.Now())
		n.First = n.Last
		term := r.leading.Load()
		term.fold("team-a", n)
		<-slow.looking
		r.Forget("team-b")
		require.Zero(t, testutil.CollectAndCount(newGauge(r)))
		term.fold("team-c", n)
		close(slow.seen)
		pass(30 * time.Second)
		require.Equal(t, matchedBy, server.reports["team-a/landwaiter-denied"].Results[0].Properties[v1beta1.PropertyMatched])
	})
}

// slowly is a cluster in which the workloads that have an image are found when a test says.
type slowly struct {
	*cluster
	looking, seen chan struct{}
	once          sync.Once
}

func (s *slowly) Having(namespace verify.Namespace, image string, limit int) []workload.Ref {
	s.once.Do(func() { close(s.looking) })
	<-s.seen
	return s.cluster.Having(namespace, image, limit)
}

func TestAnAccountThatIsOverItsLimitDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		lead(t, r)
		pass(time.Second)
		runs.mu.Lock()
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		runs.mu.Unlock()
		for i := range 60 { // it changes its mind all the time
			result := allowed
			if i%2 == 0 {
				result = denied
			}
			r.Verified("team-a", imageOne, result)
			pass(time.Second)
		}
		own := 0
		for _, request := range server.written() {
			if strings.Contains(request, "/reports") {
				own++
			}
		}
		require.LessOrEqual(t, own, accountWritesAtOnce+accountWritesPerMinute+1)
		runs.mu.Lock()
		runs.runs["team-b"] = []workload.Running{runs1(imageOne)}
		runs.mu.Unlock()
		r.Verified("team-b", imageOne, allowed)
		pass(soon + time.Second)
		require.Contains(t, server.reports, "team-b/landwaiter-running")
		require.LessOrEqual(t, len(server.events), accountEventsAtOnce+accountEventsPerMinute)
	})
}

func TestABurstIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		for i := range 120 {
			namespace := verify.Namespace(fmt.Sprintf("team-%d", i))
			runs.runs[namespace] = []workload.Running{runs1(imageOne)}
			r.Verified(namespace, imageOne, allowed)
		}
		lead(t, r)
		pass(time.Minute)
		require.LessOrEqual(t, len(server.written()), writesPerMinute+writesAtOnce)
		pass(2 * time.Minute)
		require.Len(t, server.reports, 120)
	})
}

func TestAnEventThatIsRefusedHoldsUpNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.failing = func(_, path string) *apierrors.StatusError {
			if strings.Contains(path, "/events") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil)
			}
			return nil
		}
		r.Verified("team-a", imageOne, denied)
		pass(10 * time.Second)
		require.Equal(t, 1, server.reports["team-a/landwaiter-running"].Summary.Fail)
		require.Len(t, log.AllEntries(), 1)
		require.Equal(t, verify.Namespace("team-a"), log.LastEntry().Data["namespace"])
	})
}

func TestAnEventThatFailsForLongFollowsItsReportAndCostsTheAccountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		images := []string{imageOne, imageOne + "-b"}
		runs.runs["team-a"] = []workload.Running{runs1(images[0]), runs1(images[1])}
		lead(t, r)
		for _, image := range images {
			r.Verified("team-a", image, allowed)
		}
		pass(10 * time.Second)
		posted, away := 0, true
		server.failing = func(verb, path string) *apierrors.StatusError {
			if strings.Contains(path, "/events") && verb == http.MethodPost {
				if posted++; away && posted > 1 { // the first is written
					return apierrors.NewServiceUnavailable("away")
				}
			}
			return nil
		}
		for _, image := range images {
			r.Verified("team-a", image, denied)
		}
		fails := func() int {
			server.mu.Lock()
			defer server.mu.Unlock()
			return server.reports["team-a/landwaiter-running"].Summary.Fail
		}
		pass(30 * time.Second)
		require.Zero(t, fails(), "the report waits for the Event")
		pass(time.Minute)
		require.Equal(t, 2, fails(), "and not for ever")
		pass(30 * time.Minute) // many more tries than the account has Events
		require.Len(t, server.events, 1)
		limiter, _ := r.leading.Load().events.of.(*otter.Cache[verify.Account, *rate.Limiter]).GetIfPresent("namespace/team-a")
		require.True(t, limiter == nil || limiter.TokensAt(r.now()) >= accountEventsAtOnce-2, "a try that fails takes nothing from the limit")
		server.mu.Lock()
		away = false
		server.mu.Unlock()
		pass(time.Minute)
		require.Len(t, server.events, 2)
		posted = 0
		pass(5 * time.Minute)
		require.Zero(t, posted)
	})
}

func TestWhatIsVerifiedKeepsAllThatAReportSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, _ := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", imageOne, excepted)
		pass(10 * time.Second)
		found := server.reports["team-a/landwaiter-running"].Results[0]
		require.EqualValues(t, v1beta1.ReportWarn, found.Result)
		require.Equal(t, "ClusterException hotfix", found.Properties[v1beta1.PropertyException])
		require.Equal(t, stamp(excepted.ExceptionEnds), found.Properties[v1beta1.PropertyExceptionEnds])
		longer := excepted
		longer.ExceptionEnds = excepted.ExceptionEnds.Add(time.Hour)
		r.Verified("team-a", imageOne, longer)
		pass(10 * time.Second)
		found = server.reports["team-a/landwaiter-running"].Results[0]
		require.Equal(t, stamp(longer.ExceptionEnds), found.Properties[v1beta1.PropertyExceptionEnds])
	})
}
