//go:build e2e || nightly

package load

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"runtime"
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
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	teams = 20
	// spare is what the count of goroutines may differ by: a timer of a library's own.
	spare = 3
	// heapSpare is what the heap may differ by: caches and pools that the first part of a short run
	// did not fill. A connection to Redis has 64 KiB of buffers, and pools grow with processors
	// unless they are told not to.
	heapSpare = 12 << 20
	poolSize  = "&pool_size=8"
)

// length is LANDWAITER_SOAK, which make nightly and make soak set, or short.
func length(t *testing.T, short time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("LANDWAITER_SOAK")
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// soak runs everything at once on two replicas that share a Redis Cluster: verification in
// many namespaces, changes of their resources, namespaces that come and go, a registry and
// masters of Redis that fail.
type soak struct {
	registry *fixture.Registry
	redis    *cluster.RedisCluster
	replicas []*service.Service
	keys     []*fixture.CosignKey // of each team
	images   []fixture.Image      // signed by the team of the same number
	unsigned fixture.Image

	verdicts [3]atomic.Int64
	wrong    atomic.Pointer[string]

	keysAtMost, bytesAtMost atomic.Int64 // in all masters together
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{}
	var err error
	s.registry, err = fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.registry.Close()) })
	s.redis, err = cluster.StartRedisCluster(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.redis.Kill)
	for i := range teams {
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
		img, err := s.registry.PushImage(t.Context(), fmt.Sprintf("team-%d/app", i), "v1")
		require.NoError(t, err)
		_, err = s.registry.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
		require.NoError(t, err)
		s.keys, s.images = append(s.keys, key), append(s.images, img)
	}
	s.unsigned, err = s.registry.PushImage(t.Context(), "shared/unsigned", "v1")
	require.NoError(t, err)
	seal := fixture.NewSealKey()
	for range 2 {
		s.replicas = append(s.replicas, s.replica(t, seal))
	}
	return s
}

func (s *soak) replica(t *testing.T, seal []byte) *service.Service {
	t.Helper()
	connection := &service.Redis{Connection: cache.Connection{URL: s.redis.URL + poolSize, Mode: "cluster"}, Keys: seal}
	replica, err := service.New(service.Options{Version: "soak", CacheBytes: 1 << 20, Redis: connection, Registry: registry.Options{RequestTimeout: time.Second},
		Engine: verify.Options{PassTTL: 500 * time.Millisecond, DenyTTL: 100 * time.Millisecond, WorkTimeout: 2 * time.Second}}, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(replica.Close)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return replica
}

// resources are those of one team, with a key and in one life of its namespace.
func (s *soak) resources(i int, key *fixture.CosignKey, life int) resource.Objects {
	return resource.Objects{
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: string(team(i)), UID: types.UID(fmt.Sprint(life))}}},
		Resources:  own(team(i), string(key.PEM)),
	}
}

// begin puts all teams in force.
func (s *soak) begin(t *testing.T) {
	t.Helper()
	o := resource.Objects{Resources: []v1beta1.Object{clusterStore(s.registry.Host())}}
	for i := range teams {
		own := s.resources(i, s.keys[i], 0)
		o.Namespaces, o.Resources = append(o.Namespaces, own.Namespaces...), append(o.Resources, own.Resources...)
	}
	for _, replica := range s.replicas {
		require.Empty(t, replica.Apply(t.Context(), o))
	}
}

// ask verifies an image at one replica and notes a verdict that can only be wrong, even at
// a replica that has not got the last change yet. The first half of the teams never changes:
// their own image is never denied. No key of a team, old or new, signed another team's image
// or the unsigned one: they are never allowed.
func (s *soak) ask(ctx context.Context) {
	i, j := mathrand.IntN(teams), mathrand.IntN(teams+1)
	if mathrand.IntN(2) == 0 {
		j = i
	}
	img, own := s.unsigned, false
	if j < teams {
		img, own = s.images[j], i == j
	}
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	result := s.replicas[mathrand.IntN(len(s.replicas))].Verify(limited, team(i), img.Reference)
	s.verdicts[result.Verdict.Outcome()].Add(1)
	switch outcome := result.Verdict.Outcome(); {
	case outcome == policy.Allowed && !own, outcome == policy.Denied && own && i < teams/2:
		text := fmt.Sprintf("%s is %s in %s: %s", img.Reference, outcome, team(i), result.Verdict.Reason)
		s.wrong.CompareAndSwap(nil, &text)
	}
}

// settled returns how many goroutines there are once nothing is asked: late work
// has ended, and the connections that the pools keep are closed, of which there are
// as many as the last fault left (each has two goroutines here, and one in the
// registry). With a limit it fails if they do not become that few, and else it
// waits until their number stands still.
func (s *soak) settled(t *testing.T, limit int) int {
	t.Helper()
	number, still := 0, 0
	for deadline := time.Now().Add(suite.Patience); ; {
		for _, replica := range s.replicas {
			replica.Close()
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // nothing here replaces it
		pause(t.Context(), 50*time.Millisecond)
		now := runtime.NumGoroutine()
		if still++; now != number {
			number, still = now, 0
		}
		switch {
		case limit > 0 && number <= limit, limit == 0 && still >= 60:
			return number
		case time.Now().After(deadline):
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, not %d:\n%s", number, limit, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// run lets everything go on for a time.
func (s *soak) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				s.ask(t.Context())
			}
		})
	}
	all.Go(func() { s.churn(ctx, t) })
	all.Go(func() { s.failRegistry(ctx) })
	all.Go(func() { s.failRedis(ctx, t) })
	all.Go(func() { s.watchRedis(ctx) })
	all.Wait()
	if wrong := s.wrong.Load(); wrong != nil {
		t.Fatal(*wrong)
	}
}

func TestNothingGoesWrongAndNothingGrows(t *testing.T) {
	d := length(t, 10*time.Second)
	s := newSoak(t)
	s.begin(t)
	s.run(t, d/5) // pools and caches fill
	emptied := s.emptied(t)
	goroutines, before := s.settled(t, 0), memory.InUse()
	s.run(t, d*4/5)
	emptiedAgain := s.emptied(t)
	left := s.settled(t, goroutines+spare)
	after := memory.InUse()
	t.Logf("%d allowed, %d denied, %d undecided; %d then %d goroutines, %d then %d MiB; in Redis %d keys and %d KiB at most, %d then %d KiB without keys",
		s.verdicts[policy.Allowed].Load(), s.verdicts[policy.Denied].Load(), s.verdicts[policy.Undecided].Load(), goroutines, left, before>>20, after>>20,
		s.keysAtMost.Load(), s.bytesAtMost.Load()>>10, emptied>>10, emptiedAgain>>10)
	require.Less(t, after, before+heapSpare)
	require.Less(t, emptiedAgain, emptied+2<<20)
	require.Less(t, s.keysAtMost.Load(), int64(keysAtMost))
	for outcome := range s.verdicts {
		require.Positive(t, s.verdicts[outcome].Load(), policy.Outcome(outcome))
	}
	for i, replica := range s.replicas {
		stats := replica.RedisStats()
		t.Logf("replica %d: %d hits, %d misses, %d failures, %d skipped, %d dropped", i, stats.Hits.Load(), stats.Misses.Load(), stats.Failures.Load(),
			stats.Skipped.Load(), stats.Dropped.Load())
		require.Zero(t, stats.Unopened.Load(), "replicas read each other's values")
	}
	s.quiet(t)
}

// quiet checks that everything is as it should be once nothing fails or changes.
func (s *soak) quiet(t *testing.T) {
	t.Helper()
	s.begin(t)
	for _, replica := range s.replicas {
		for i := range teams {
			suite.Eventually(t, func(ctx context.Context) error {
				if verdict := replica.Verify(ctx, team(i), s.images[i].Reference).Verdict; verdict.Outcome() != policy.Allowed {
					return errors.New(verdict.Reason)
				}
				return nil
			})
			require.Equal(t, policy.Denied, replica.Verify(t.Context(), team(i), s.unsigned.Reference).Verdict.Outcome())
		}
		suite.Eventually(t, func(ctx context.Context) error {
			s.ask(ctx)
			if replica.RedisStats().Hits.Load() == 0 {
				return errors.New("a replica has found nothing in Redis")
			}
			return nil
		})
	}
	if wrong := s.wrong.Load(); wrong != nil {
		t.Fatal(*wrong)
	}
}
