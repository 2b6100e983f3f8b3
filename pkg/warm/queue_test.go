package warm

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

func in(namespace string, n int) target {
	return target{verify.Namespace(namespace), fmt.Sprintf("r.example.com/app:%d", n)}
}

// following is the next target that is ready, which must be there.
func following(t *testing.T, q *queue) *job {
	t.Helper()
	j, _ := q.next()
	require.NotNil(t, j)
	return j
}

func TestAFloodOfOneNamespaceDoesNotDelayAnothersFirstImage(t *testing.T) {
	q := newQueue(maxWaiting, maxWaitingEach)
	for i := range maxWaitingEach {
		require.True(t, q.add(in("flood", i), false))
	}
	first := following(t, q)
	require.True(t, q.add(in("quiet", 0), false))
	require.Equal(t, in("quiet", 0), following(t, q).target, "while the other's is being served")
	none, _ := q.next()
	require.Nil(t, none, "one of a namespace at a time")
	require.True(t, q.done(first, 0))
	require.Equal(t, in("flood", 1), following(t, q).target, "in order")
}

func TestNamespacesTakeTurns(t *testing.T) {
	q := newQueue(maxWaiting, maxWaitingEach)
	for _, namespace := range []string{"a", "b", "c"} {
		for i := range 3 {
			q.add(in(namespace, i), false)
		}
	}
	var served []target
	for range 9 {
		j := following(t, q)
		served = append(served, j.target)
		require.True(t, q.done(j, 0))
	}
	for i, s := range served {
		require.Equal(t, in(string(rune('a'+i%3)), i/3), s)
	}
	require.Empty(t, q.lines, "nothing is kept of namespaces that wait for nothing")
	require.Empty(t, q.jobs)
}

func TestAnImageWaitsOnce(t *testing.T) {
	q := newQueue(10, 10)
	for range 20 {
		require.True(t, q.add(in("a", 0), false))
	}
	require.True(t, q.add(in("a", 0), true))
	require.True(t, q.add(in("b", 0), false), "of another namespace it is another")
	j := following(t, q)
	require.True(t, j.renew, "who asks for more gets it")
	require.True(t, q.done(j, 0))
	require.Equal(t, in("b", 0), following(t, q).target)
	none, _ := q.next()
	require.Nil(t, none)
}

func TestWhatWaitsIsBounded(t *testing.T) {
	q := newQueue(5, 3)
	for i := range 3 {
		require.True(t, q.add(in("a", i), false))
	}
	require.False(t, q.add(in("a", 3), false), "of one namespace")
	require.True(t, q.add(in("a", 0), false), "what waits already takes no more room")
	require.True(t, q.add(in("b", 0), false))
	require.True(t, q.add(in("c", 0), false))
	require.False(t, q.add(in("d", 0), false), "of all")
	require.NotContains(t, q.lines, verify.Namespace("d"))

	j := following(t, q)
	require.True(t, q.add(in("a", 3), false))
	require.False(t, q.done(j, time.Minute), "a retry takes room too")
}

func TestARetryWaitsForItsPauseAndHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueue(10, 10), time.Now()
		q.add(in("a", 0), true)
		q.add(in("a", 1), false)
		require.True(t, q.done(following(t, q), time.Minute))
		j, ok := q.take(t.Context())
		require.True(t, ok)
		require.Equal(t, in("a", 1), j.target)
		require.Zero(t, time.Since(began))
		require.True(t, q.done(j, 0))
		j, ok = q.take(t.Context())
		require.True(t, ok)
		require.Equal(t, in("a", 0), j.target)
		require.True(t, j.renew)
		require.Equal(t, 1, j.tries)
		require.Equal(t, time.Minute, time.Since(began))

		q.add(in("b", 0), false)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, ok = q.take(ended)
		require.False(t, ok, "the end does not wait for the queue to be empty")
	})
}
