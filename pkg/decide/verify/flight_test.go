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

// However many accounts take all that they can get, there is capacity for a new one, and
// nobody has more than its limit.
func TestANewAccountAlwaysFindsCapacity(t *testing.T) {
	for _, flooding := range []int{1, 2, 4, 16, 100} {
		e := NewEngine(none{}, time.Now, Options{InFlight: 512, InFlightPerAccount: 128})
		held := map[Account]int{}
		for range 512 {
			for i := range flooding {
				if account := Account(fmt.Sprint(i)); e.begin(&Config{Account: account}, mode{}) == nil {
					held[account]++
				}
			}
		}
		for account, n := range held {
			require.LessOrEqual(t, n, 128, account)
		}
		require.Len(t, held, flooding)
		require.NoError(t, e.begin(&Config{Account: "new"}, mode{}), "%d flood", flooding)
	}
}

func TestAQuotaReplacesTheLimitOfAnAccount(t *testing.T) {
	e := NewEngine(none{}, time.Now, Options{InFlight: 512, InFlightPerAccount: 2})
	more, less := &Config{Namespace: "more", Limits: Limits{InFlight: 3}}, &Config{Namespace: "less", Limits: Limits{InFlight: 1}}
	for range 3 {
		require.NoError(t, e.begin(more, mode{}))
	}
	require.ErrorIs(t, e.begin(more, mode{}), errOverloaded)
	require.NoError(t, e.begin(less, mode{}))
	require.ErrorIs(t, e.begin(less, mode{}), errOverloaded)
	e.limit.Return(less.account(), 1)
	require.NoError(t, e.begin(less, mode{}))
}
