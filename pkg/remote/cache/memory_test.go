package cache_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

// clock is a clock that tests advance.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(c.offset.Load()))
}

func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

func key(namespace verify.Namespace, image string) verify.Key {
	return verify.Key{Namespace: namespace, Kind: verify.KindVerdict, UID: "u", Generation: "g", Image: image}
}

func allowed(reason string) verify.Entry {
	return verify.Entry{Verdict: judged.As(policy.Allowed, policy.Verdict{Reason: reason})}
}

func TestMemoryAnswersOnlyForTheWholeKey(t *testing.T) {
	c := &clock{}
	m, err := cache.NewMemory(1<<20, c.now)
	require.NoError(t, err)
	full := key("team-a", "r.example.com/app@sha256:1")
	m.Put(t.Context(), full, allowed("yes"), time.Minute)
	entry, ok := m.Get(t.Context(), full)
	require.True(t, ok)
	require.Equal(t, "yes", entry.Verdict.Reason)
	for name, other := range map[string]verify.Key{
		"namespace":  {Namespace: "team-b", Kind: full.Kind, UID: full.UID, Generation: full.Generation, Image: full.Image},
		"cluster":    {Kind: full.Kind, UID: full.UID, Generation: full.Generation, Image: full.Image},
		"kind":       {Namespace: full.Namespace, Kind: verify.KindTag, UID: full.UID, Generation: full.Generation, Image: full.Image},
		"uid":        {Namespace: full.Namespace, Kind: full.Kind, UID: "v", Generation: full.Generation, Image: full.Image},
		"generation": {Namespace: full.Namespace, Kind: full.Kind, UID: full.UID, Generation: "h", Image: full.Image},
		"image":      {Namespace: full.Namespace, Kind: full.Kind, UID: full.UID, Generation: full.Generation, Image: "r.example.com/app@sha256:2"},
	} {
		entry, ok := m.Get(t.Context(), other)
		require.False(t, ok, name)
		require.Equal(t, policy.Denied, entry.Verdict.Outcome(), "a miss is no pass")
	}
}

func TestMemoryEntriesExpire(t *testing.T) {
	c := &clock{}
	m, err := cache.NewMemory(1<<20, c.now)
	require.NoError(t, err)
	m.Put(t.Context(), key("a", "i"), allowed("yes"), time.Minute)
	c.advance(time.Minute - time.Nanosecond)
	_, ok := m.Get(t.Context(), key("a", "i"))
	require.True(t, ok)
	c.advance(time.Nanosecond)
	_, ok = m.Get(t.Context(), key("a", "i"))
	require.False(t, ok)
	for _, ttl := range []time.Duration{0, -time.Second} {
		m.Put(t.Context(), key("a", "j"), allowed("yes"), ttl)
		_, ok = m.Get(t.Context(), key("a", "j"))
		require.False(t, ok)
	}
}

func TestMemoryStaysWithinItsSize(t *testing.T) {
	c := &clock{}
	const size = 1 << 20
	m, err := cache.NewMemory(size, c.now)
	require.NoError(t, err)
	long := strings.Repeat("x", 10_000)
	for i := range 2_000 {
		m.Put(t.Context(), key("a", fmt.Sprint(i)), allowed(long), time.Hour)
	}
	require.Eventually(t, func() bool {
		kept := 0
		for i := range 2_000 {
			if _, ok := m.Get(t.Context(), key("a", fmt.Sprint(i))); ok {
				kept++
			}
		}
		return kept <= size/10_000
	}, time.Minute, 10*time.Millisecond)
	_, err = cache.NewMemory(0, c.now)
	require.ErrorContains(t, err, "at least 1 byte")
}

func BenchmarkMemoryGetParallel(b *testing.B) {
	m, err := cache.NewMemory(1<<24, time.Now)
	require.NoError(b, err)
	const images = 1_000
	keys := make([]verify.Key, images)
	for i := range keys {
		keys[i] = key(verify.Namespace(fmt.Sprintf("team-%d", i%100)), fmt.Sprintf("r.example.com/app-%d@sha256:1", i))
		m.Put(b.Context(), keys[i], allowed("yes"), time.Hour)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			m.Get(b.Context(), keys[i%images])
		}
	})
}

func TestMemoryForgetsANamespaceAndNoOther(t *testing.T) {
	c := &clock{}
	m, err := cache.NewMemory(1<<20, c.now)
	require.NoError(t, err)
	for _, namespace := range []verify.Namespace{"team-a", "team-b", verify.Cluster} {
		for i := range 10 {
			m.Put(t.Context(), key(namespace, fmt.Sprint(i)), allowed("yes"), time.Minute)
		}
	}
	m.Forget("team-a")
	for namespace, want := range map[verify.Namespace]bool{"team-a": false, "team-b": true, verify.Cluster: true} {
		for i := range 10 {
			_, ok := m.Get(t.Context(), key(namespace, fmt.Sprint(i)))
			require.Equal(t, want, ok, namespace)
		}
	}
}

func TestAnAccountIsBoundedByItsShare(t *testing.T) {
	c := &clock{}
	const size = 1 << 20
	m, err := cache.NewMemory(size, c.now)
	require.NoError(t, err)
	for i := range 50 {
		m.Put(t.Context(), key("quiet", fmt.Sprint(i)), allowed("yes"), time.Hour)
	}
	large := strings.Repeat("x", 1000)
	for i := range 5000 {
		m.Put(t.Context(), key("flood", fmt.Sprint(i)), allowed(large), time.Hour)
	}
	kept := func(namespace verify.Namespace, n int) int {
		found := 0
		for i := range n {
			if _, ok := m.Get(t.Context(), key(namespace, fmt.Sprint(i))); ok {
				found++
			}
		}
		return found
	}
	require.Equal(t, 50, kept("quiet", 50), "others keep what they have")
	flood := kept("flood", 5000)
	require.LessOrEqual(t, flood*1500, size/8)
	require.Greater(t, flood, 50)
	_, newest := m.Get(t.Context(), key("flood", "4999"))
	require.True(t, newest, "the oldest make room")
	m.Put(t.Context(), key("huge", "1"), allowed(strings.Repeat("x", size/4)), time.Hour)
	require.Zero(t, kept("huge", 2))
	m.Forget("flood")
	require.Zero(t, kept("flood", 5000))
	for i := range 60 {
		m.Put(t.Context(), key("flood", "again"), allowed(large+fmt.Sprint(i)), time.Hour)
	}
	entry, ok := m.Get(t.Context(), key("flood", "again"))
	require.True(t, ok)
	require.Equal(t, large+"59", entry.Verdict.Reason)
}

// BenchmarkMemoryParallel reads from all processors at once; compare with -cpu 1.
func BenchmarkMemoryParallel(b *testing.B) {
	m, err := cache.NewMemory(1<<26, time.Now)
	require.NoError(b, err)
	keys := make([]verify.Key, 1024)
	for i := range keys {
		keys[i] = key(verify.Namespace(fmt.Sprintf("team-%d", i%100)), fmt.Sprint(i))
		m.Put(b.Context(), keys[i], allowed("yes"), time.Hour)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			if _, ok := m.Get(b.Context(), keys[i%len(keys)]); !ok {
				b.Fatal("missing")
			}
			i++
		}
	})
}

func TestAnAccountMayHaveAnotherShare(t *testing.T) {
	c := &clock{}
	const size = 1 << 20
	m, err := cache.NewMemory(size, c.now)
	require.NoError(t, err)
	percent := map[verify.Namespace]int{"more": 25, "less": 1}
	m.Shares(func(n verify.Namespace) cache.Share { return cache.Share{Percent: percent[n]} })
	kept := map[verify.Namespace]int{}
	for _, n := range []verify.Namespace{"more", "less", "usual"} {
		for i := range 1000 {
			m.Put(t.Context(), key(n, fmt.Sprint(i)), allowed(strings.Repeat("x", 1000)), time.Hour)
		}
		for i := range 1000 {
			if _, ok := m.Recall(key(n, fmt.Sprint(i))); ok {
				kept[n]++
			}
		}
	}
	require.InDelta(t, 2, float64(kept["more"])/float64(kept["usual"]), 0.1)
	require.InDelta(t, 12.5, float64(kept["usual"])/float64(kept["less"]), 2.5)
}

func TestNamespacesOfOneAccountShareItsPartOfTheMemory(t *testing.T) {
	c := &clock{}
	const size = 1 << 20
	m, err := cache.NewMemory(size, c.now)
	require.NoError(t, err)
	accounts := map[verify.Namespace]verify.Account{"a": "shared", "b": "shared"}
	m.Shares(func(n verify.Namespace) cache.Share { return cache.Share{Account: accounts[n]} })
	fill := func(n verify.Namespace) {
		for i := range 1000 {
			m.Put(t.Context(), key(n, fmt.Sprint(i)), allowed(strings.Repeat("x", 1000)), time.Hour)
		}
	}
	kept := func(n verify.Namespace) int {
		found := 0
		for i := range 1000 {
			if _, ok := m.Recall(key(n, fmt.Sprint(i))); ok {
				found++
			}
		}
		return found
	}
	fill("a")
	alone := kept("a")
	require.Positive(t, alone)
	fill("c")
	fill("d")
	require.Equal(t, []int{alone, alone, alone}, []int{kept("a"), kept("c"), kept("d")}, "without an account each has its own share")
	fill("b")
	require.Equal(t, []int{0, alone, alone}, []int{kept("a"), kept("b"), kept("c")}, "b has taken the room of a")

	// Entries of a namespace that moves to another account are charged there once
	// they are written again.
	accounts["b"] = "other"
	fill("b")
	fill("a")
	require.Equal(t, []int{alone, alone}, []int{kept("a"), kept("b")})
}
