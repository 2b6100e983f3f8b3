//go:build e2e

package cache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func startCluster(t *testing.T) (*cluster.RedisCluster, cache.Connection) {
	t.Helper()
	cluster, err := cluster.StartRedisCluster(suite.Within(t), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(cluster.Kill)
	return cluster, cache.Connection{URL: cluster.URL, Mode: "cluster"}
}

func connect(t *testing.T, connection cache.Connection) redis.UniversalClient {
	t.Helper()
	client, err := cache.Connect(connection)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func numbered(n int) (images []string) {
	for i := range n {
		images = append(images, fmt.Sprintf("image-%d", i))
	}
	return images
}

// foundAtOnce asks for all images at the same time, as one request does, and
// returns how many were found.
func foundAtOnce(t *testing.T, c cache.Chain, images []string) int {
	t.Helper()
	var all sync.WaitGroup
	var n atomic.Int64
	for _, image := range images {
		all.Go(func() {
			if found(t, c, image) {
				n.Add(1)
			}
		})
	}
	all.Wait()
	return int(n.Load())
}

// holds returns the keys of team-a that one server has.
func holds(t *testing.T, server *cluster.Redis) []string {
	t.Helper()
	client := server.Operator()
	defer client.Close()
	names, err := client.Keys(t.Context(), "landwaiter:team-a:*").Result()
	require.NoError(t, err)
	return names
}

// nothingRefused fails if Landwaiter tried what the documented rules do not allow.
func nothingRefused(t *testing.T, servers ...interface {
	Refused(context.Context) ([]string, error)
}) {
	t.Helper()
	for _, server := range servers {
		refused, err := server.Refused(t.Context())
		require.NoError(t, err)
		require.Empty(t, refused)
	}
}

// nameOf is the key in Redis of an image that put puts.
func nameOf(image string) string {
	k := key("team-a", image)
	k.Generation = "v1/" + k.Generation
	return k.String()
}

// byMaster says which images each master has, and that each has some.
func byMaster(t *testing.T, cluster *cluster.RedisCluster, images []string) [][]string {
	t.Helper()
	held := make([][]string, len(cluster.Masters))
	for i, master := range cluster.Masters {
		names := holds(t, master)
		for _, image := range images {
			if contains(names, nameOf(image)) {
				held[i] = append(held[i], image)
			}
		}
		require.NotEmpty(t, held[i], "the keys of one namespace lie on every master")
	}
	return held
}

func TestReplicasShareVerdictsThroughARealCluster(t *testing.T) {
	cluster, connection := startCluster(t)
	master := masterKey()
	first, second := shared(t, connection, master), shared(t, connection, master)
	images := numbered(200)
	written(t, first, second, images...) // what one replica puts, the other finds
	slots, operator := map[int64]bool{}, cluster.Masters[0].Operator()
	defer operator.Close()
	for _, held := range byMaster(t, cluster, images) {
		slot, err := operator.ClusterKeySlot(t.Context(), nameOf(held[0])).Result()
		require.NoError(t, err)
		slots[slot] = true
	}
	require.Len(t, slots, len(cluster.Masters))

	before := second.Redis.Stats.RoundTrips.Load()
	require.NotZero(t, foundAtOnce(t, second, images))
	took := second.Redis.Stats.RoundTrips.Load() - before
	t.Logf("200 verdicts on three masters in %d round trips", took)
	require.Less(t, took, int64(150), "reads of one request travel together")
	require.Zero(t, first.Redis.Stats.Failures.Load()+first.Redis.Stats.Dropped.Load()+second.Redis.Stats.Unopened.Load())
	nothingRefused(t, cluster.Masters[0], cluster.Masters[1], cluster.Masters[2])
}

func TestUsageAndPurgeReachEveryMasterOfARealCluster(t *testing.T) {
	cluster, connection := startCluster(t)
	c, client := shared(t, connection, masterKey()), connect(t, connection)
	images := numbered(50)
	namespaces := []verify.Namespace{"team-a", "team-ab", verify.Cluster}
	for _, namespace := range namespaces {
		for _, image := range images {
			c.Put(t.Context(), key(namespace, image), verdict(), time.Hour)
		}
	}
	usage := func() map[verify.Namespace]cache.Use {
		usage, err := cache.Usage(t.Context(), client)
		require.NoError(t, err)
		return usage
	}
	for _, namespace := range namespaces {
		eventually(t, func() bool { return usage()[namespace].Keys == len(images) }, "all are counted")
		require.Positive(t, usage()[namespace].Bytes)
	}
	byMaster(t, cluster, images)
	removed, err := cache.Purge(t.Context(), client, "team-a")
	require.NoError(t, err)
	require.Equal(t, len(images), removed)
	for _, server := range cluster.Masters {
		require.Empty(t, holds(t, server))
	}
	left := usage()
	require.Len(t, left, 2)
	require.Equal(t, len(images), left["team-ab"].Keys)
	require.Equal(t, len(images), left[verify.Cluster].Keys)

	require.ErrorContains(t, client.FlushAll(t.Context()).Err(), "NOPERM", "Landwaiter's user may do no more than it needs")
	require.ErrorContains(t, client.Set(t.Context(), "others:x", "x", 0).Err(), "NOPERM")
	cluster.Masters[0].Kill()
	_, err = cache.Purge(t.Context(), client, "team-ab")
	require.Error(t, err, "what could not be reached may still be there")
}

// move moves the slot of a key from one master to another, as a resharding does.
// In between, the old one says that the key may be asked for at the new one.
func move(t *testing.T, name string, from, to *cluster.Redis, between func()) {
	t.Helper()
	operators := [2]*redis.Client{from.Operator(), to.Operator()}
	var ids [2]string
	for i, operator := range operators {
		defer operator.Close()
		var err error
		ids[i], err = operator.ClusterMyID(t.Context()).Result()
		require.NoError(t, err)
	}
	slot, err := operators[0].ClusterKeySlot(t.Context(), name).Result()
	require.NoError(t, err)
	require.NoError(t, to.Do(t.Context(), "cluster", "setslot", slot, "importing", ids[0]))
	require.NoError(t, from.Do(t.Context(), "cluster", "setslot", slot, "migrating", ids[1]))
	host, port, _ := strings.Cut(to.Address(), ":")
	options := operators[1].Options()
	require.NoError(t, from.Do(t.Context(), "migrate", host, port, name, 0, 5000, "auth2", options.Username, options.Password))
	between()
	require.NoError(t, to.Do(t.Context(), "cluster", "setslot", slot, "node", ids[1]))
	require.NoError(t, from.Do(t.Context(), "cluster", "setslot", slot, "node", ids[1]))
}

func TestVerdictsAreFoundWhileTheirSlotMovesBetweenMasters(t *testing.T) {
	cluster, connection := startCluster(t)
	c := shared(t, connection, masterKey())
	images := numbered(20)
	written(t, c, c, images...)
	image := byMaster(t, cluster, images)[0][0]
	move(t, nameOf(image), cluster.Masters[0], cluster.Masters[1], func() {
		eventually(t, func() bool { return found(t, c, image) }, "asked for where it is going to")
	})
	eventually(t, func() bool { return found(t, c, image) }, "and where it went")
	require.Contains(t, holds(t, cluster.Masters[1]), nameOf(image))
	nothingRefused(t, cluster.Masters[0], cluster.Masters[1], cluster.Masters[2])
}

// A failing master must not trip the breakers of others.
func TestAMasterThatIsDownCostsOnlyItsOwnVerdicts(t *testing.T) {
	cluster, connection := startCluster(t)
	master := masterKey()
	c := shared(t, connection, master)
	images := numbered(60)
	written(t, c, c, images...)
	held := byMaster(t, cluster, images)
	gone, kept := held[0], append(held[1], held[2]...)
	cluster.Masters[0].Kill()

	streak := 0
	eventually(t, func() bool {
		for _, image := range gone { // one by one: what would open a breaker that all share
			require.False(t, found(t, c, image))
		}
		if streak++; foundAtOnce(t, c, images) != len(kept) {
			streak = 0 // a busy machine is slower than the budget now and then
		}
		return streak == 10
	}, "others are found beside them, time and again")
	require.Positive(t, c.Redis.Stats.Skipped.Load(), "the breaker of the master that is gone is open")

	t.Run("writes to others go on", func(t *testing.T) {
		dropped := c.Redis.Stats.Dropped.Load()
		more := []string{}
		for i := range 60 {
			more = append(more, fmt.Sprintf("more-%d", i))
		}
		put(t, c, more...)
		eventually(t, func() bool {
			written := len(holds(t, cluster.Masters[1])) + len(holds(t, cluster.Masters[2])) - len(kept)
			return written > 0 && written+int(c.Redis.Stats.Dropped.Load()-dropped) == len(more)
		}, "each is written or dropped")
	})
	t.Run("a replica that starts meanwhile finds others", func(t *testing.T) {
		late := shared(t, connection, master)
		eventually(t, func() bool { return foundAtOnce(t, late, kept) == len(kept) }, "the first address it has is gone")
	})
	t.Run("another master takes over", func(t *testing.T) {
		first, last := 0, 16384/3-1
		for _, server := range cluster.Masters[1:] {
			require.NoError(t, server.Do(t.Context(), "cluster", "delslotsrange", first, last))
		}
		require.NoError(t, cluster.Masters[1].Do(t.Context(), "cluster", "addslotsrange", first, last))
		require.NoError(t, cluster.Masters[1].Do(t.Context(), "cluster", "bumpepoch"))
		eventually(t, func() bool { put(t, c, gone...); return foundAtOnce(t, c, gone) == len(gone) }, "it is asked")
	})
}

func TestVerdictsOutliveAFailoverBySentinel(t *testing.T) {
	ca, files := certified(t)
	for name, c := range map[string]struct {
		secure  cluster.TLS
		rootCAs []byte
	}{"plain": {}, "TLS": {files, ca.CertificatePEM}} {
		t.Run(name, func(t *testing.T) {
			servers, err := cluster.StartRedisSentinel(suite.Within(t), t.TempDir(), c.secure)
			require.NoError(t, err)
			t.Cleanup(servers.Kill)
			require.Equal(t, c.rootCAs != nil, strings.HasPrefix(servers.URL, "rediss://"))
			failover(t, servers, cache.Connection{URL: servers.URL, Mode: "sentinel", RootCAs: c.rootCAs})
		})
	}
}

// certified returns a CA, and the files of a certificate for a server.
func certified(t *testing.T) (*fixture.Authority, cluster.TLS) {
	t.Helper()
	ca, err := fixture.NewAuthority("redis")
	require.NoError(t, err)
	serving, err := ca.IssueServer("127.0.0.1")
	require.NoError(t, err)
	dir := t.TempDir()
	at := func(name string, content []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		return filepath.Join(dir, name)
	}
	return ca, cluster.TLS{Certificate: at("tls.crt", serving.CertificatePEM), Key: at("tls.key", serving.KeyPEM), CA: at("ca.crt", ca.CertificatePEM)}
}

// failover kills the master, and finds what it had.
func failover(t *testing.T, servers *cluster.RedisSentinel, connection cache.Connection) {
	t.Helper()
	master := masterKey()
	first, second := shared(t, connection, master), shared(t, connection, master)
	images := numbered(20)
	written(t, first, second, images...) // what one replica puts, the other finds
	client := connect(t, connection)
	usage, err := cache.Usage(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, len(images), usage["team-a"].Keys)
	eventually(t, func() bool { return len(holds(t, servers.Replica)) == len(images) }, "the server's replica has them too")

	servers.Master.Kill()
	require.False(t, found(t, first, images[0]), "no master, no verdict")
	eventually(t, func() bool { found(t, first, images[0]); return first.Redis.Stats.Skipped.Load() > 0 }, "the breaker opens")
	eventually(t, func() bool { return foundAtOnce(t, first, images) == len(images) }, "the new master has what the old one had")
	eventually(t, func() bool { put(t, second, "new"); return found(t, first, "new") }, "and is written to")
	require.Contains(t, holds(t, servers.Replica), nameOf("new"))
	removed, err := cache.Purge(t.Context(), client, "team-a")
	require.NoError(t, err)
	require.Equal(t, len(images)+1, removed)
	nothingRefused(t, servers)
}
