//go:build e2e

package cache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func TestRedisRulesOfATenant(t *testing.T) {
	server := startRedis(t, "--user", "admin", "on", ">admin", "~*", "+@all")
	c := shared(t, cache.Connection{URL: server.URL}, masterKey())
	// A namespace of another team whose name has a team's as its beginning, its end and
	// its prefix without the dash.
	all := []verify.Namespace{"iris", "iris-green", "iris-green-web", "iris-greenhouse", "iris-x", "x-iris", "greenhouse", "other", verify.Cluster}
	for _, namespace := range all {
		c.Put(t.Context(), key(namespace, "i"), verdict(), time.Hour)
	}
	landwaiter, err := cache.Connect(cache.Connection{URL: server.URL})
	require.NoError(t, err)
	defer landwaiter.Close()
	eventually(t, func() bool {
		usage, err := cache.Usage(t.Context(), landwaiter)
		return err == nil && len(usage) == len(all)
	}, "every namespace has a key")
	names, _, err := landwaiter.Scan(t.Context(), 0, "landwaiter:*", 100).Result()
	require.NoError(t, err)
	require.Len(t, names, len(all))

	admin := redis.NewClient(&redis.Options{Addr: server.Address(), Username: "admin", Password: "admin", DisableIdentity: true})
	defer admin.Close()
	for name, c := range map[string]struct {
		spec    v1beta1.TenantSpec
		members []string
		reaches []string
	}{
		"listed": {spec: v1beta1.TenantSpec{HomeNamespace: "iris", Namespaces: []string{"greenhouse"}}, reaches: []string{"iris", "greenhouse"}},
		"prefixed": {spec: v1beta1.TenantSpec{HomeNamespace: "iris-green", NamespacePrefix: "iris-green-"},
			reaches: []string{"iris-green", "iris-green-web"}},
		"wide": {spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"},
			reaches: []string{"iris", "iris-green", "iris-green-web", "iris-greenhouse", "iris-x"}},
		"one-has-a-neighbor": {spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}, members: []string{"iris", "iris-x"},
			reaches: []string{"iris", "iris-x"}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{Spec: c.spec}
			tenant.Name = name
			for _, line := range onboard.RedisACL(tenant, c.members) {
				var words []any
				for _, word := range strings.Fields(strings.ReplaceAll(line, "PASSWORD", "secret")) {
					words = append(words, word)
				}
				require.NoError(t, admin.Do(t.Context(), words...).Err(), line)
			}
			team := redis.NewClient(&redis.Options{Addr: server.Address(), Username: name, Password: "secret", DisableIdentity: true})
			defer team.Close()
			var reached []string
			for _, name := range names {
				sealed, err := team.Get(t.Context(), name).Result()
				if err != nil {
					require.ErrorContains(t, err, "NOPERM", name)
					continue
				}
				require.NotContains(t, sealed, "team-a", "entries are encrypted")
				require.ErrorContains(t, team.Set(t.Context(), name, "x", 0).Err(), "NOPERM")
				require.ErrorContains(t, team.Del(t.Context(), name).Err(), "NOPERM")
				reached = append(reached, strings.Split(name, ":")[1])
			}
			require.ElementsMatch(t, c.reaches, reached)
			for _, refused := range []*redis.Cmd{team.Do(t.Context(), "KEYS", "*"), team.Do(t.Context(), "SCAN", "0"), team.Do(t.Context(), "ACL", "LIST"),
				team.Do(t.Context(), "FLUSHALL")} {
				require.ErrorContains(t, refused.Err(), "NOPERM")
			}
		})
	}
	removed, err := cache.Purge(t.Context(), landwaiter, "iris-green")
	require.NoError(t, err)
	require.Equal(t, 1, removed, "a namespace's keys are purged by themselves, as without Tenants")
}
