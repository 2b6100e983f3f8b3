package report

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Anyone who may write reports in a namespace can make many and large ones with our label.
func TestOthersReportsAreReadAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		for i := range 5*pageSize + 1 {
			server.store(fmt.Sprintf("team-a/forged-%03d", i),
				&openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("forged-%03d", i)}}, "other")
		}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.mu.Lock()
		require.LessOrEqual(t, server.largest, pageSize)
		require.GreaterOrEqual(t, server.lists, 2*6, "the leader and its watch read all pages")
		delete(server.reports, "team-a/landwaiter-running")
		server.mu.Unlock()
		server.written()
		server.end() // of watches: then there is another list
		pass(30 * time.Second)
		require.Equal(t, []string{post}, server.written(), "what the watch missed")
		require.Len(t, r.leading.Load().spaces["team-a"].written, 1, "of others' reports nothing is kept")
		require.Empty(t, log.AllEntries())
	})
}

func TestAWatchOfReportsThatFailsIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		runs.runs["team-a"] = []workload.Running{runs1(imageOne)}
		lead(t, r)
		r.Verified("team-a", imageOne, allowed)
		pass(10 * time.Second)
		server.mu.Lock()
		server.failing = func(verb, path string) *apierrors.StatusError {
			if verb == http.MethodGet && strings.HasSuffix(path, "/reports") {
				return apierrors.NewServiceUnavailable("away")
			}
			return nil
		}
		delete(server.reports, "team-a/landwaiter-running")
		server.mu.Unlock()
		server.end()
		pass(5 * time.Minute)
		require.Len(t, log.AllEntries(), 1, "it is said once")
		require.Contains(t, log.LastEntry().Message, "cannot watch reports")
		server.mu.Lock()
		server.failing = nil
		server.mu.Unlock()
		pass(30 * time.Second)
		require.Contains(t, server.reports, "team-a/landwaiter-running")
	})
}

func TestPodsThatCannotBeReadAreSaidToBeWhatReportsWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, server, runs, log := newReporter(t)
		runs.runs["team-a"], runs.unread = []workload.Running{runs1(imageOne)}, true
		r.Verified("team-a", imageOne, allowed)
		lead(t, r)
		pass(unreadFor - time.Second)
		require.Empty(t, log.AllEntries(), "a large cluster takes its time")
		pass(5 * time.Minute)
		require.Len(t, log.AllEntries(), 1, "it is said once")
		require.Contains(t, log.LastEntry().Message, "needs permission to list and watch")
		require.Empty(t, server.written())
		runs.mu.Lock()
		runs.unread = false
		runs.mu.Unlock()
		pass(10 * time.Second)
		require.Equal(t, []string{post}, server.written())
	})
}
