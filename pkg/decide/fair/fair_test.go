package fair_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
)

func TestAFloodingAccountLeavesRoomForOthers(t *testing.T) {
	gate := fair.NewGate[string](100)
	flood := 0
	for gate.Take("flood", 1, 0) {
		flood++
	}
	require.Equal(t, 50, flood, "alone it gets half")
	require.True(t, gate.Take("quiet", 1, 0))
	require.True(t, gate.Take("quiet", 20, 0))
	require.False(t, gate.Take("flood", 1, 0))
	require.False(t, gate.Take("huge", 30, 0), "nobody gets more than is left")

	gate.Return("flood", 50)
	require.False(t, gate.Take("flood", 5, 4), "its own limit holds too")
	require.True(t, gate.Take("flood", 4, 4))
}

// The end of what is read is nothing that was read.
func TestNothingIsNeverRefused(t *testing.T) {
	g := fair.NewGate[string](10)
	require.True(t, g.Take("a", 5, 0))
	require.False(t, g.Take("a", 1, 0))
	require.True(t, g.Take("a", 0, 0))
	require.True(t, g.Take("a", 0, 1))
	require.True(t, g.Take("b", 5, 0))
	require.True(t, g.Take("b", 0, 0), "with nothing left")
	require.True(t, g.TakeSpare("b", 0, 1))
	require.False(t, g.Take("b", -1, 0))
	require.False(t, g.TakeSpare("b", -1, 0))
}

func TestReturningMoreThanWasTakenGivesNothing(t *testing.T) {
	gate := fair.NewGate[string](10)
	require.True(t, gate.Take("a", 5, 0))
	gate.Return("a", 50)
	gate.Return("a", -50)
	require.True(t, gate.Take("a", 10, 0))
	require.False(t, gate.Take("b", 1, 0))
	require.False(t, gate.Take("b", -1, 0), "a negative size would enlarge what is left")
}

func TestAHoldIsReleasedAsAWhole(t *testing.T) {
	gate := fair.NewGate[string](10)
	hold := gate.Hold("a")
	require.True(t, hold.Take(2))
	require.True(t, hold.Take(3))
	require.False(t, hold.Take(3), "others find room")
	require.False(t, gate.Take("b", 6, 0))
	hold.Release()
	hold.Release()
	require.True(t, gate.Take("b", 10, 0))
	require.False(t, hold.Take(1))
	gate.Return("b", 10)
	require.True(t, hold.Take(1), "it can be used again")
	hold.Release()
	require.True(t, gate.Take("b", 10, 0))
}

func TestSpareCapacityIsLessThanHalf(t *testing.T) {
	gate := fair.NewGate[string](8)
	for range 4 {
		require.True(t, gate.TakeSpare("a", 1, 0))
	}
	require.False(t, gate.TakeSpare("b", 1, 0))
	gate.Return("a", 3)
	require.True(t, gate.TakeSpare("b", 1, 2))
	require.False(t, gate.TakeSpare("b", 1, 2), "half of its own limit is taken")
}

func TestAnIdleAccountWaitsForOneTurnOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fair.NewTurns[string](1, time.Now)
		var all sync.WaitGroup
		work := func(account string, done func()) {
			all.Go(func() {
				turn, err := turns.Take(t.Context(), account)
				require.NoError(t, err)
				time.Sleep(100 * time.Millisecond) // virtual time
				turn.Leave()
				done()
			})
		}
		for range 50 {
			work("flood", func() {})
		}
		synctest.Wait()
		time.Sleep(350 * time.Millisecond)
		began := time.Now()
		var took time.Duration
		work("quiet", func() { took = time.Since(began) })
		all.Wait()
		require.LessOrEqual(t, took, 200*time.Millisecond, "the rest of one turn of the flood, and its own")
	})
}

func TestAccountsThatAllFloodGetEqualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fair.NewTurns[string](2, time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var mu sync.Mutex
		used := map[string]time.Duration{}
		var all sync.WaitGroup
		// Turns of one account are ten times as long, and of another ten times as many.
		for account, kind := range map[string]struct {
			turn    time.Duration
			workers int
		}{"long": {100 * time.Millisecond, 4}, "many": {10 * time.Millisecond, 40}, "plain": {10 * time.Millisecond, 4}} {
			for range kind.workers {
				all.Go(func() {
					for {
						turn, err := turns.Take(ctx, account)
						if err != nil {
							return
						}
						time.Sleep(kind.turn)
						turn.Leave()
						mu.Lock()
						used[account] += kind.turn
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		for account, time := range used {
			require.InDelta(t, 20.0/3, time.Seconds(), 0.5, account)
		}
	})
}

func TestATurnIsLeftWhileItsOwnerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fair.NewTurns[string](1, time.Now)
		turn, err := turns.Take(t.Context(), "a")
		require.NoError(t, err)
		require.Nil(t, turns.Try("b"))
		turn.Leave()
		turn.Leave() // leaving twice frees one place
		other := turns.Try("b")
		require.NotNil(t, other)
		require.Nil(t, turns.Try("c"))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, turn.Enter(ctx), context.DeadlineExceeded)
		turn.Leave() // it is not held
		require.Nil(t, turns.Try("c"))
		other.Leave()
		require.NoError(t, turn.Enter(t.Context()))
		require.Nil(t, turns.Try("c"))
		turn.Leave()
		require.NotNil(t, turns.Try("c"))
	})
}

func TestLongWorkYieldsBetweenItsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := fair.NewTurns[string](1, time.Now)
		var none *fair.Turn[string]
		require.NoError(t, none.Yield(t.Context()))
		var all sync.WaitGroup
		all.Go(func() {
			turn, err := turns.Take(t.Context(), "long")
			require.NoError(t, err)
			defer turn.Leave()
			for range 100 {
				time.Sleep(10 * time.Millisecond)
				require.NoError(t, turn.Yield(t.Context()))
			}
		})
		synctest.Wait()
		began := time.Now()
		turn, err := turns.Take(t.Context(), "quiet")
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), 10*time.Millisecond, "one step")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, turn.Yield(ctx), context.DeadlineExceeded)
		turn.Leave()
		all.Wait()
	})
}

func TestShortTurnsThatFollowOnEachOtherLetOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns := fair.NewTurns[string](1, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	taken := 0 // in a turn
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for {
				turn, err := turns.Take(ctx, "flood")
				if err != nil {
					return
				}
				taken++
				for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
				}
				turn.Leave()
			}
		})
	}
	var between []int
	for range 101 {
		turn, err := turns.Take(t.Context(), "quiet")
		require.NoError(t, err)
		before := taken
		turn.Leave()
		runtime.Gosched()
		turn, err = turns.Take(t.Context(), "quiet")
		require.NoError(t, err)
		between = append(between, taken-before)
		turn.Leave()
	}
	cancel()
	all.Wait()
	slices.Sort(between)
	require.Less(t, between[len(between)/2], 200, "a millisecond has 50 turns")
}

func TestAnEndedContextTakesNoTurn(t *testing.T) {
	turns := fair.NewTurns[string](1, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := turns.Take(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, turns.Try("a"))
}

func TestEveryPlaceIsGivenBackByThousandsOfAccounts(t *testing.T) {
	turns := fair.NewTurns[string](4, time.Now)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 250 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%50)*time.Microsecond)
				turn, err := turns.Take(ctx, fmt.Sprint(worker, i))
				cancel()
				if err == nil {
					turn.Leave()
				}
			}
		})
	}
	all.Wait()
	var held []*fair.Turn[string]
	for range 4 {
		turn := turns.Try("last")
		require.NotNil(t, turn, "every place was given back")
		held = append(held, turn)
	}
	require.Nil(t, turns.Try("last"))
	for _, turn := range held {
		turn.Leave()
	}
}

// A processor that is never idle looks at its connections once in ten milliseconds, in which this clock passes thousands
// of quanta.
func TestWorkThatYieldsLetsARequestThatArrivedRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var clock time.Time
	turns := fair.NewTurns[string](1, func() time.Time {
		clock = clock.Add(time.Millisecond)
		return clock
	})
	connection, client, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(connection.Close(), client.Close())) }()
	turn, err := turns.Take(t.Context(), "flood")
	require.NoError(t, err)
	defer turn.Leave()
	for range 10 {
		var read atomic.Bool
		go func() {
			_, _ = connection.Read(make([]byte, 1))
			read.Store(true)
		}()
		require.NoError(t, turn.Yield(t.Context())) // it waits now
		_, err = client.Write([]byte{0})
		require.NoError(t, err)
		yields := 0
		for ; !read.Load(); yields++ {
			require.NoError(t, turn.Yield(t.Context()))
		}
		require.LessOrEqual(t, yields, 3)
	}
}
