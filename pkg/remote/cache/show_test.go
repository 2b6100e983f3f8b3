package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

func shown(t *testing.T, server *miniredis.Miniredis, s *cache.Seal, namespace verify.Namespace, of string, limit int) cache.Listing {
	t.Helper()
	client, err := cache.Connect(cache.Connection{URL: "redis://" + server.Addr()})
	require.NoError(t, err)
	defer client.Close()
	found, err := cache.Show(t.Context(), client, s, namespace, of, limit)
	require.NoError(t, err)
	return found
}

// digestOf returns the reference of the nth image of a repository.
func digestOf(repository string, n int) string {
	return fmt.Sprintf("r.example.com/%s@sha256:%064d", repository, n)
}

func TestTheValuesOfOneNamespaceAreShownAndNoOthers(t *testing.T) {
	server := miniredis.RunT(t)
	master := masterKey()
	r := newReplica(t, server, "v1", master)
	r.clock.advance(time.Hour)
	put := func(namespace verify.Namespace, uid, image string) {
		r.Put(t.Context(), verify.Key{Namespace: namespace, Kind: verify.KindVerdict, UID: uid, Generation: "g1", Image: image}, verdict(), time.Hour)
	}
	put("team-a", "uid-1", digestOf("app", 1))
	put("team-a", "uid-1", digestOf("app", 2))
	put("team-a", "uid-1", digestOf("app/more", 1))
	put("team-ab", "uid-3", digestOf("app", 1))
	put(verify.Cluster, "", digestOf("base", 1))
	stored(t, server, 5)

	all := shown(t, server, seal(t, master), "team-a", "", 10)
	require.Equal(t, cache.Listing{Entries: all.Entries, Keys: 3}, all)
	require.Len(t, all.Entries, 3)
	at := r.clock.now().UnixMilli()
	require.Equal(t, cache.Shown{Kind: "verdict", Image: digestOf("app", 2), UID: "uid-1", Generation: "g1", Program: "v1", Verdict: verdict().Verdict,
		Written: time.UnixMilli(at), Expires: time.UnixMilli(at + time.Hour.Milliseconds())}, all.Entries[2])

	require.Len(t, shown(t, server, seal(t, master), "team-a", "r.example.com/app", 10).Entries, 2)
	one := shown(t, server, seal(t, master), "team-a", digestOf("app", 1), 10)
	require.Len(t, one.Entries, 1)
	require.Equal(t, digestOf("app", 1), one.Entries[0].Image)
	require.Empty(t, shown(t, server, seal(t, master), "team-a", "other.example.com/app", 10).Entries)
	require.Equal(t, digestOf("base", 1), shown(t, server, seal(t, master), verify.Cluster, "", 10).Entries[0].Image)
	few := shown(t, server, seal(t, master), "team-a", "", 2)
	require.Len(t, few.Entries, 2)
	require.Equal(t, 1, few.LeftOff)
}

func TestWhatDoesNotOpenIsShownAsSuchAndNeverAsAVerdict(t *testing.T) {
	server := miniredis.RunT(t)
	master, former := masterKey(), masterKey()
	r := newReplica(t, server, "v1", former)
	r.Put(t.Context(), key("team-a", digestOf("app", 1)), verdict(), time.Hour)
	r.Put(t.Context(), key("team-b", digestOf("app", 1)), verdict(), time.Hour)
	names := stored(t, server, 2)
	moved, err := server.Get(names[1])
	require.NoError(t, err)
	require.NoError(t, server.Set("landwaiter:team-a:verdict:moved", moved))
	require.NoError(t, server.Set("landwaiter:team-a:verdict:made-up", `{"version":4,"outcome":"allowed"}`))
	require.NoError(t, server.Set("landwaiter:team-a:verdict:former-format", "\x01............................."))
	require.NoError(t, server.Set("landwaiter:team-a", "no key of ours"))

	reasons := func(s *cache.Seal) map[string]int {
		found := shown(t, server, s, "team-a", "", 10)
		require.Equal(t, 4, found.Keys)
		why := map[string]int{}
		for _, e := range found.Entries {
			if e.Unopened == nil {
				why["opened"]++
				continue
			}
			require.Equal(t, policy.Undecided, e.Verdict.Outcome())
			require.Empty(t, e.Image)
			why[e.Unopened.Error()]++
		}
		return why
	}
	const forged, foreign = "the value was not sealed for this key, or was changed", "the value is not one of ours"
	require.Equal(t, map[string]int{"opened": 1, forged: 1, foreign: 2}, reasons(seal(t, master, former)))
	require.Equal(t, map[string]int{"the value was sealed with a key that is not in the key file": 2, foreign: 2}, reasons(seal(t, master)))
	of := shown(t, server, seal(t, former), "team-a", "r.example.com/app", 10)
	require.Len(t, of.Entries, 1, "nobody knows what the others are about")
	require.Equal(t, 3, of.Unopened)
}

func TestARedisThatFailsShowsNothing(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer client.Close()
	server.Close()
	_, err := cache.Show(t.Context(), client, seal(t, masterKey()), "team-a", "", 10)
	require.Error(t, err)
}
