package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errDown = errors.New("it is down")

// server answers fetches as its state says, and remembers when.
type server struct {
	mu    sync.Mutex
	state string // "down" fails, "panic" panics, all else is the value
	asked []time.Time
}

func (s *server) fetch(context.Context, string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	switch s.state {
	case "down":
		return "", errDown
	case "panic":
		panic("boom")
	}
	return s.state, nil
}

// become sets the state and returns when the server was asked before.
func (s *server) become(state string) (asked []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.asked, s.state = s.asked, nil, state
	return asked
}

// fetched runs a Set that polls.
func fetched(t *testing.T, fetch func(ctx context.Context, key string) (string, error),
	options PollOptions[string, string]) *Set[string, string, Fetched[string]] {
	t.Helper()
	s := New[string](Poll(fetch, time.Now, options), time.Now, Options[Fetched[string]]{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return s
}

func TestRetriesDoubleUpToACapAndStartAgainAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &server{state: "down"}
		s := fetched(t, far.fetch,
			PollOptions[string, string]{FirstRetry: time.Second, LastRetry: 20 * time.Second, Refresh: func(string) time.Duration { return time.Hour }})
		s.Want("a", []string{"key"})
		time.Sleep(2 * time.Minute)
		requirePauses(t, far.become("up"), 1, 2, 4, 8, 16, 20, 20)
		time.Sleep(20 * time.Second)
		require.Len(t, far.become("down"), 1)
		time.Sleep(2 * time.Hour)
		requirePauses(t, far.become("up"), 1, 2, 4)
	})
}

func TestTheLastGoodValueStaysThroughFailures(t *testing.T) {
	for state, says := range map[string]string{"down": errDown.Error(), "panic": "internal error"} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := &server{state: "good"}
				s := fetched(t, far.fetch, PollOptions[string, string]{})
				s.Want("a", []string{"key"})
				synctest.Wait()
				at := time.Now()
				far.become(state)
				time.Sleep(time.Hour)
				got, err := s.Known("key")
				require.NoError(t, err)
				require.Equal(t, "good", got.Value)
				require.Equal(t, at, got.At)
				require.ErrorContains(t, got.Err, says)
				require.Greater(t, len(far.become("better")), 10, "it is tried again")
				time.Sleep(time.Hour)
				got, err = s.Known("key")
				require.NoError(t, err)
				require.Equal(t, "better", got.Value)
				require.NoError(t, got.Err)
				require.WithinDuration(t, time.Now(), got.At, defaultRefresh)
			})
		})
	}
}

func TestAGoodValueIsFetchedAgainShortlyBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &server{state: "good"}
		s := fetched(t, far.fetch, PollOptions[string, string]{Refresh: func(key string) time.Duration { return map[string]time.Duration{"key": time.Hour}[key] }})
		s.Want("a", []string{"key"})
		time.Sleep(24 * time.Hour)
		asked := far.become("good")
		require.GreaterOrEqual(t, len(asked), 24)
		for i := range len(asked) - 1 {
			pause := asked[i+1].Sub(asked[i])
			require.LessOrEqual(t, pause, time.Hour)
			require.GreaterOrEqual(t, pause, 54*time.Minute)
		}
	})
}

func TestSlowServersOfOneOwnerHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := map[string]int{}, map[string]int{}
		count := func(owner string, more int) {
			mu.Lock()
			defer mu.Unlock()
			running[owner] += more
			most[owner] = max(most[owner], running[owner])
		}
		s := fetched(t, func(ctx context.Context, key string) (string, error) {
			owner := key[:1]
			count(owner, 1)
			defer count(owner, -1)
			if owner == "a" {
				time.Sleep(time.Hour)
			}
			return key, ctx.Err()
		}, PollOptions[string, string]{MaxFetches: 3, Owner: func(key string) string { return key[:1] }})
		s.Want("a", []string{"a1", "a2", "a3", "a4", "a5"})
		synctest.Wait()
		s.Want("b", []string{"b1", "b2", "b3"})
		began := time.Now()
		s.Await(t.Context(), "b1", "b2", "b3")
		require.Zero(t, time.Since(began))
		s.Await(t.Context(), "a1", "a2", "a3", "a4", "a5") // every turn comes
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 2, most["a"])
	})
}

func TestAFetchThatHangsKeepsItsPlaceHoweverOftenTheOwnerChangesItsMind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hanging atomic.Int32
		end := make(chan struct{})
		s := fetched(t, func(_ context.Context, key string) (string, error) {
			if key[:1] == "a" { // a library that ignores its context
				hanging.Add(1)
				<-end
			}
			return key, nil
		}, PollOptions[string, string]{MaxFetches: 4, Owner: func(key string) string { return key[:1] }})
		for i := range 40 {
			s.Want("a", []string{fmt.Sprintf("a%d", 2*i), fmt.Sprintf("a%d", 2*i+1)})
			synctest.Wait()
		}
		require.EqualValues(t, 2, hanging.Load())
		s.Want("b", []string{"b1", "b2"})
		began := time.Now()
		s.Await(t.Context(), "b1", "b2")
		require.Zero(t, time.Since(began))
		close(end)
		s.Await(t.Context(), "a78", "a79")
		got, err := s.Known("a79")
		require.NoError(t, err)
		require.Equal(t, "a79", got.Value)
		require.EqualValues(t, 4, hanging.Load(), "what nobody wanted any more was not fetched")
	})
}

func TestWhatAllShareWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		s := fetched(t, func(ctx context.Context, key string) (string, error) {
			if key == "shared" {
				return key, nil
			}
			running.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		}, PollOptions[string, string]{MaxFetches: 3, Owner: func(key string) string { return key }, Apart: func(owner string) bool { return owner == "shared" }})
		s.Want("a", numbered(10)) // ten owners whose fetches hang
		synctest.Wait()
		require.EqualValues(t, 3, running.Load())
		s.Want("b", []string{"shared"})
		began := time.Now()
		s.Await(t.Context(), "shared")
		require.Zero(t, time.Since(began))
	})
}

func TestThePanicOfALibraryIsNotRepeated(t *testing.T) {
	require.EqualError(t, internal("what a server sent"), "internal error")
	defer func() { require.ErrorContains(t, internal(recover()), "index out of range") }()
	_ = numbered(1)[1]
}
