package service_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func start(t *testing.T) (e *example.Example, resources string) {
	t.Helper()
	resources = filepath.Join(t.TempDir(), "resources")
	e, err := example.Start(t.Context(), resources)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Registry.Close()) })
	return e, resources
}

// load returns a service over the example's resources, and its image signed by team-a.
func load(t *testing.T, options service.Options) (*service.Service, image.Reference) {
	t.Helper()
	e, resources := start(t)
	s, loaded, err := service.Load(t.Context(), resources, options)
	require.NoError(t, err)
	require.Empty(t, loaded.Problems)
	t.Cleanup(s.Close)
	ref, err := image.Parse(e.Registry.Host() + "/shared/app:v1")
	require.NoError(t, err)
	return s, ref
}

func requireOutcome(t *testing.T, want policy.Outcome, result verify.Result) {
	t.Helper()
	require.Equal(t, want.String(), result.Verdict.Outcome().String(), result.Verdict.Reason)
}

func TestEverythingIsUndecidedBeforeResourcesAreInForce(t *testing.T) {
	s, err := service.New(service.Options{}, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ref, err := image.Parse("registry.example.com/app:v1")
	require.NoError(t, err)
	require.Error(t, s.Set().Ready())
	requireOutcome(t, policy.Undecided, s.Verify(t.Context(), "team-a", ref))
	s.Apply(t.Context(), resource.Objects{})
	require.NoError(t, s.Set().Ready())
	requireOutcome(t, policy.Denied, s.Verify(t.Context(), "team-a", ref))
}

func TestOptionsThatCannotBeUsedAreRefused(t *testing.T) {
	connection := cache.Connection{URL: "redis://127.0.0.1:1"}
	for says, options := range map[string]service.Options{
		"egress hosts":           {EgressHosts: []string{"*.example.com"}},
		"at least 1 byte":        {CacheBytes: -1},
		"not 32 bytes in base64": {Redis: &service.Redis{Connection: connection, Keys: []byte("short")}},
		"cannot be read":         {Redis: &service.Redis{Connection: cache.Connection{URL: "http://x"}, Keys: fixture.NewSealKey()}},
		// Without a key, who can write to Redis could allow images.
		"key": {Redis: &service.Redis{Connection: connection}},
	} {
		_, err := service.New(options, service.AnyNamespace{})
		require.ErrorContains(t, err, says)
	}
}

func TestLoadVerifiesByTheResourcesOfADirectory(t *testing.T) {
	s, ref := load(t, service.Options{})
	requireOutcome(t, policy.Allowed, s.Verify(t.Context(), "team-a", ref))
	requireOutcome(t, policy.Denied, s.Verify(t.Context(), "team-b", ref))
	_, _, err := service.Load(t.Context(), filepath.Join(t.TempDir(), "none"), service.Options{})
	require.Error(t, err)
}

func TestForgetDropsTheVerdictsOfANamespaceAndNoOther(t *testing.T) {
	s, ref := load(t, service.Options{})
	for _, namespace := range []verify.Namespace{"team-a", "team-b"} {
		s.Verify(t.Context(), namespace, ref)
		_, known := s.Recall(namespace, ref)
		require.True(t, known)
	}
	s.Forget("team-a")
	_, known := s.Recall("team-a", ref)
	require.False(t, known)
	_, known = s.Recall("team-b", ref)
	require.True(t, known)
}

func TestAProblemOfReadingAndCompilingIsReportedOnce(t *testing.T) {
	_, resources := start(t)
	broken := "apiVersion: landwaiter.dev/v1beta1\nkind: Verifier\nmetadata: {name: typo, namespace: team-c}\nspec: {type: Cosign, cosin: {}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(resources, "broken.yaml"), []byte(broken), 0o600))
	s, loaded, err := service.Load(t.Context(), resources, service.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.Len(t, loaded.Problems, 1)
	require.Equal(t, "Verifier team-c/typo", loaded.Problems[0].Source.String())
}

func TestWatchPutsChangesInForce(t *testing.T) {
	_, resources := start(t)
	s, err := service.New(service.Options{}, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ctx, stop := context.WithCancel(t.Context())
	reported, ended := make(chan int, 16), make(chan error, 1)
	go func() {
		ended <- s.Watch(ctx, resources, func(problems []resource.Problem) { reported <- len(problems) })
	}()
	require.Zero(t, <-reported)
	require.NoError(t, os.WriteFile(filepath.Join(resources, "team-c.yaml"), []byte("kind: {"), 0o600))
	require.NotZero(t, <-reported)
	stop()
	require.NoError(t, <-ended)
	require.Error(t, s.Watch(t.Context(), filepath.Join(resources, "none"), nil), "a directory that is not there")
}

// unknown is a Finder that knows no namespace.
type unknown struct{}

func (unknown) Exists(context.Context, verify.Namespace) (bool, error) { return false, nil }

func TestAFinderDeniesNamespacesThatDoNotExist(t *testing.T) {
	e, resources := start(t)
	s, err := service.New(service.Options{}, unknown{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	objects, _, err := configdir.Load(t.Context(), resources)
	require.NoError(t, err)
	require.Empty(t, s.Apply(t.Context(), objects))
	ref, err := image.Parse(e.Registry.Host() + "/shared/app:v1")
	require.NoError(t, err)
	requireOutcome(t, policy.Allowed, s.Verify(t.Context(), "team-a", ref))
	result := s.Verify(t.Context(), "nobody", ref)
	requireOutcome(t, policy.Denied, result)
	require.Contains(t, result.Verdict.Reason, "does not exist")
}

func TestAReplicaFindsWhatAnotherHasPutIntoRedis(t *testing.T) {
	server := miniredis.RunT(t)
	shared := service.Options{Version: "v1", Redis: &service.Redis{Connection: cache.Connection{URL: "redis://" + server.Addr()}, Keys: fixture.NewSealKey()}}
	e, resources := start(t)
	ref, err := image.Parse(e.Registry.Host() + "/shared/app:v1")
	require.NoError(t, err)
	first, _, err := service.Load(t.Context(), resources, shared)
	require.NoError(t, err)
	t.Cleanup(first.Close)
	pinned := first.Verify(t.Context(), "team-a", ref).Reference
	require.Eventually(t, func() bool { return len(server.Keys()) == 2 }, time.Minute, time.Millisecond)

	// A busy machine may take longer for Redis than a request waits, so it may take several
	// replicas until one is answered in time.
	for deadline := time.Now().Add(time.Minute); ; {
		second, _, err := service.Load(t.Context(), resources, shared)
		require.NoError(t, err)
		t.Cleanup(second.Close)
		metrics := prometheus.NewRegistry()
		second.Register(metrics)
		before := e.Registry.Asked("/manifests/sha256:")
		result := second.Verify(t.Context(), "team-a", pinned)
		requireOutcome(t, policy.Allowed, result)
		if result.Cached {
			require.Equal(t, before, e.Registry.Asked("/manifests/sha256:"))
			require.EqualValues(t, 1, second.RedisStats().Hits.Load())
			require.InDelta(t, 1, hits(t, metrics), 0)
			return
		}
		require.True(t, time.Now().Before(deadline), "no replica found it")
	}
}

// hits reads the metric of hits in Redis.
func hits(t *testing.T, metrics *prometheus.Registry) float64 {
	t.Helper()
	gathered, err := metrics.Gather()
	require.NoError(t, err)
	for _, family := range gathered {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "landwaiter_redis_commands_total" && metric.GetLabel()[0].GetValue() == "hit" {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}
