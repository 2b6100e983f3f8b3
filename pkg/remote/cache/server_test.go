//go:build e2e

package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func startRedis(t *testing.T, extra ...string) *cluster.Redis {
	t.Helper()
	server, err := cluster.StartRedis(t.Context(), t.TempDir(), extra...)
	require.NoError(t, err)
	t.Cleanup(func() { server.Kill() })
	return server
}

// shared is a replica's cache over a connection, without a memory tier: every Get asks
// Redis.
func shared(t *testing.T, connection cache.Connection, master string) cache.Chain {
	t.Helper()
	client, err := cache.Connect(connection)
	require.NoError(t, err)
	memory, err := cache.NewMemory(1, time.Now) // room for nothing
	require.NoError(t, err)
	r := cache.NewRedis(client, seal(t, master), "v1", time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return cache.Chain{Memory: memory, Redis: r}
}

func found(t *testing.T, c cache.Chain, image string) bool {
	t.Helper()
	entry, ok := c.Get(t.Context(), key("team-a", image))
	if ok {
		require.Equal(t, verdict().Verdict.Policy, entry.Verdict.Policy)
		require.Equal(t, image, entry.Verdict.Reason, "a verdict of another image")
	}
	return ok
}

func put(t *testing.T, c cache.Chain, images ...string) {
	t.Helper()
	for _, image := range images {
		entry := verdict()
		entry.Verdict.Reason = image
		c.Put(t.Context(), key("team-a", image), entry, time.Hour)
	}
}

// written puts images until each has been found, because a busy machine may need longer than
// the budget of one write or read.
func written(t *testing.T, writer, reader cache.Chain, images ...string) {
	t.Helper()
	put(t, writer, images...)
	for _, image := range images {
		tries := 0
		eventually(t, func() bool {
			if tries++; tries%100 == 0 {
				put(t, writer, image)
			}
			return found(t, reader, image)
		}, "written")
	}
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, suite.Patience, 5*time.Millisecond, what)
}

// Whatever happens to Redis, a read returns the verdict that was put, or a miss.
func TestFaultsOfARealRedisAreMisses(t *testing.T) {
	server := startRedis(t)
	c := shared(t, cache.Connection{URL: server.URL}, masterKey())
	written(t, c, c, "a", "b")

	t.Run("paused", func(t *testing.T) {
		require.NoError(t, server.Pause())
		for range 100 {
			require.False(t, found(t, c, "a"))
		}
		require.Positive(t, c.Redis.Stats.Skipped.Load(), "the breaker is open")
		require.NoError(t, server.Resume())
		eventually(t, func() bool { return found(t, c, "a") }, "it is asked again")
	})
	t.Run("killed, and replaced by an empty one", func(t *testing.T) {
		server.Kill()
		require.False(t, found(t, c, "a"))
		require.NoError(t, server.Restart(t.Context()))
		misses := c.Redis.Stats.Misses.Load()
		eventually(t, func() bool { return !found(t, c, "a") && c.Redis.Stats.Misses.Load() > misses }, "it is asked again")
		eventually(t, func() bool { put(t, c, "a", "b"); return found(t, c, "a") && found(t, c, "b") }, "and written to")
	})
	t.Run("full", func(t *testing.T) {
		server.Kill()
		server.Extra("--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
		require.NoError(t, server.Restart(t.Context()))
		dropped := c.Redis.Stats.Dropped.Load()
		eventually(t, func() bool {
			for i := range 500 {
				put(t, c, fmt.Sprintf("filler-%d", i))
			}
			return c.Redis.Stats.Dropped.Load() > dropped
		}, "writes are refused")
		eventually(t, func() bool { return !found(t, c, "never put") }, "reads go on")
	})
	t.Run("another password", func(t *testing.T) {
		server.Kill()
		server.Extra()
		was := server.Password
		server.Password = "changed"
		require.NoError(t, server.Restart(t.Context()))
		for range 50 {
			require.False(t, found(t, c, "a"))
		}
		server.Kill()
		server.Password = was
		require.NoError(t, server.Restart(t.Context()))
		eventually(t, func() bool { put(t, c, "a"); return found(t, c, "a") }, "it heals")
	})
}

// liar is a proxy that changes what Redis answers.
type liar struct {
	net.Listener
	mu     sync.Mutex
	change func([]byte) []byte
}

func newLiar(t *testing.T, to string) *liar {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &liar{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go l.answer(in, out)
		}
	}()
	return l
}

func (l *liar) lie(change func([]byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change = change
}

func (l *liar) answer(in, out net.Conn) {
	defer in.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := out.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		text := bytes.Clone(buffer[:n])
		if l.change != nil {
			text = l.change(text)
		}
		l.mu.Unlock()
		if _, err := in.Write(text); err != nil {
			return
		}
	}
}

func TestAnswersThatAreWrongAreMisses(t *testing.T) {
	server := startRedis(t)
	l := newLiar(t, server.Address())
	c := shared(t, cache.Connection{URL: strings.Replace(server.URL, server.Address(), l.Addr().String(), 1)}, masterKey())
	written(t, c, c, "a", "b", "c")
	var before []byte
	for name, change := range map[string]func([]byte) []byte{
		"garbage":      func([]byte) []byte { return []byte("\x00\xff garbage \r\n") },
		"nothing":      func([]byte) []byte { return nil },
		"cut short":    func(b []byte) []byte { return b[:len(b)/2] },
		"an error":     func([]byte) []byte { return []byte("-ERR no\r\n") },
		"a huge value": func([]byte) []byte { return []byte("$2147483647\r\n") },
		"an integer":   func([]byte) []byte { return []byte(":1\r\n") },
		"bits flipped": func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 1; return b },
		// Every answer is that to the question before.
		"out of order": func(b []byte) []byte {
			was := before
			if before = bytes.Clone(b); was == nil {
				return b
			}
			return was
		},
		"one too many": func(b []byte) []byte { return append([]byte("$3\r\nfoo\r\n"), b...) },
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, func() bool { return found(t, c, "a") }, "it works before")
			l.lie(change)
			for i := range 30 {
				found(t, c, string(rune('a'+i%3))) // which fails on a verdict of another image
			}
			l.lie(nil)
			eventually(t, func() bool { return found(t, c, "a") && found(t, c, "b") }, "it heals")
		})
	}
}

func TestUsersInRedisReachWhatTheirRulesSay(t *testing.T) {
	server := startRedis(t, "--user", "team-a", "on", ">a", "~landwaiter:team-a:*", "+get", "+strlen", "+ttl", "+exists", "+hello", "+auth", "+ping", "+select")
	c := shared(t, cache.Connection{URL: server.URL}, masterKey())
	for _, namespace := range []verify.Namespace{"team-a", "team-ab", verify.Cluster} {
		c.Put(t.Context(), key(namespace, "i"), verdict(), time.Hour)
	}
	own, err := cache.Connect(cache.Connection{URL: server.URL})
	require.NoError(t, err)
	defer own.Close()
	eventually(t, func() bool {
		usage, err := cache.Usage(t.Context(), own)
		return err == nil && len(usage) == 3
	}, "three namespaces have keys")
	usage, err := cache.Usage(t.Context(), own)
	require.NoError(t, err)
	require.Equal(t, 1, usage["team-a"].Keys)
	require.Positive(t, usage[verify.Cluster].Bytes)

	team := redis.NewClient(&redis.Options{Addr: server.Address(), Username: "team-a", Password: "a", DisableIdentity: true})
	defer team.Close()
	all, _, err := own.Scan(t.Context(), 0, "landwaiter:*", 100).Result()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, name := range all {
		_, err := team.Get(t.Context(), name).Result()
		if strings.HasPrefix(name, "landwaiter:team-a:") {
			require.NoError(t, err, name)
			require.ErrorContains(t, team.Set(t.Context(), name, "x", 0).Err(), "NOPERM")
			require.ErrorContains(t, team.Del(t.Context(), name).Err(), "NOPERM")
			continue
		}
		require.ErrorContains(t, err, "NOPERM", name)
	}
	require.ErrorContains(t, team.Keys(t.Context(), "*").Err(), "NOPERM")
	require.ErrorContains(t, team.FlushAll(t.Context()).Err(), "NOPERM")
	require.ErrorContains(t, own.FlushAll(t.Context()).Err(), "NOPERM", "nor may Landwaiter")
	require.ErrorContains(t, own.Set(t.Context(), "others:x", "x", 0).Err(), "NOPERM")

	removed, err := cache.Purge(t.Context(), own, "team-a")
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	removed, err = cache.Purge(t.Context(), own, verify.Cluster)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	usage, err = cache.Usage(t.Context(), own)
	require.NoError(t, err)
	require.Len(t, usage, 1)
}

// Clusters that share a Redis have a key file each.
func TestTwoInstallationsOnOneRedisOpenNothingOfEachOther(t *testing.T) {
	server := startRedis(t)
	one, other := shared(t, cache.Connection{URL: server.URL}, masterKey()), shared(t, cache.Connection{URL: server.URL}, masterKey())
	written(t, one, one, "a")
	unopened := other.Redis.Stats.Unopened.Load()
	eventually(t, func() bool {
		require.False(t, found(t, other, "a"), "a verdict that the other installation sealed")
		return other.Redis.Stats.Unopened.Load() > unopened
	}, "it has seen the value")
	// Both have a verdict of this key: whoever wrote last finds its own, the other none.
	written(t, other, other, "a")
	unopened = one.Redis.Stats.Unopened.Load()
	eventually(t, func() bool {
		require.False(t, found(t, one, "a"))
		return one.Redis.Stats.Unopened.Load() > unopened
	}, "and so has the first")
}

func TestRedisIsReachedWithAClientCertificate(t *testing.T) {
	ca, files := certified(t)
	client, err := ca.IssueClient("landwaiter")
	require.NoError(t, err)
	ports, err := cluster.FreePorts(1)
	require.NoError(t, err)
	server := startRedis(t, "--tls-port", fmt.Sprint(ports[0]), "--tls-cert-file", files.Certificate, "--tls-key-file", files.Key,
		"--tls-ca-cert-file", files.CA, "--tls-auth-clients", "yes")
	url := strings.Replace(strings.Replace(server.URL, "redis://", "rediss://", 1), server.Address(), fmt.Sprintf("127.0.0.1:%d", ports[0]), 1)
	connection := cache.Connection{URL: url, RootCAs: ca.CertificatePEM, Certificate: client.CertificatePEM, Key: client.KeyPEM}
	c := shared(t, connection, masterKey())
	written(t, c, c, "a")
	connection.Certificate, connection.Key = nil, nil
	without, err := cache.Connect(connection)
	require.NoError(t, err)
	defer without.Close()
	require.Error(t, without.Ping(t.Context()).Err())
}

// The images of one request are looked up together.
func TestReadsOfOneRequestShareARoundTrip(t *testing.T) {
	server := startRedis(t)
	c := shared(t, cache.Connection{URL: server.URL}, masterKey())
	var images []string
	for i := range 200 {
		images = append(images, fmt.Sprint(i))
	}
	written(t, c, c, images...)
	before := c.Redis.Stats.RoundTrips.Load()
	var all sync.WaitGroup
	for _, image := range images {
		all.Go(func() { found(t, c, image) })
	}
	all.Wait()
	took := c.Redis.Stats.RoundTrips.Load() - before
	t.Logf("200 verdicts in %d round trips", took)
	require.Less(t, took, int64(100))
}
