package fair

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// robin is round robin, of which no account has more than half.
type robin struct {
	*Turns[string]

	mu   sync.Mutex
	held map[string][]*Turn[string]
}

func newRobin(total, queue int) *robin {
	return &robin{Turns: RoundRobin[string](Limits{Total: total, Each: total / 2, Queue: queue}), held: map[string][]*Turn[string]{}}
}

func (r *robin) acquire(ctx context.Context, account string) error {
	turn, err := r.Take(ctx, account)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held[account] = append(r.held[account], turn)
	}
	return err
}

// release leaves some turn of an account.
func (r *robin) release(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[account][0].Leave()
	r.held[account] = r.held[account][1:]
}

// await waits until n turns of an account are waiting.
func await(t *testing.T, turns *Turns[string], account string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		u := turns.users[account]
		return u != nil && len(u.queue) == n
	}, 10*time.Second, time.Millisecond)
}

// requireIdle requires that every place is free, and that nobody is remembered.
func requireIdle(t *testing.T, turns *Turns[string]) {
	t.Helper()
	require.Equal(t, turns.limits.Total, turns.free)
	require.Empty(t, turns.users)
	require.Empty(t, turns.waiting)
}

func TestAccountsTakeTurns(t *testing.T) {
	line := newRobin(2, Unbounded)
	require.NoError(t, line.acquire(t.Context(), "a"))
	var mu sync.Mutex
	var served []string
	var all sync.WaitGroup
	enter := func(account string, n int) {
		all.Go(func() {
			if line.acquire(t.Context(), account) == nil {
				mu.Lock()
				served = append(served, account)
				mu.Unlock()
			}
		})
		await(t, line.Turns, account, n)
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
	release := func(account string, n int) {
		line.release(account)
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(served) == n }, time.Minute, time.Millisecond)
	}
	release("b", 1) // a has its half, so it is b's turn, which waited before c
	release("a", 2)
	release("b", 3)
	mu.Lock()
	require.Equal(t, []string{"b", "a", "c"}, served)
	mu.Unlock()
	holders := []string{"a", "c"}
	for n := 4; n <= 7; n++ {
		release(holders[0], n)
		mu.Lock()
		holders = append(holders[1:], served[n-1])
		mu.Unlock()
	}
	require.Equal(t, []string{"b", "a"}, holders)
	// Only a is waiting, and has its half: what b releases stays free.
	release("a", 8)
	release("a", 9)
	all.Wait()
	for _, account := range holders {
		line.release(account)
	}
	requireIdle(t, line.Turns)
}

func TestACancelledRequestTakesNoCapacity(t *testing.T) {
	line := newRobin(1, Unbounded)
	require.NoError(t, line.acquire(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- line.acquire(ctx, "a") }()
	await(t, line.Turns, "a", 1)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	line.release("a")
	requireIdle(t, line.Turns)
}

func TestTheQueueOfAnAccountIsBounded(t *testing.T) {
	line := newRobin(1, 2)
	require.NoError(t, line.acquire(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 2 {
		go func() { _ = line.acquire(ctx, "a") }()
		await(t, line.Turns, "a", i+1)
	}
	require.ErrorIs(t, line.acquire(ctx, "a"), ErrQueueFull)
}

func TestWithoutAQueueNobodyWaitsAndNobodyIsRemembered(t *testing.T) {
	turns := RoundRobin[string](Limits{})
	held := turns.Try("a")
	require.Nil(t, turns.Try("b"))
	_, err := turns.Take(t.Context(), "b")
	require.ErrorIs(t, err, ErrQueueFull)
	require.Zero(t, held.Used(), "no time is measured")
	held.Leave()
	requireIdle(t, turns)
}

func TestAnAccountThatHasItsShareFindsNoFreeTurn(t *testing.T) {
	turns := RoundRobin[string](Limits{Total: 4, Each: 2})
	require.NotNil(t, turns.Try("a"))
	require.NotNil(t, turns.Try("a"))
	require.Nil(t, turns.Try("a"))
	require.NotNil(t, turns.Try("b"))
}

func TestCapacityIsConserved(t *testing.T) {
	line := newRobin(4, Unbounded)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			account := string(rune('a' + i%7))
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
	requireIdle(t, line.Turns)
}
