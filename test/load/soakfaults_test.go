//go:build e2e || nightly

package load

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// keysAtMost bounds the keys in Redis. Each team has a key for the evidence about each image and
// one for its verdict, in two lives of its namespace: the next deletion purges the keys of both.
const keysAtMost = teams * (teams + 1) * 2 * 2

// change is what watches tell replicas about one team.
type change struct {
	namespace verify.Namespace
	objects   resource.Objects
}

// apply applies changes to one replica, later than to the other one by up to some milliseconds each.
func apply(ctx context.Context, replica *service.Service, changes <-chan change) {
	for c := range changes {
		pause(ctx, time.Duration(mathrand.IntN(4))*time.Millisecond)
		snapshot, _ := replica.Set().Snapshot().Next(resolve.Group(c.objects).Only(c.namespace), nil)
		replica.Set().Swap(snapshot)
		if len(c.objects.Namespaces) == 0 {
			replica.Forget(c.namespace)
		}
	}
}

// churn changes keys and lives of the second half of the teams, at both replicas.
func (s *soak) churn(ctx context.Context, t *testing.T) {
	stranger, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		t.Error(err)
		return
	}
	var all sync.WaitGroup
	queues := make([]chan change, len(s.replicas))
	for i, replica := range s.replicas {
		queues[i] = make(chan change, 32) // a replica may be behind by so many
		all.Go(func() { apply(ctx, replica, queues[i]) })
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
		for _, queue := range queues {
			queue <- change{team(i), o}
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	all.Wait()
}

// failRegistry lets the registry fail in different ways.
func (s *soak) failRegistry(ctx context.Context) {
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
		pause(ctx, 400*time.Millisecond)
	}
	s.registry.SetIntercept(nil)
}

// failRedis pauses masters in turn, and kills one of the first two every few times, which
// then starts empty. The last one is never killed, so that it shows growth. Between faults
// the breakers close again, so that Redis is used.
func (s *soak) failRedis(ctx context.Context, t *testing.T) {
	for n := 0; ctx.Err() == nil; n++ {
		pause(ctx, 2500*time.Millisecond)
		paused := s.redis.Masters[n%len(s.redis.Masters)]
		if err := paused.Pause(); err != nil {
			t.Error(err)
		}
		pause(ctx, 200*time.Millisecond)
		if err := paused.Resume(); err != nil {
			t.Error(err)
		}
		if n%3 != 1 {
			continue
		}
		killed := s.redis.Masters[n/3%(len(s.redis.Masters)-1)]
		killed.Kill()
		pause(ctx, 100*time.Millisecond)
		if err := killed.Restart(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
			return
		}
	}
}

// watchRedis notes how much all masters hold at most. Those that fail at the moment do not count.
func (s *soak) watchRedis(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond)
		var keys, bytes int64
		for _, master := range s.redis.Masters {
			if k, b, err := held(ctx, master); err == nil {
				keys, bytes = keys+k, bytes+b
			}
		}
		s.keysAtMost.Store(max(keys, s.keysAtMost.Load()))
		s.bytesAtMost.Store(max(bytes, s.bytesAtMost.Load()))
	}
}

// held returns the keys of a master and the bytes that it uses in all.
func held(ctx context.Context, master *cluster.Redis) (keys, bytes int64, err error) {
	client := master.Operator()
	defer func() { _ = client.Close() }() // it was read
	if keys, err = client.DBSize(ctx).Result(); err != nil {
		return 0, 0, fmt.Errorf("count keys: %w", err)
	}
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, 0, fmt.Errorf("ask redis for its memory: %w", err)
	}
	_, rest, _ := strings.Cut(info, "\r\nused_memory:")
	number, _, _ := strings.Cut(rest, "\r\n")
	if bytes, err = strconv.ParseInt(number, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read redis's memory: %w", err)
	}
	return keys, bytes, nil
}

// emptied forgets all teams at both replicas, waits until no key of them is left in Redis, and
// returns the bytes that the master uses that is never killed.
func (s *soak) emptied(t *testing.T) int64 {
	t.Helper()
	var used int64
	suite.Eventually(t, func(ctx context.Context) error {
		for _, replica := range s.replicas {
			for i := range teams {
				replica.Forget(team(i))
			}
		}
		pause(ctx, 500*time.Millisecond)
		for _, master := range s.redis.Masters {
			keys, bytes, err := held(ctx, master)
			if err != nil {
				return err
			}
			if keys > 0 {
				return fmt.Errorf("%d keys are left", keys)
			}
			used = bytes
		}
		return nil
	})
	require.Positive(t, used)
	return used
}
