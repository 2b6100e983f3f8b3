package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// BenchmarkRedisWarm finds verdicts in Redis alone: memory has room for none.
// round-trips are those to Redis for one image.
func BenchmarkRedisWarm(b *testing.B) {
	seal, err := cache.ParseSeal(fixture.NewSealKey())
	require.NoError(b, err)
	server := miniredis.RunT(b)
	client, err := cache.Connect(cache.Connection{URL: "redis://" + server.Addr() + "/0"})
	require.NoError(b, err)
	redis := cache.NewRedis(client, seal, "bench", time.Now)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- redis.Run(ctx) }()
	b.Cleanup(func() { stop(); require.NoError(b, <-ended) })
	full, err := cache.NewMemory(1, time.Now)
	require.NoError(b, err)
	w := newWorld(b, cache.Tiers{Memory: full, Redis: redis}, 1)
	w.allowed(b, team(0))
	require.Eventually(b, func() bool { return len(server.Keys()) == 1 }, 10*time.Second, time.Millisecond)
	asked, before, n := w.registry.Count(), redis.Stats.RoundTrips.Load(), 0
	for b.Loop() {
		w.allowed(b, team(0))
		n++
	}
	require.LessOrEqual(b, w.registry.Count()-asked, n, "a read that was late is worked out anew")
	b.ReportMetric(float64(redis.Stats.RoundTrips.Load()-before)/float64(n), "round-trips")
}

// counting counts what is verified.
type counting struct {
	*world
	verified atomic.Int64
}

func (c *counting) Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	c.verified.Add(1)
	return c.world.Verify(ctx, namespace, ref)
}

// BenchmarkManyKeys asks with one request for 512 keys of 32 images, all cold.
// verifications are those of one request.
func BenchmarkManyKeys(b *testing.B) {
	const keys, images = 512, 32
	c := &counting{world: newWorld(b, noCache{}, images)}
	list := make([]string, keys)
	for i := range list {
		list[i] = "[" + string(team(i%images)) + "]" + c.image.String()
	}
	e := &asked{gatekeeper.Start(b, c, provider.Options{}), request(b, list...)}
	n := 0
	for b.Loop() {
		e.ask(b)
		n++
	}
	b.ReportMetric(float64(c.verified.Load())/float64(n), "verifications")
}
