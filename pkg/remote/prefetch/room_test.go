package prefetch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAddDropsTheKeyThatWasUsedLeastRecently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{MaxKeys: 3})
		add := func(owner, key string) {
			require.NoError(t, w.Add(owner, key))
			synctest.Wait()
			w.source.put(key, key)
			time.Sleep(time.Second)
		}
		add("b", "other")
		for _, key := range []string{"1", "2", "3", "1", "4"} {
			add("a", key)
		}
		require.Equal(t, []string{"1", "3", "4", "other"}, slices.Sorted(slices.Values(w.Keys())))
	})
}

func TestKeysThatNobodyUsesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{Idle: 24 * time.Hour})
		require.NoError(t, w.Add("a", "used"))
		require.NoError(t, w.Add("a", "idle"))
		for range 26 {
			time.Sleep(time.Hour)
			require.NoError(t, w.Add("a", "used"))
		}
		require.Equal(t, []string{"used"}, w.Keys())
		synctest.Wait()
		require.Equal(t, []string{"used"}, w.source.followed())
	})
}

func TestBytesAreBoundedPerOwnerAndInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own, total = 16, 100
		w := run(t, nil, Options[string]{Size: func(value string) int { return len(value) }, MaxBytes: own, MaxBytesTotal: total})
		check := func() {
			sum, owned := 0, map[string]int{}
			for key, e := range w.entries {
				value, err := w.Known(key)
				require.NoError(t, err)
				sum += len(value)
				for owner := range e.owners {
					owned[owner] += len(value)
				}
			}
			require.Equal(t, sum, w.bytes)
			require.LessOrEqual(t, sum, total)
			for owner, s := range w.shares {
				require.Equal(t, owned[owner], s.bytes, owner)
				require.True(t, s.bytes <= own || len(s.keys) == 1, owner)
			}
		}
		for i := range 30 {
			for _, owner := range []string{"a", fmt.Sprintf("owner-%d", i)} {
				key := fmt.Sprintf("%s/%d", owner, i)
				require.NoError(t, w.Add(owner, key))
				synctest.Wait()
				w.source.put(key, "seven..")
				time.Sleep(time.Second)
				check()
			}
		}
		w.KeepOnly(map[string][]string{"a": nil, "owner-29": nil})
		check()
		require.NoError(t, w.Add("b", "large"))
		synctest.Wait()
		w.source.put("large", string(make([]byte, own+1)))
		check()
		require.Contains(t, w.Keys(), "large", "the newest value stays")
		w.source.put("large", "small")
		check()
		w.Want("c", []string{"large"})
		check()
		w.Want("b", nil)
		check()
		w.KeepOnly(nil)
		require.Zero(t, w.bytes)
		require.Empty(t, w.shares)
	})
}

func TestRoomIsMadeByTheLargestOwnerAndOfEqualOnesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := run(t, nil, Options[string]{Size: func(value string) int { return len(value) }, MaxBytesTotal: 10})
		put := func(owner, key, value string) {
			require.NoError(t, w.Add(owner, key))
			synctest.Wait()
			w.source.put(key, value)
			time.Sleep(time.Second)
		}
		for i := range 5 {
			put(fmt.Sprint(i), fmt.Sprint(i), "xx")
		}
		put("5", "5", "xx")
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, slices.Sorted(slices.Values(w.Keys())))
		put("4", "4b", "xx")
		require.Equal(t, []string{"1", "2", "3", "4b", "5"}, slices.Sorted(slices.Values(w.Keys())))
	})
}
