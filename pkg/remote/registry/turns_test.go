package registry

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// await waits until n requests of an account are waiting.
func (t *turns) await(tt *testing.T, account verify.Account, n int) {
	tt.Helper()
	require.Eventually(tt, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return len(t.waiting[account]) == n
	}, 10*time.Second, time.Millisecond)
}

func TestAccountsTakeTurns(t *testing.T) {
	line := newTurns(2)
	require.NoError(t, line.acquire(t.Context(), "a"))
	var mu sync.Mutex
	var served []verify.Account
	var all sync.WaitGroup
	enter := func(account verify.Account, n int) {
		all.Go(func() {
			if line.acquire(t.Context(), account) == nil {
				mu.Lock()
				served = append(served, account)
				mu.Unlock()
			}
		})
		line.await(t, account, n)
	}
	for i := range 5 {
		enter("a", i+1)
	}
	// Half of the capacity is for others, although five of a are waiting.
	require.NoError(t, line.acquire(t.Context(), "b"))
	for i := range 3 {
		enter("b", i+1)
	}
	enter("c", 1)
	release := func(account verify.Account, n int) {
		line.release(account)
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(served) == n }, time.Minute, time.Millisecond)
	}
	release("b", 1) // a has its half, so it is b's turn, which waited before c
	release("a", 2)
	release("b", 3)
	mu.Lock()
	require.Equal(t, []verify.Account{"b", "a", "c"}, served)
	mu.Unlock()
	holders := []verify.Account{"a", "c"}
	for n := 4; n <= 7; n++ {
		release(holders[0], n)
		mu.Lock()
		holders = append(holders[1:], served[n-1])
		mu.Unlock()
	}
	require.Equal(t, []verify.Account{"b", "a"}, holders)
	// Only a is waiting, and has its half: what b releases stays free.
	release("a", 8)
	release("a", 9)
	all.Wait()
	for _, account := range holders {
		line.release(account)
	}
	require.Equal(t, 2, line.free)
	require.Empty(t, line.waiting)
	require.Empty(t, line.order)
}

func TestACancelledRequestTakesNoCapacity(t *testing.T) {
	line := newTurns(1)
	require.NoError(t, line.acquire(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- line.acquire(ctx, "a") }()
	line.await(t, "a", 1)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	line.release("a")
	require.Equal(t, 1, line.free)
	require.Empty(t, line.held)
	require.Empty(t, line.order)
}

func TestTheQueueOfAnAccountIsBounded(t *testing.T) {
	line := newTurns(1)
	line.longest = 2
	require.NoError(t, line.acquire(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2 {
		go func() { _ = line.acquire(ctx, "a") }()
		line.await(t, "a", i+1)
	}
	require.ErrorIs(t, line.acquire(ctx, "a"), errOverloaded)
}

func TestCapacityIsConserved(t *testing.T) {
	line := newTurns(4)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			account := verify.Account(string(rune('a' + i%7)))
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*100*time.Microsecond)
				if line.acquire(ctx, account) == nil {
					line.release(account)
				}
				cancel()
			}
		})
	}
	all.Wait()
	require.Equal(t, 4, line.free)
	require.Empty(t, line.held)
	require.Empty(t, line.waiting)
	require.Empty(t, line.order)
}
