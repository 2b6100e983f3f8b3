package warm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func in(namespace string, n int) target {
	return target{verify.Namespace(namespace), fmt.Sprintf("r.example.com/app:%d", n)}
}

// testQueue is a queue whose namespaces pay for themselves. It is shut down when the
// test ends.
type testQueue struct {
	*queue
	t *testing.T
}

func newTestQueue(t *testing.T, total, each int) testQueue {
	t.Helper()
	q := testQueue{newQueue(total, each), t}
	t.Cleanup(q.turns.ShutDown)
	return q
}

func (q testQueue) put(of target, renew bool) bool {
	return q.add(of.namespace.Account(), job{target: of, renew: renew, due: time.Now()})
}

// following is the next job, which must be ready.
func (q testQueue) following() *job {
	q.t.Helper()
	require.Positive(q.t, q.turns.Len())
	_, j, ok := q.take()
	require.True(q.t, ok)
	return j
}

// finish ends the turn of a job, which is tried again after a pause unless that is 0.
func (q testQueue) finish(j *job, pause time.Duration) bool {
	kept := pause == 0 || q.add(j.namespace.Account(), job{target: j.target, renew: j.renew, tries: j.tries + 1, due: time.Now().Add(pause)})
	q.done(j.namespace.Account())
	return kept
}

func TestAFloodOfOneNamespaceDoesNotDelayAnothersFirstImage(t *testing.T) {
	q := newTestQueue(t, maxWaiting, maxWaitingEach)
	for i := range maxWaitingEach {
		require.True(t, q.put(in("flood", i), false))
	}
	first := q.following()
	require.True(t, q.put(in("quiet", 0), false))
	require.Equal(t, in("quiet", 0), q.following().target, "while the other's is being served")
	require.Zero(t, q.turns.Len(), "one of a namespace at a time")
	require.True(t, q.finish(first, 0))
	require.Equal(t, in("flood", 1), q.following().target, "in order")
}

func TestNamespacesTakeTurns(t *testing.T) {
	q := newTestQueue(t, maxWaiting, maxWaitingEach)
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 3 {
			q.put(in(namespace, i), false)
		}
	}
	var served []target
	for range 9 {
		j := q.following()
		served = append(served, j.target)
		require.True(t, q.finish(j, 0))
	}
	for i, s := range served {
		require.Equal(t, in(string(rune('a'+i%3)), i/3), s)
	}
	require.Empty(t, q.jobs, "nothing is kept of namespaces that wait for nothing")
	require.Zero(t, q.waiting)
}

func TestNamespacesOfOneAccountShareItsTurnAndItsRoom(t *testing.T) {
	q := newTestQueue(t, 100, 3)
	for i, namespace := range []string{"a", "b", "c"} {
		require.True(t, q.add("shared", job{target: in(namespace, i), due: time.Now()}))
	}
	require.False(t, q.add("shared", job{target: in("d", 0), due: time.Now()}), "the room is the account's")
	require.True(t, q.put(in("other", 0), false))
	account, j, ok := q.take()
	require.True(t, ok)
	require.Equal(t, verify.Account("shared"), account)
	require.Equal(t, in("a", 0), j.target)
	other := q.following()
	require.Equal(t, in("other", 0), other.target, "b is of the account that has its turn")
	require.Zero(t, q.turns.Len())
	q.done(account)
	require.Equal(t, in("b", 1), q.following().target)
}

func TestDuplicateImagesAreMerged(t *testing.T) {
	q := newTestQueue(t, 10, 10)
	for range 20 {
		require.True(t, q.put(in("a", 0), false))
	}
	require.True(t, q.put(in("a", 0), true))
	require.True(t, q.put(in("b", 0), false), "of another namespace it is another")
	j := q.following()
	require.True(t, j.renew, "who asks for more gets it")
	require.True(t, q.finish(j, 0))
	require.Equal(t, in("b", 0), q.following().target)
	require.Zero(t, q.turns.Len())
}

func TestWhatWaitsIsBounded(t *testing.T) {
	q := newTestQueue(t, 5, 3)
	for i := range 3 {
		require.True(t, q.put(in("a", i), false))
	}
	require.False(t, q.put(in("a", 3), false), "of one namespace")
	require.True(t, q.put(in("a", 0), false), "what waits already takes no more room")
	require.True(t, q.put(in("b", 0), false))
	require.True(t, q.put(in("c", 0), false))
	require.False(t, q.put(in("d", 0), false), "of all")
	require.NotContains(t, q.jobs, verify.Namespace("d").Account())

	j := q.following()
	require.True(t, q.put(in("a", 3), false))
	require.False(t, q.finish(j, time.Minute), "a retry takes room too")
}

func TestARetryWaitsForItsPauseAndDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newTestQueue(t, 10, 10), time.Now()
		q.put(in("a", 0), true)
		q.put(in("a", 1), false)
		require.True(t, q.finish(q.following(), time.Minute))
		_, j, ok := q.take()
		require.True(t, ok)
		require.Equal(t, in("a", 1), j.target)
		require.Zero(t, time.Since(began))
		require.True(t, q.finish(j, 2*time.Minute), "a second pause does not replace the first")
		for tries, want := range []target{in("a", 0), in("a", 1)} {
			_, j, ok = q.take()
			require.True(t, ok)
			require.Equal(t, want, j.target)
			require.Equal(t, want == in("a", 0), j.renew)
			require.Equal(t, 1, j.tries)
			require.Equal(t, time.Duration(tries+1)*time.Minute, time.Since(began))
			require.True(t, q.finish(j, 0))
		}

		q.put(in("b", 0), false)
		q.turns.ShutDown()
		_, _, ok = q.take()
		require.False(t, ok, "the end does not wait for the queue to be empty")
	})
}
