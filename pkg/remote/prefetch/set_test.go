package prefetch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// source follows keys as a test says: what put gives is reported.
type source struct {
	mu      sync.Mutex
	reports map[string]func(string) // of keys that are followed now
	started map[string]int
}

func (s *source) follow(ctx context.Context, key string, report func(string)) {
	s.mu.Lock()
	s.reports[key] = report
	s.started[key]++
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.reports, key)
	s.mu.Unlock()
}

func (s *source) put(key, value string) {
	s.mu.Lock()
	report := s.reports[key]
	s.mu.Unlock()
	report(value)
}

func (s *source) followed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.reports))
}

// world is a running Set with its source and who was notified.
type world struct {
	*Set[string, string, string]
	source *source

	mu   sync.Mutex
	told []string
}

func (w *world) notified() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := slices.Sorted(slices.Values(w.told))
	w.told = nil
	return told
}

// run starts a Set in the bubble of t.
func run(t *testing.T, follow Follow[string, string], options Options[string]) *world {
	t.Helper()
	w := &world{source: &source{reports: map[string]func(string){}, started: map[string]int{}}}
	if follow == nil {
		follow = w.source.follow
	}
	w.Set = New[string](follow, time.Now, options)
	w.Notify(func(owner string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, owner)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return w
}

func numbered(count int) (keys []string) {
	for i := range count {
		keys = append(keys, fmt.Sprintf("%03d", i))
	}
	return keys
}

func TestReportsWhatIsKnownAndNotifiesOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{})
		_, err := w.Known("key")
		require.ErrorIs(t, err, ErrNotWanted)
		require.Equal(t, defaultFirstWait, w.Want("a", []string{"key"}))
		synctest.Wait()
		_, err = w.Known("key")
		require.ErrorIs(t, err, ErrPending)
		w.source.put("key", "first")
		value, err := w.Known("key")
		require.NoError(t, err)
		require.Equal(t, "first", value)
		require.Zero(t, w.Want("a", []string{"key"}))
		require.Equal(t, []string{"a"}, w.notified())
		w.source.put("key", "second")
		require.Equal(t, []string{"a"}, w.notified())
	})
}

func TestWaitsForTheFirstAnswerUpToADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{FirstWait: 3 * time.Second})
		require.Equal(t, 3*time.Second, w.Want("a", []string{"slow"}))
		time.Sleep(time.Second)
		require.Equal(t, 2*time.Second, w.Want("a", []string{"slow"}))
		require.Equal(t, 3*time.Second, w.Want("a", []string{"slow", "new"}))
		time.Sleep(3 * time.Second)
		require.Zero(t, w.Want("a", []string{"slow", "new"}))
		_, err := w.Known("slow")
		require.ErrorIs(t, err, ErrPending, "the deadline makes no value")
	})
}

func TestAValueThatIsNoAnswerDoesNotEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{Answers: func(value string) bool { return value != "down" }})
		w.Want("a", []string{"key"})
		synctest.Wait()
		w.source.put("key", "down")
		require.Positive(t, w.Want("a", []string{"key"}))
		value, err := w.Known("key")
		require.NoError(t, err)
		require.Equal(t, "down", value)
		w.source.put("key", "up")
		require.Zero(t, w.Want("a", []string{"key"}))
		w.source.put("key", "down")
		require.Zero(t, w.Want("a", []string{"key"}), "there was a first answer")
	})
}

func TestOwnersAreNotifiedOfNewsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{News: func(told, value string) bool { return told != value }})
		w.Want("a", []string{"key"})
		synctest.Wait()
		for _, c := range []struct {
			value string
			told  []string
		}{{"", []string{"a"}}, {"", nil}, {"x", []string{"a"}}, {"x", nil}, {"", []string{"a"}}} {
			w.source.put("key", c.value)
			require.Equal(t, c.told, w.notified(), "%q", c.value)
		}
	})
}

func TestKeysPastAnOwnersLimitAreAnErrorOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{MaxKeys: 3})
		keys := numbered(5)
		w.Want("a", append([]string{keys[0]}, keys...)) // one is named twice
		w.Want("b", []string{"other"})
		for i, key := range keys {
			_, err := w.Known(key)
			if i < 3 {
				require.ErrorIs(t, err, ErrPending)
				continue
			}
			require.ErrorIs(t, err, ErrNotWanted)
		}
		_, err := w.Known("other")
		require.ErrorIs(t, err, ErrPending, "another owner has a limit of its own")
		synctest.Wait()
		require.Len(t, w.source.followed(), 4)
	})
}

func TestOwnersThatWantAnEqualKeyShareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{})
		w.Want("a", []string{"key"})
		w.Want("b", []string{"key"})
		synctest.Wait()
		require.Equal(t, 1, w.source.started["key"])
		w.source.put("key", "x")
		require.Equal(t, []string{"a", "b"}, w.notified())
		w.Want("a", nil)
		synctest.Wait()
		require.Equal(t, []string{"key"}, w.source.followed(), "b still wants it")
		w.source.put("key", "y")
		require.Equal(t, []string{"b"}, w.notified())
		w.Want("b", nil)
		synctest.Wait()
		require.Empty(t, w.source.followed())
	})
}

func TestKeysThatNameTheirOwnerAreNotShared(t *testing.T) {
	type owned struct{ owner, name string }
	synctest.Test(t, func(t *testing.T) {
		followed := make(chan owned, 10)
		s := New[string](func(ctx context.Context, key owned, _ func(string)) {
			followed <- key
			<-ctx.Done()
		}, time.Now, Options[string]{})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		s.Want("a", []owned{{"a", "key"}})
		s.Want("b", []owned{{"b", "key"}})
		synctest.Wait()
		require.Len(t, followed, 2)
		cancel()
	})
}

func TestTheFollowOfADroppedKeyEnds(t *testing.T) {
	for name, drop := range map[string]func(w *world){
		"no longer wanted": func(w *world) { w.Want("a", []string{"kept"}) },
		"its owner is gone": func(w *world) {
			w.Want("b", []string{"kept"})
			w.KeepOnly(map[string][]string{"b": nil})
		},
		"dropped by its name": func(w *world) { w.Drop(func(key string) bool { return key == "dropped" }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := run(t, nil, Options[string]{})
				w.Want("a", []string{"kept", "dropped"})
				synctest.Wait()
				w.source.mu.Lock()
				late := w.source.reports["dropped"]
				w.source.mu.Unlock()
				awaited := make(chan struct{})
				go func() { w.Await(t.Context(), "dropped"); close(awaited) }()
				synctest.Wait()
				drop(w)
				<-awaited
				late("late")
				synctest.Wait()
				require.Equal(t, []string{"kept"}, w.source.followed())
				require.Equal(t, []string{"kept"}, w.Keys())
				_, err := w.Known("dropped")
				require.ErrorIs(t, err, ErrNotWanted)
				require.Empty(t, w.notified())
				require.Len(t, w.shares, 1)
			})
		})
	}
}

func TestKeysWantedBeforeRunAreFollowedOnceItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New[string](func(_ context.Context, key string, report func(string)) { report(key + "!") }, time.Now, Options[string]{})
		require.Positive(t, s.Want("a", []string{"key"}))
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		s.Await(t.Context(), "key", "not wanted")
		value, err := s.Known("key")
		require.NoError(t, err)
		require.Equal(t, "key!", value)
		cancel()
		synctest.Wait()
		s.Want("a", []string{"late"})
		_, err = s.Known("late")
		require.ErrorIs(t, err, ErrPending, "nothing runs any more")
	})
}

func TestAFollowThatPanicsIsAnErrorAndStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := &server{state: "panic"}
		w := run(t, func(ctx context.Context, key string, report func(string)) {
			value, _ := far.fetch(ctx, key)
			report(value)
			<-ctx.Done()
		}, Options[string]{})
		w.Want("a", []string{"key"})
		synctest.Wait()
		_, err := w.Known("key")
		require.ErrorContains(t, err, "internal error")
		require.Zero(t, w.Want("a", []string{"key"}), "waiting would not help")
		require.Equal(t, []string{"a"}, w.notified())
		time.Sleep(5 * time.Minute)
		require.Empty(t, w.notified(), "the same again is no news")
		requirePauses(t, far.become("works"), 1, 2, 4, 8, 16, 32, 60, 60)
		time.Sleep(2 * time.Minute)
		value, err := w.Known("key")
		require.NoError(t, err)
		require.Equal(t, "works", value)
		require.Equal(t, []string{"a"}, w.notified())
	})
}

// requirePauses compares the first pauses between times, in seconds.
func requirePauses(t *testing.T, times []time.Time, want ...int) {
	t.Helper()
	var pauses []int
	for i := range want {
		pauses = append(pauses, int(times[i+1].Sub(times[i])/time.Second))
	}
	require.Equal(t, want, pauses)
}

func TestNobodyWaitsForANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, func(ctx context.Context, _ string, _ func(string)) { <-ctx.Done() }, Options[string]{MaxPending: 2})
		began := time.Now()
		w.Want("a", []string{"x"})
		require.NoError(t, w.Add("a", "y"))
		require.ErrorIs(t, w.Add("a", "z"), ErrBusy)
		require.NoError(t, w.Add("b", "z"), "of another owner")
		require.NoError(t, w.Add("a", "y"), "it is wanted already")
		_, err := w.Known("x")
		require.ErrorIs(t, err, ErrPending)
		w.KeepOnly(nil)
		require.Zero(t, time.Since(began))
		w.Want("a", []string{"x"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.Await(ctx, "x") // ends with ctx
		require.Equal(t, time.Minute, time.Since(began))
	})
}
