package load

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/edge"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// BenchmarkRedisWarm finds verdicts in Redis alone: memory has room for none.
// round-trips are those to Redis for one image.
func BenchmarkRedisWarm(b *testing.B) {
	server := miniredis.RunT(b)
	options := warm()
	options.CacheBytes, options.Redis = 1, &service.Redis{Connection: cache.Connection{URL: "redis://" + server.Addr() + "/0"}, Keys: fixture.NewSealKey()}
	e := newEnvironment(b, options, 1)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	b.Cleanup(func() { stop(); require.NoError(b, <-ended) })
	e.allowed(b, team(0))
	require.Eventually(b, func() bool { return len(server.Keys()) == 2 }, time.Minute, time.Millisecond)
	asked, before, n := e.registry.Count(), e.RedisStats().RoundTrips.Load(), 0
	for b.Loop() {
		e.allowed(b, team(0))
		n++
	}
	require.LessOrEqual(b, e.registry.Count()-asked, n, "a read that was late is worked out again")
	b.ReportMetric(float64(e.RedisStats().RoundTrips.Load()-before)/float64(n), "round-trips")
}

// counting counts what is verified.
type counting struct {
	*environment
	verified atomic.Int64
}

func (c *counting) Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result {
	c.verified.Add(1)
	return c.environment.Verify(ctx, namespace, ref)
}

// BenchmarkManyKeys asks with one request for 512 keys of 32 images, all cold.
// verifications are those of one request.
func BenchmarkManyKeys(b *testing.B) {
	const keys, images = 512, 32
	c := &counting{environment: newEnvironment(b, cold(), images)}
	list := make([]string, keys)
	for i := range list {
		list[i] = "[" + string(team(i%images)) + "]" + c.image.String()
	}
	manyKeys := &asked{edge.Start(b, c, provider.Options{}), request(b, list...)}
	n := 0
	for b.Loop() {
		manyKeys.ask(b)
		n++
	}
	b.ReportMetric(float64(c.verified.Load())/float64(n), "verifications")
}
