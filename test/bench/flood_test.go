package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// crowd is a registry that takes 20 ms for an answer, with images that two
// namespaces verify, each time cold.
type crowd struct {
	desk *tenant.Desk
	refs []image.Reference
}

func newCrowd(b *testing.B) *crowd {
	b.Helper()
	r, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	c := &crowd{}
	for i := range 400 {
		img, err := r.PushImage(b.Context(), "shared/app", fmt.Sprintf("v%d", i))
		require.NoError(b, err)
		_, err = r.SignCosign(b.Context(), img, key, fixture.CosignOptions{})
		require.NoError(b, err)
		img.Reference.Tag = ""
		c.refs = append(c.refs, img.Reference)
	}
	client := registry.NewClient(registry.Options{})
	b.Cleanup(client.Close)
	set := &tenant.Set{}
	snapshot, problems := compile.New(resources(r.Host(), string(key.PEM), 2), nil, compile.Outside{Registry: client.For})
	require.Empty(b, problems)
	set.Swap(snapshot)
	c.desk = tenant.NewDesk(set, verify.NewEngine(noCache{}, time.Now, verify.Options{}), nil)
	r.SetLatency(20 * time.Millisecond)
	return c
}

// p99 verifies images of one namespace one after another and returns how long
// 99 of 100 take at most.
func (c *crowd) p99(b *testing.B, namespace verify.Namespace, n int) time.Duration {
	b.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		result := c.desk.Verify(b.Context(), namespace, c.refs[i%len(c.refs)])
		took[i] = time.Since(began)
		require.Equal(b, policy.Allowed, result.Verdict.Outcome, result.Verdict.Reason)
	}
	slices.Sort(took)
	return took[n*99/100]
}

// BenchmarkFlood measures a namespace that verifies one image after another, while
// it is alone and while another one has 50 cold images under way all the time. The
// figure to reach is a ratio of 2 at most.
func BenchmarkFlood(b *testing.B) {
	c := newCrowd(b)
	const n = 200
	c.p99(b, team(0), 20) // connections are made
	var quiet, flooded time.Duration
	for b.Loop() {
		quiet = c.p99(b, team(0), n)
		ctx, stop := context.WithCancel(b.Context())
		var flood sync.WaitGroup
		for i := range 50 {
			flood.Go(func() {
				for at := i; ctx.Err() == nil; at += 50 {
					c.desk.Verify(ctx, team(1), c.refs[at%len(c.refs)])
				}
			})
		}
		flooded = c.p99(b, team(0), n)
		stop()
		flood.Wait()
	}
	b.ReportMetric(float64(quiet.Microseconds())/1000, "ms-quiet-p99")
	b.ReportMetric(float64(flooded.Microseconds())/1000, "ms-flooded-p99")
	b.ReportMetric(float64(flooded)/float64(quiet), "ratio")
}
