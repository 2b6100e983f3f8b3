package cache_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func masterKey() string { return string(fixture.NewSealKey()) }

func seal(t testing.TB, keys ...string) *cache.Seal {
	t.Helper()
	s, err := cache.ParseSeal([]byte(strings.Join(keys, "\n") + "\n"))
	require.NoError(t, err)
	return s
}

// replica is a cache as one replica has it.
type replica struct {
	cache.Chain
	clock *clock
}

func newReplica(t testing.TB, server *miniredis.Miniredis, version string, keys ...string) *replica {
	t.Helper()
	c := &clock{}
	memory, err := cache.NewMemory(1<<20, c.now)
	require.NoError(t, err)
	client, err := cache.Connect(cache.Connection{URL: "redis://" + server.Addr()})
	require.NoError(t, err)
	r := cache.NewRedis(client, seal(t, keys...), version, c.now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return &replica{Chain: cache.Chain{Memory: memory, Redis: r}, clock: c}
}

// get asks until Redis has answered, because a busy machine may need longer than the budget of one read.
func (r *replica) get(t testing.TB, key verify.Key) (entry verify.Entry, ok bool) {
	t.Helper()
	unanswered := func() int64 { return r.Redis.Stats.Failures.Load() + r.Redis.Stats.Skipped.Load() }
	require.Eventually(t, func() bool {
		before := unanswered()
		entry, ok = r.Get(t.Context(), key)
		return unanswered() == before
	}, time.Minute, time.Millisecond)
	return entry, ok
}

// stored waits until there are n keys.
func stored(t testing.TB, server *miniredis.Miniredis, n int) []string {
	t.Helper()
	require.Eventually(t, func() bool { return len(server.Keys()) == n }, time.Minute, time.Millisecond)
	return server.Keys()
}

func verdict() verify.Entry {
	return verify.Entry{
		Verdict:  judged.As(policy.Allowed, policy.Verdict{Reason: "signed", Policy: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team-a", Name: "p"}}),
		Findings: []policy.Finding{judged.Proven("s", policy.Finding{Verifier: "v", Type: "Notation", Extensions: map[string]any{"Issuer": "CN=x"}})}}
}

func TestReplicasShareVerdicts(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	first, second := newReplica(t, server, "v1", master), newReplica(t, server, "v1", master)
	first.Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	names := stored(t, server, 1)
	require.True(t, strings.HasPrefix(names[0], "landwaiter:team-a:verdict:"), names[0])
	_, ok := second.Recall(key("team-a", "i"))
	require.False(t, ok, "Redis would have to be waited for")
	entry, ok := second.get(t, key("team-a", "i"))
	require.True(t, ok)
	require.Equal(t, verdict(), entry)
	server.Close()
	_, ok = second.Get(t.Context(), key("team-a", "i"))
	require.True(t, ok, "it is in memory now")
	_, ok = second.Recall(key("team-a", "i"))
	require.True(t, ok)
	second.clock.advance(time.Hour)
	_, ok = second.Recall(key("team-a", "i"))
	require.False(t, ok)
	_, ok = second.Get(t.Context(), key("team-a", "i"))
	require.False(t, ok, "for no longer than it was sealed for")
}

func TestTagsStayInMemory(t *testing.T) {
	server := miniredis.RunT(t)
	r := newReplica(t, server, "v1", masterKey())
	tag := verify.Key{Namespace: "team-a", Kind: verify.KindTag, Image: "r/a:v1"}
	r.Put(t.Context(), tag, verify.Entry{}, time.Minute)
	_, ok := r.Get(t.Context(), tag)
	require.True(t, ok)
	r.Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	require.Contains(t, stored(t, server, 1)[0], ":verdict:")
}

// flipped returns text with another byte at a place.
func flipped(text string, at int) string {
	changed := []byte(text)
	changed[at] ^= 0x40
	return string(changed)
}

// Writing to Redis must not be enough to forge, move, change or revive a verdict.
func TestForgedValuesInRedisAreMisses(t *testing.T) {
	master := masterKey()
	for name, tamper := range map[string]func(*miniredis.Miniredis, string, string){
		"made up": func(s *miniredis.Miniredis, name, _ string) {
			require.NoError(t, s.Set(name, `{"version":4,"outcome":"allowed"}`))
		},
		"changed": func(s *miniredis.Miniredis, name, value string) {
			require.NoError(t, s.Set(name, flipped(value, len(value)-1)))
		},
		"cut short": func(s *miniredis.Miniredis, name, value string) { require.NoError(t, s.Set(name, value[:10])) },
		// After the format and the version of the key come milliseconds since 1970: nine years more.
		"longer expiry": func(s *miniredis.Miniredis, name, value string) {
			require.NoError(t, s.Set(name, flipped(value, 1+4+3)))
		},
		"from another key":  func(s *miniredis.Miniredis, name, _ string) { copyOf(t, s, "other image", name) },
		"another namespace": func(s *miniredis.Miniredis, name, _ string) { copyOf(t, s, "team-b", name) },
		"huge": func(s *miniredis.Miniredis, name, _ string) {
			require.NoError(t, s.Set(name, strings.Repeat("x", 1<<20)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := miniredis.RunT(t)
			writer, reader := newReplica(t, server, "v1", master), newReplica(t, server, "v1", master)
			writer.Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
			target := stored(t, server, 1)[0]
			for alias, k := range map[string]verify.Key{"other image": key("team-a", "other"), "team-b": key("team-b", "i")} {
				before := server.Keys()
				writer.Put(t.Context(), k, verdict(), time.Hour)
				for _, name := range stored(t, server, len(before)+1) {
					if !contains(before, name) {
						value, err := server.Get(name)
						require.NoError(t, err)
						server.DB(1).Set(alias, value) //nolint:errcheck // the fake cannot fail here
					}
				}
			}
			value, err := server.Get(target)
			require.NoError(t, err)
			tamper(server, target, value)
			_, ok := reader.get(t, key("team-a", "i"))
			require.False(t, ok)
			require.EqualValues(t, 1, reader.Redis.Stats.Unopened.Load())
		})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// copyOf puts a value that is sealed for another key at name.
func copyOf(t *testing.T, s *miniredis.Miniredis, alias, name string) {
	t.Helper()
	value, err := s.DB(1).Get(alias)
	require.NoError(t, err)
	require.NoError(t, s.Set(name, value))
}

func TestAnExpiredVerdictThatRedisKeptIsAMiss(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	writer, reader := newReplica(t, server, "v1", master), newReplica(t, server, "v1", master)
	writer.Put(t.Context(), key("team-a", "i"), verdict(), time.Minute)
	stored(t, server, 1)
	reader.clock.advance(time.Minute)
	_, ok := reader.get(t, key("team-a", "i"))
	require.False(t, ok)
}

func TestMasterKeysCanBeRotated(t *testing.T) {
	server := miniredis.RunT(t)
	old, next := masterKey(), masterKey()
	newReplica(t, server, "v1", old).Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	stored(t, server, 1)
	_, ok := newReplica(t, server, "v1", next).get(t, key("team-a", "i"))
	require.False(t, ok)
	_, ok = newReplica(t, server, "v1", next, old).get(t, key("team-a", "i"))
	require.True(t, ok)
}

func TestAnotherVersionSeesNothing(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	newReplica(t, server, "v1", master).Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	stored(t, server, 1)
	r := newReplica(t, server, "v2", master)
	_, ok := r.get(t, key("team-a", "i"))
	require.False(t, ok)
	require.Zero(t, r.Redis.Stats.Unopened.Load())
}

func TestOnlyVerdictsComeOut(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	writer, reader := newReplica(t, server, "v1", master), newReplica(t, server, "v1", master)
	for name, entry := range map[string]verify.Entry{"undecided": {Verdict: judged.As(policy.Undecided, policy.Verdict{})}} {
		writer.Put(t.Context(), key("team-a", name), entry, time.Hour)
		stored(t, server, 1)
		_, ok := reader.get(t, key("team-a", name))
		require.False(t, ok, name)
	}
}

func TestADeadRedisOpensTheBreaker(t *testing.T) {
	server := miniredis.RunT(t)
	r := newReplica(t, server, "v1", masterKey())
	server.Close()
	for range 50 {
		_, ok := r.Get(t.Context(), key("team-a", "i"))
		require.False(t, ok)
	}
	require.LessOrEqual(t, r.Redis.Stats.Failures.Load(), int64(10))
	require.Equal(t, int64(50), r.Redis.Stats.Failures.Load()+r.Redis.Stats.Skipped.Load())
	require.NoError(t, server.Restart())
	require.Eventually(t, func() bool {
		r.Get(t.Context(), key("team-a", "i"))
		return r.Redis.Stats.Misses.Load() > 0
	}, time.Minute, 10*time.Millisecond, "it is asked again after a while")
}

func TestACancelledReadIsNoFailureOfRedis(t *testing.T) {
	server := miniredis.RunT(t)
	r := newReplica(t, server, "v1", masterKey())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		_, ok := r.Get(ctx, key("team-a", "i"))
		require.False(t, ok)
	}
	r.Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	stored(t, server, 1)
	require.Zero(t, r.Redis.Stats.Skipped.Load())
}

func TestForgettingANamespaceRemovesItsKeysOnly(t *testing.T) {
	server := miniredis.RunT(t)
	r := newReplica(t, server, "v1", masterKey())
	for _, n := range []verify.Namespace{"team-a", "team-ab", "team", verify.Cluster} {
		r.Put(t.Context(), key(n, "i"), verdict(), time.Hour)
	}
	stored(t, server, 4)
	r.Forget("team-a")
	for _, name := range stored(t, server, 3) {
		require.False(t, strings.HasPrefix(name, "landwaiter:team-a:"), name)
	}
	_, ok := r.Get(t.Context(), key("team-a", "i"))
	require.False(t, ok)
}

func TestMalformedMasterKeysAreRejected(t *testing.T) {
	good := masterKey()
	for name, text := range map[string]string{"none": "\n \n", "short": "c2hvcnQ=", "no base64": "!!!", "one is bad": good + "\nx",
		"too many": strings.Repeat(good+"\n", 5)} {
		_, err := cache.ParseSeal([]byte(text))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), good)
	}
}

func TestBadConnectionsAreRejectedWithoutRevealingThePassword(t *testing.T) {
	for _, c := range []cache.Connection{
		{URL: "http://user:hunter2@host"}, {URL: "redis://user:hunter2@host:port:1/%zz"}, {URL: "redis://:hunter2@h", Mode: "other"},
		{URL: "redis://:hunter2@h", RootCAs: []byte("x")}, {URL: "rediss://:hunter2@h", RootCAs: []byte("x")}, {URL: "://:hunter2@", Mode: "sentinel"},
		{URL: "://:hunter2@", Mode: "cluster"},
		{URL: "redis://:hunter2@h:1", Mode: "sentinel"}, {URL: "redis://:hunter2@h:1?master_name=m&route_by_latency=true", Mode: "sentinel"},
		{URL: "redis://h:1?master_name=m&route_randomly=true&password=hunter2", Mode: "sentinel"},
		{URL: "redis://h:1?master_name=m&replica_only=true&password=hunter2", Mode: "sentinel"},
		{URL: "redis://:hunter2@h:1?route_by_latency=true", Mode: "cluster"}, {URL: "redis://:hunter2@h:1?route_randomly=true", Mode: "cluster"},
		{URL: "redis://:hunter2@h:1?read_only=true", Mode: "cluster"},
	} {
		_, err := cache.Connect(c)
		require.Error(t, err, c.Mode)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for mode, url := range map[string]string{"standalone": "rediss://u:p@h:1/2", "sentinel": "redis://h:1/0?master_name=m&addr=h:2",
		"cluster": "rediss://h:1?addr=h:2"} {
		client, err := cache.Connect(cache.Connection{URL: url, Mode: mode})
		require.NoError(t, err, mode)
		require.NoError(t, client.Close())
		_, isCluster := client.(*redis.ClusterClient)
		require.Equal(t, mode == "cluster", isCluster)
	}
}

func TestAnEntryOfAReplicaWhoseClockIsAheadIsUsedNoLongerThanOurOwn(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	ahead, behind := newReplica(t, server, "v1", master), newReplica(t, server, "v1", master)
	behind.Redis.PassTTL = time.Hour
	ahead.clock.advance(5 * time.Hour)
	ahead.Put(t.Context(), key("team-a", "i"), verdict(), time.Hour)
	stored(t, server, 1)
	_, ok := behind.get(t, key("team-a", "i"))
	require.True(t, ok)
	server.FlushAll()
	behind.clock.advance(59 * time.Minute)
	_, ok = behind.get(t, key("team-a", "i"))
	require.True(t, ok, "it is in memory")
	behind.clock.advance(2 * time.Minute)
	_, ok = behind.get(t, key("team-a", "i"))
	require.False(t, ok)
}
