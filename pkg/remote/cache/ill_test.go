//go:build e2e

package cache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/cache"
)

// alerts is the expression of LandwaiterRedisDown, over all commands so far.
func alerts(s *cache.Stats) bool {
	bad := s.Failures.Load() + s.Skipped.Load() + s.Dropped.Load()
	return float64(bad) > 0.5*float64(bad+s.Hits.Load()+s.Misses.Load()+s.Unopened.Load())
}

func TestEveryReadThatIsNotAnsweredIsAFailure(t *testing.T) {
	server := startRedis(t)
	with := func(old, by string) string { return strings.Replace(server.URL, old, by, 1) }
	for name, c := range map[string]struct{ url, says string }{
		"a wrong password":    {with(server.Password+"@", "wrong@"), "WRONGPASS"},
		"a user who is not":   {with("//landwaiter:", "//nobody:"), "WRONGPASS"},
		"no login":            {"redis://" + server.Address() + "/0", "NOAUTH"},
		"an unknown database": {with("/0", "/99"), "ERR DB index is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, server.URL, c.url)
			r := shared(t, cache.Connection{URL: c.url}, masterKey())
			for i := range 40 {
				require.False(t, found(t, r, fmt.Sprint(i)))
				put(t, r, fmt.Sprint(i))
			}
			s := &r.Redis.Stats
			require.Zero(t, s.Hits.Load()+s.Misses.Load()+s.Unopened.Load())
			require.EqualValues(t, 40, s.Failures.Load()+s.Skipped.Load())
			require.Positive(t, s.Skipped.Load(), "the breaker is open")
			require.True(t, alerts(s))
			looked := r.Redis.Look(t.Context())
			require.Error(t, looked.Err)
			require.Contains(t, looked.Answer, c.says)
		})
	}
}

// changes collects what a cache says about the state of Redis.
type changes struct {
	mu  sync.Mutex
	all []string
}

func (c *changes) add(doing string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		doing += " fail"
	}
	c.all = append(c.all, doing)
}

func (c *changes) have(says string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(strings.Join(c.all, "\n"), says)
}

// after reports whether one change came after another.
func (c *changes) after(first, second string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.all, first)
	return at >= 0 && slices.Contains(c.all[at:], second)
}

// watched is shared, with what it says about the state of Redis.
func watched(t *testing.T, connection cache.Connection, master string) (cache.Chain, *changes) {
	t.Helper()
	client, err := cache.Connect(connection)
	require.NoError(t, err)
	memory, err := cache.NewMemory(1, time.Now)
	require.NoError(t, err)
	r, said := cache.NewRedis(client, seal(t, master), "v1", time.Now), &changes{}
	r.Changed = said.add
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return cache.Chain{Memory: memory, Redis: r}, said
}

// slow is a proxy that delays every answer.
func slow(t *testing.T, to string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
			go func() {
				defer in.Close()
				buffer := make([]byte, 1<<16)
				for {
					n, err := out.Read(buffer)
					if err != nil {
						return
					}
					time.Sleep(delay)
					if _, err := in.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// loading stands before a Redis that reads its data from the disk: it answers each command as Redis does then, until it is loaded.
func loading(t *testing.T, to string) (address string, loaded func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var done atomic.Bool
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				if done.Load() {
					if out, err := net.Dial("tcp", to); err == nil {
						go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
						_, _ = io.Copy(in, out)
					}
					return
				}
				for lines := bufio.NewScanner(in); lines.Scan() && !done.Load(); {
					if strings.HasPrefix(lines.Text(), "*") { // each command begins with the number of its words
						if _, err := io.WriteString(in, "-LOADING Redis is loading the dataset in memory\r\n"); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return listener.Addr().String(), func() { done.Store(true) }
}

func TestARedisThatStillLoadsIsSkippedAndUsedOnceItHasLoaded(t *testing.T) {
	server, master := startRedis(t), masterKey()
	before := shared(t, cache.Connection{URL: server.URL}, master)
	written(t, before, before, "a")
	proxy, loaded := loading(t, server.Address())
	c, said := watched(t, cache.Connection{URL: strings.Replace(server.URL, server.Address(), proxy, 1)}, master)
	for i := range 40 {
		require.False(t, found(t, c, "a"))
		put(t, c, fmt.Sprint(i))
	}
	s := &c.Redis.Stats
	require.Zero(t, s.Hits.Load()+s.Misses.Load()+s.Unopened.Load())
	require.Positive(t, s.Skipped.Load(), "the breaker is open")
	require.True(t, said.have("reads fail"))
	looked := c.Redis.Look(t.Context())
	require.ErrorContains(t, looked.Err, "LOADING")
	loaded()
	eventually(t, func() bool { return found(t, c, "a") }, "it is asked again")
}

func TestAConnectionThatTakesLongerThanARequestWaitsIsOpenedForTheNextOne(t *testing.T) {
	server := startRedis(t)
	c, _ := watched(t, cache.Connection{URL: strings.Replace(server.URL, server.Address(), slow(t, server.Address(), 30*time.Millisecond), 1)}, masterKey())
	put(t, c, "a")
	eventually(t, func() bool { return found(t, c, "a") }, "a login and a read take 60 ms, of which a request waits 50")
	eventually(t, func() bool {
		row := 0
		for row < 10 && found(t, c, "a") {
			row++
		}
		return row == 10
	}, "every read is a hit")
	require.False(t, c.Redis.Look(t.Context()).Slow)
}

func TestARedisThatIsTooSlowIsSkippedAndCheckSaysSo(t *testing.T) {
	server := startRedis(t)
	c, said := watched(t, cache.Connection{URL: strings.Replace(server.URL, server.Address(), slow(t, server.Address(), 80*time.Millisecond), 1)}, masterKey())
	put(t, c, "a")
	eventually(t, func() bool { return !found(t, c, "a") && c.Redis.Stats.Skipped.Load() > 20 }, "it is skipped")
	require.True(t, said.have("reads fail"))
	require.False(t, said.have("writes fail"), "nobody waits for writes")
	require.True(t, alerts(&c.Redis.Stats))
	looked := c.Redis.Look(t.Context())
	require.NoError(t, looked.Err)
	require.True(t, looked.Slow)
	require.Greater(t, looked.Took, 80*time.Millisecond)
}

func TestAFullRedisIsSeenFromItsAnswers(t *testing.T) {
	server := startRedis(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction") // its user has no +info
	c, said := watched(t, cache.Connection{URL: server.URL}, masterKey())
	eventually(t, func() bool {
		for i := range 500 {
			put(t, c, fmt.Sprintf("filler-%d", i))
		}
		return said.have("writes fail")
	}, "writes are refused")
	eventually(t, func() bool {
		before := c.Redis.Stats.Misses.Load()
		found(t, c, "x")
		return c.Redis.Stats.Misses.Load() > before
	}, "reads go on")
	looked := c.Redis.Look(t.Context())
	require.NoError(t, looked.Err)
	require.Contains(t, looked.Refused, "OOM command not allowed")
}

func TestARedisThatTakesNoWritesIsSaidSo(t *testing.T) {
	server := startRedis(t, "--replicaof", "127.0.0.1 1")
	looked := shared(t, cache.Connection{URL: server.URL}, masterKey()).Redis.Look(t.Context())
	require.Error(t, looked.Err)
	require.Contains(t, looked.Answer, "READONLY")
}

func TestAChangedPasswordIsUsed(t *testing.T) {
	server := startRedis(t)
	c, said := watched(t, cache.Connection{URL: server.URL}, masterKey())
	written(t, c, c, "a")
	server.Kill()
	was := server.URL
	server.Password = "changed"
	require.NoError(t, server.Restart(t.Context()))
	changed := strings.Replace(was, ":"+strings.TrimPrefix(strings.SplitN(was, "@", 2)[0], "redis://landwaiter:")+"@", ":changed@", 1)
	require.NotEqual(t, was, changed)
	eventually(t, func() bool { return !found(t, c, "a") && said.have("reads fail") }, "the old one is refused")
	client, err := cache.Connect(cache.Connection{URL: changed})
	require.NoError(t, err)
	c.Redis.Use(t.Context(), client)
	written(t, c, c, "a")
	eventually(t, func() bool { return said.after("reads fail", "reads") }, "it is said that reads succeed again")
}

// Clusters that share a Redis and its keys have namespaces of the same name.
func TestADeletedNamespaceTakesNothingFromOneOfTheSameNameElsewhere(t *testing.T) {
	server := startRedis(t)
	master := masterKey()
	one, other := shared(t, cache.Connection{URL: server.URL}, master), shared(t, cache.Connection{URL: server.URL}, master)
	of := func(uid, image string) verify.Key {
		k := key("team-a", image)
		k.UID = uid
		return k
	}
	has := func(c cache.Chain, uid string) bool { _, ok := c.Get(t.Context(), of(uid, uid)); return ok }
	for c, uid := range map[*cache.Chain]string{&one: "first", &other: "second"} {
		eventually(t, func() bool { c.Put(t.Context(), of(uid, uid), verdict(), time.Hour); return has(*c, uid) }, uid)
	}
	one.Forget("team-a")
	client, err := cache.Connect(cache.Connection{URL: server.URL})
	require.NoError(t, err)
	defer client.Close()
	eventually(t, func() bool {
		usage, err := cache.Usage(t.Context(), client)
		return err == nil && usage["team-a"].Keys == 1
	}, "what the first had is gone")
	eventually(t, func() bool { return has(other, "second") }, "what the other has is there")
}

// picky is a proxy that understands some commands only, as proxies for Redis do.
func picky(t *testing.T, to string, unknown ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(in net.Conn) error {
		defer in.Close()
		out, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		defer out.Close()
		asked, answers := bufio.NewReader(in), bufio.NewReader(out)
		for {
			command, err := message(asked)
			if err != nil {
				return err
			}
			answer := []byte("-ERR unknown command\r\n")
			refused := false
			for _, name := range unknown {
				refused = refused || strings.Contains(strings.ToUpper(string(command[:min(len(command), 24)])), "\r\n"+name+"\r\n")
			}
			if !refused {
				if _, err := out.Write(command); err != nil {
					return err
				}
				if answer, err = message(answers); err != nil {
					return err
				}
			}
			if _, err := in.Write(answer); err != nil {
				return err
			}
		}
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = serve(in) }()
		}
	}()
	return listener.Addr().String()
}

// message reads one message of Redis' protocol, version 2.
func message(from *bufio.Reader) ([]byte, error) {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, errors.New("an empty line")
	}
	var n int
	if line[0] != '$' && line[0] != '*' {
		return line, nil
	}
	if _, err := fmt.Sscanf(string(line[1:]), "%d", &n); err != nil || n < 0 {
		return line, err
	}
	if line[0] == '$' {
		text := make([]byte, n+2)
		_, err := io.ReadFull(from, text)
		return append(line, text...), err
	}
	for range n {
		part, err := message(from)
		if err != nil {
			return nil, err
		}
		line = append(line, part...)
	}
	return line, nil
}

func TestProxiesThatKnowFewCommandsAreEnough(t *testing.T) {
	server := startRedis(t)
	for name, unknown := range map[string][]string{
		"HELLO": {"HELLO"}, "HELLO, CLIENT and SELECT": {"HELLO", "CLIENT", "SELECT"}, "SCAN and INFO too": {"HELLO", "CLIENT", "SELECT", "SCAN", "INFO", "PING"},
	} {
		t.Run(name, func(t *testing.T) {
			url := strings.Replace(server.URL, server.Address(), picky(t, server.Address(), unknown...), 1)
			c := shared(t, cache.Connection{URL: url}, masterKey())
			written(t, c, c, "a", "b")
			require.NotEmpty(t, unknown)
		})
	}
}
