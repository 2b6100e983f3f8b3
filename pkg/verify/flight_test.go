package verify

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An admission that has joined low-priority work is not refused with it.
func TestARefusedRefreshRefusesNoAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, key, refuse := NewEngine(none{}, time.Now, Options{}), Key{Namespace: "team-a", Image: "app"}, make(chan struct{})
		e.flights.DoChan(key.String(), func() (any, error) { <-refuse; return Entry{}, fmt.Errorf("app: %w", errLowPriority) })
		admitted, ahead := make(chan error, 1), make(chan error, 1)
		work := func(context.Context) (Entry, time.Duration, error) { return Entry{}, 0, nil }
		ask := func(how mode, answer chan error) {
			_, err := e.once(t.Context(), &Config{Namespace: "team-a"}, key, how, work)
			answer <- err
		}
		go ask(mode{}, admitted)
		go ask(mode{lowPriority: true}, ahead)
		synctest.Wait()
		close(refuse)
		require.NoError(t, <-admitted)
		require.ErrorIs(t, <-ahead, errOverloaded)
	})
}

// none is a cache that keeps nothing.
type none struct{}

func (none) Get(context.Context, Key) (Entry, bool)         { return Entry{}, false }
func (none) Recall(Key) (Entry, bool)                       { return Entry{}, false }
func (none) Put(context.Context, Key, Entry, time.Duration) {}

// However many accounts take all that they can get, there is capacity for a new one.
func TestANewAccountAlwaysFindsCapacity(t *testing.T) {
	for _, flooding := range []int{1, 2, 4, 16, 100} {
		l := newLimiter(512, 128)
		held := map[Account]int{}
		for range 512 {
			for i := range flooding {
				if account := Account(fmt.Sprint(i)); l.acquire(account, 0) == nil {
					held[account]++
				}
			}
		}
		for account, n := range held {
			require.LessOrEqual(t, n, 128, account)
		}
		require.Len(t, held, flooding)
		require.NoError(t, l.acquire("new", 0), "%d flood", flooding)
		l.release("new")
		for account, n := range held {
			for range n {
				l.release(account)
			}
		}
		require.Zero(t, l.inFlight)
		require.Empty(t, l.inFlightOf)
	}
	given := newLimiter(512, 2)
	for range 3 {
		require.NoError(t, given.acquire("more", 3))
	}
	require.ErrorIs(t, given.acquire("more", 3), errOverloaded)
	require.NoError(t, given.acquire("less", 1))
	require.ErrorIs(t, given.acquire("less", 1), errOverloaded)
	full := newLimiter(2, 2)
	require.NoError(t, full.acquire("a", 0))
	require.ErrorIs(t, full.acquire("a", 0), errOverloaded, "the last one is for another")
	require.NoError(t, full.acquire("b", 0))
	require.ErrorIs(t, full.acquire("c", 0), errOverloaded)
}
