package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// crowd is a registry that takes 20 ms for an answer, with images that two
// namespaces verify, each time cold.
type crowd struct {
	service *service.Service
	refs    []image.Reference
}

func newCrowd(b *testing.B, objects func(host, key string, teams int) resource.Objects, teams int) *crowd {
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
	c.service = newService(b, service.Options{Cache: noCache{}}, objects(r.Host(), string(key.PEM), teams))
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
		result := c.service.Verify(b.Context(), namespace, c.refs[i%len(c.refs)])
		took[i] = time.Since(began)
		require.Equal(b, policy.Allowed, result.Verdict.Outcome(), result.Verdict.Reason)
	}
	slices.Sort(took)
	return took[n*99/100]
}

// BenchmarkFlood measures a namespace that verifies one image after another, while
// it is alone and while another one has 50 cold images under way all the time. The
// figure to reach is a ratio of 2 at most.
func BenchmarkFlood(b *testing.B) {
	c := newCrowd(b, resources, 2)
	c.flooded(b, team(0), []verify.Namespace{team(1)}, 50)
}

// BenchmarkFloodOfATenant is the same for a Tenant's home namespace, while 50 namespaces of another
// Tenant have 4 cold images under way each.
func BenchmarkFloodOfATenant(b *testing.B) {
	const namespaces = 50
	c := newCrowd(b, func(host, key string, _ int) resource.Objects {
		o := resources(host, key, 2) // the two home namespaces
		mine, theirs := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: string(team(0))}},
			&v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: string(team(1)), NamespacePrefix: "flood-"}}
		mine.Name, theirs.Name = "mine", "theirs"
		o.Resources = append(o.Resources, mine, theirs)
		for i := range namespaces {
			o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("flood-%d", i), UID: types.UID(fmt.Sprint(i))}})
		}
		return o
	}, 0)
	flood := make([]verify.Namespace, namespaces)
	for i := range flood {
		flood[i] = verify.Namespace(fmt.Sprintf("flood-%d", i))
		require.Equal(b, verify.TenantAccount("theirs"), c.service.Account(flood[i]))
	}
	c.flooded(b, team(0), flood, 4)
}

// flooded measures a namespace while it is alone, and while others have so many images
// under way each.
func (c *crowd) flooded(b *testing.B, namespace verify.Namespace, others []verify.Namespace, each int) {
	b.Helper()
	const n = 200
	c.p99(b, namespace, 20) // connections are made
	var quiet, flooded time.Duration
	asked, refused := &atomic.Int64{}, &atomic.Int64{}
	for b.Loop() {
		quiet = c.p99(b, namespace, n)
		ctx, stop := context.WithCancel(b.Context())
		var flood sync.WaitGroup
		for i := range len(others) * each {
			flood.Go(func() {
				for at := i; ctx.Err() == nil; at += len(others) * each {
					asked.Add(1)
					if c.service.Verify(ctx, others[i%len(others)], c.refs[at%len(c.refs)]).Overloaded {
						refused.Add(1)
						pause(ctx, 5*time.Millisecond) // a refusal is sent and read
					}
				}
			})
		}
		flooded = c.p99(b, namespace, n)
		stop()
		flood.Wait()
	}
	b.ReportMetric(float64(quiet.Microseconds())/1000, "ms-quiet-p99")
	b.ReportMetric(float64(flooded.Microseconds())/1000, "ms-flooded-p99")
	b.ReportMetric(float64(flooded)/float64(quiet), "ratio")
	b.ReportMetric(float64(refused.Load())/float64(asked.Load()), "refused")
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
