package service_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// What replicas share is what the policies say. A replica for which an exception has ended
// denies with the very verdict that another has put into Redis while it allowed the image.
func TestNothingOfAnExceptionIsInRedis(t *testing.T) {
	server := miniredis.RunT(t)
	shared := service.Options{Version: "v1", Redis: &service.Redis{Connection: cache.Connection{URL: "redis://" + server.Addr()}, Keys: fixture.NewSealKey()}}
	e, resources := start(t)
	ref, err := image.Parse(e.Registry.Host() + "/shared/app:v1")
	require.NoError(t, err)
	replica := func(until time.Time) *service.Service {
		text := fmt.Sprintf("apiVersion: landwaiter.dev/v1beta1\nkind: ClusterException\nmetadata: {name: x, creationTimestamp: %q}\nspec: {images: "+
			"[%s/shared/app], namespaces: [team-b], until: %q, reason: OPS-1}\n",
			time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), e.Registry.Host(), until.UTC().Format(time.RFC3339))
		require.NoError(t, os.WriteFile(filepath.Join(resources, "exception.yaml"), []byte(text), 0o600))
		s, _, err := service.Load(t.Context(), resources, shared)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	}
	result := replica(time.Now().Add(time.Hour)).Verify(t.Context(), "team-b", ref)
	requireOutcome(t, policy.Allowed, result)
	require.Equal(t, policy.ObjectRef{Kind: "ClusterException", Name: "x"}, result.Exception)
	require.Eventually(t, func() bool { return len(server.Keys()) == 2 }, time.Minute, time.Millisecond)
	pinned := result.Reference
	var second *service.Service
	for deadline := time.Now().Add(time.Minute); ; { // a replica waits for Redis only so long
		second = replica(time.Now().Add(-time.Second))
		result = second.Verify(t.Context(), "team-b", pinned)
		requireOutcome(t, policy.Denied, result)
		if result.Cached {
			break
		}
		require.True(t, time.Now().Before(deadline), "it is the verdict of the other replica")
	}
	require.EqualValues(t, 1, second.RedisStats().Hits.Load())
	require.Zero(t, result.Exception)
	require.NotContains(t, result.Verdict.Reason, "ClusterException x")
}
