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
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
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

// soak lets everything go on at once: verification in many namespaces, changes of their
// resources, namespaces that come and go, a registry and a Redis that fail.
type soak struct {
	registry *fixture.Registry
	redis    *cluster.Redis
	service  *service.Service
	keys     []*fixture.CosignKey // of each team
	images   []fixture.Image      // signed by the team of the same number
	unsigned fixture.Image

	verdicts [3]atomic.Int64
	wrong    atomic.Pointer[string]
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{}
	var err error
	s.registry, err = fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.registry.Close()) })
	s.redis, err = cluster.StartRedis(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { s.redis.Kill() })
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
	s.connect(t)
	return s
}

func (s *soak) connect(t *testing.T) {
	t.Helper()
	connection := &service.Redis{Connection: cache.Connection{URL: s.redis.URL}, Keys: fixture.NewSealKey()}
	var err error
	s.service, err = service.New(service.Options{Version: "soak", CacheBytes: 1 << 20, Redis: connection, Registry: registry.Options{RequestTimeout: time.Second},
		Engine: verify.Options{PassTTL: 500 * time.Millisecond, DenyTTL: 100 * time.Millisecond, WorkTimeout: 2 * time.Second}}, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.service.Close)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.service.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
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
	require.Empty(t, s.service.Apply(t.Context(), o))
}

// ask verifies an image and notes a verdict that can only be wrong. The first half
// of the teams never changes: their own image is never denied. No team is ever
// allowed what its key did not sign.
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
	result := s.service.Verify(limited, team(i), img.Reference)
	s.verdicts[result.Verdict.Outcome()].Add(1)
	switch outcome := result.Verdict.Outcome(); {
	case outcome == policy.Allowed && !own, outcome == policy.Denied && own && i < teams/2:
		text := fmt.Sprintf("%s is %s in %s: %s", img.Reference, outcome, team(i), result.Verdict.Reason)
		s.wrong.CompareAndSwap(nil, &text)
	}
}

// churn changes keys and lives of the second half of the teams.
func (s *soak) churn(ctx context.Context, t *testing.T) {
	stranger, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		t.Error(err)
		return
	}
	for life := 1; ctx.Err() == nil; life++ {
		i := teams/2 + life%(teams/2)
		key, o := s.keys[i], resource.Objects{}
		if life%3 == 0 {
			key = stranger
		}
		if life%7 != 0 { // else the namespace is gone
			o = s.resources(i, key, life/50)
		}
		snapshot, _ := s.service.Set().Snapshot().With(team(i), resolve.Group(o), nil)
		s.service.Set().Swap(snapshot)
		if len(o.Namespaces) == 0 {
			s.service.Forget(team(i))
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// faults lets the registry fail and Redis stop, die and come back.
func (s *soak) faults(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		var kind atomic.Int64
		kind.Store(int64(n % 4))
		s.registry.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
			switch fail := mathrand.IntN(5) == 0; {
			case !fail || kind.Load() == 0:
			case kind.Load() == 1:
				w.WriteHeader(http.StatusInternalServerError)
				return true
			case kind.Load() == 2:
				panic(http.ErrAbortHandler)
			case kind.Load() == 3:
				pause(r.Context(), 50*time.Millisecond)
			}
			return false
		})
		pause(ctx, 300*time.Millisecond)
		switch n % 3 {
		case 0:
			if err := s.redis.Pause(); err != nil {
				t.Error(err)
			}
			pause(ctx, 200*time.Millisecond)
			if err := s.redis.Resume(); err != nil {
				t.Error(err)
			}
		case 1:
			s.redis.Kill()
			pause(ctx, 100*time.Millisecond)
			if err := s.redis.Restart(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
				return
			}
		}
	}
	s.registry.SetIntercept(nil)
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
		s.service.Close()
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
	all.Go(func() { s.faults(ctx, t) })
	all.Wait()
	if wrong := s.wrong.Load(); wrong != nil {
		t.Fatal(*wrong)
	}
}

func TestNothingGoesWrongAndNothingGrows(t *testing.T) {
	d := length(t, 5*time.Second)
	s := newSoak(t)
	s.begin(t)
	s.run(t, d/5) // pools and caches fill
	goroutines, before := s.settled(t, 0), memory.InUse()
	s.run(t, d*4/5)
	left := s.settled(t, goroutines+spare)
	after := memory.InUse()
	t.Logf("%d allowed, %d denied, %d undecided; %d then %d goroutines, %d then %d MiB", s.verdicts[policy.Allowed].Load(), s.verdicts[policy.Denied].Load(),
		s.verdicts[policy.Undecided].Load(), goroutines, left, before>>20, after>>20)
	require.Less(t, after, before+8<<20)
	for outcome := range s.verdicts {
		require.Positive(t, s.verdicts[outcome].Load(), policy.Outcome(outcome))
	}
	// Quiet again, everything is as it should be.
	s.begin(t)
	for i := range teams {
		suite.Eventually(t, func(ctx context.Context) error {
			if verdict := s.service.Verify(ctx, team(i), s.images[i].Reference).Verdict; verdict.Outcome() != policy.Allowed {
				return errors.New(verdict.Reason)
			}
			return nil
		})
		require.Equal(t, policy.Denied, s.service.Verify(t.Context(), team(i), s.unsigned.Reference).Verdict.Outcome())
	}
}
