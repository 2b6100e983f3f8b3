package page

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func factOf(t *testing.T, age time.Duration, read func(context.Context) (int, error)) *fact[int] {
	t.Helper()
	return &fact[int]{read: read, age: age, now: time.Now, slot: make(chan struct{}, 1), base: t.Context()}
}

func TestAFactIsReadByOneReadingAtATimeAndOnlyOnceItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		f := factOf(t, time.Minute, func(context.Context) (int, error) {
			time.Sleep(time.Second) // of the bubble
			return int(reads.Add(1)), nil
		})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { require.Equal(t, 1, f.get(t.Context(), time.Hour).Value) })
		}
		all.Wait()
		require.EqualValues(t, 1, reads.Load())
		time.Sleep(30 * time.Second)
		require.Equal(t, 1, f.get(t.Context(), time.Hour).Value)
		time.Sleep(time.Minute)
		require.Equal(t, 1, f.get(t.Context(), time.Hour).Value, "what is old is shown while it is read again")
		synctest.Wait()
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, f.get(t.Context(), time.Hour).Value)
		require.EqualValues(t, 2, reads.Load())
	})
}

func TestAViewDoesNotWaitLongForAFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := factOf(t, time.Minute, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		began := time.Now()
		r := f.get(t.Context(), patience)
		require.Equal(t, patience, time.Since(began))
		require.False(t, r.Known)
		require.NoError(t, r.Err)
		time.Sleep(readTime)
		synctest.Wait()
		require.ErrorIs(t, f.get(t.Context(), patience).Err, context.DeadlineExceeded)
	})
}

func TestAfterAnErrorTheLastFactIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := false
		f := factOf(t, time.Minute, func(context.Context) (int, error) {
			if fails {
				return 0, errors.New("down")
			}
			return 7, nil
		})
		require.Equal(t, 7, f.get(t.Context(), time.Hour).Value)
		fails = true
		time.Sleep(2 * time.Minute)
		f.get(t.Context(), time.Hour)
		synctest.Wait()
		r := f.get(t.Context(), time.Hour)
		require.Equal(t, 7, r.Value)
		require.True(t, r.Known)
		require.EqualError(t, r.Err, "down")
		require.Len(t, troubleOf(r), 1)
		require.Contains(t, troubleOf(r)[0], "old")
	})
}

func TestAPanicWhileReadingIsAnError(t *testing.T) {
	f := factOf(t, time.Minute, func(context.Context) (int, error) { panic("a hostile object") })
	require.ErrorContains(t, f.get(t.Context(), time.Hour).Err, "a hostile object")
}

func TestFactsThatAreSlowToReadAreReadRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		f := factOf(t, time.Second, func(context.Context) (int, error) {
			time.Sleep(time.Minute) // of the bubble
			reads++
			return reads, nil
		})
		require.Equal(t, 1, f.get(t.Context(), time.Hour).Value)
		time.Sleep(9 * time.Minute)
		f.get(t.Context(), 0)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, f.get(t.Context(), 0).Value)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 2, f.get(t.Context(), 0).Value)
	})
}
