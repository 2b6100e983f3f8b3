package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

func TestMemoryCountsLookupsByKind(t *testing.T) {
	c := &clock{}
	m, err := cache.NewMemory(1<<20, c.now)
	require.NoError(t, err)
	verdict := key("team-a", "r.example.com/app@sha256:1")
	tag := verdict
	tag.Kind = verify.KindTag
	m.Recall(verdict)
	require.Zero(t, m.Stats(verify.KindVerdict).Misses.Load(), "whoever misses asks again, and waits")
	m.Get(t.Context(), verdict)
	m.Put(t.Context(), verdict, allowed("yes"), time.Minute)
	m.Get(t.Context(), verdict)
	m.Recall(verdict)
	m.Get(t.Context(), tag)
	c.advance(time.Hour)
	m.Get(t.Context(), verdict)
	verdicts, tags := m.Stats(verify.KindVerdict), m.Stats(verify.KindTag)
	require.EqualValues(t, 2, verdicts.Hits.Load())
	require.EqualValues(t, 2, verdicts.Misses.Load(), "an expired entry is a miss")
	require.Zero(t, tags.Hits.Load())
	require.EqualValues(t, 1, tags.Misses.Load())
}

func TestMemoryCountsWhatItKeepsAndWhyEntriesGo(t *testing.T) {
	c := &clock{}
	m, err := cache.NewMemory(64<<10, c.now)
	require.NoError(t, err)
	s := m.Stats(verify.KindVerdict)
	put := func(namespace string, n int) {
		m.Put(t.Context(), key(verify.Namespace(namespace), fmt.Sprint(n)), allowed(strings.Repeat("x", 200)), time.Minute)
	}
	put("team-a", 0)
	one := s.Bytes.Load()
	require.Greater(t, one, int64(200))
	put("team-a", 0)
	require.Equal(t, one, s.Bytes.Load(), "a replaced entry counts once")
	require.EqualValues(t, 1, s.Entries.Load())
	for n := range 50 {
		put("team-a", n)
	}
	require.Positive(t, s.OverShare.Load())
	require.Zero(t, s.Overflowed.Load(), "one quota owner never fills the memory")
	for n := range 500 {
		put(fmt.Sprint("team-", n), n)
	}
	require.Eventually(t, func() bool { return s.Overflowed.Load() > 0 && s.Bytes.Load() <= m.Size() }, time.Minute, time.Millisecond)
	for n := range 500 {
		m.Forget(verify.Namespace(fmt.Sprint("team-", n)))
	}
	m.Forget("team-a")
	require.Eventually(t, func() bool { return s.Entries.Load() == 0 && s.Bytes.Load() == 0 }, time.Minute, time.Millisecond)
}
