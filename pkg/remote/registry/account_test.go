package registry

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// fetchAs reads a blob of h for a namespace and its account.
func fetchAs(ctx context.Context, t *testing.T, c *Client, h *hostile.Registry, access Access) {
	t.Helper()
	ref, err := image.Parse(h.Host() + "/app")
	require.NoError(t, err)
	access.Hosts = map[string]HostRule{h.Host(): {PlainHTTP: true, Private: true}}
	_, err = c.For(access).Locations(ref).Content[0].Fetch(ctx, ocispec.Descriptor{Digest: digest.FromString("x"), Size: 1}, 100)
	require.Error(t, err) // there is none
}

func TestNamespacesOfOneAccountShareItsTurns(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	release := make(chan struct{})
	h.Handle("", "/blobs/", func(w http.ResponseWriter, r *http.Request) { <-release; http.NotFound(w, r) })
	c := NewClient(Options{PerHost: 4})
	t.Cleanup(c.Close)
	var all sync.WaitGroup
	fetch := func(namespace verify.Namespace, account verify.Account) {
		all.Go(func() { fetchAs(t.Context(), t, c, h, Access{Namespace: namespace, Account: account}) })
	}
	reached := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(h.Requests()) == n }, time.Minute, time.Millisecond)
	}
	fetch("a", "shared")
	fetch("b", "shared")
	reached(2)
	require.Nil(t, turnsAt(c, h.Host()).Try("shared"), "half of the connections are for others")
	fetch("a", "shared")
	fetch("b", "shared")
	fetch("c", "")
	fetch("d", "")
	reached(4)
	close(release)
	all.Wait()
	require.Len(t, h.Requests(), 6)
}

func turnsAt(c *Client, host string) *fair.Turns[verify.Account] {
	found, leave := c.turns(host)
	leave()
	return found
}

// Whoever reaches many hosts evicts states of others, and must not reset a limit that somebody is under.
func TestAStateInUseIsNotEvicted(t *testing.T) {
	c := NewClient(Options{PerHost: 1})
	t.Cleanup(c.Close)
	first, leave := c.turns("registry.example.com")
	require.NotNil(t, first.Try("a"))
	flood := func() {
		for i := range 4 * maxHosts {
			turnsAt(c, fmt.Sprintf("h%d.example.com", i))
		}
		c.hosts.idle.(*otter.Cache[string, *fair.Turns[verify.Account]]).CleanUp()
	}
	flood()
	require.Same(t, first, turnsAt(c, "registry.example.com"))
	require.LessOrEqual(t, c.hosts.idle.(*otter.Cache[string, *fair.Turns[verify.Account]]).EstimatedSize(), maxHosts)
	second, leaveSecond := c.turns("registry.example.com")
	require.Same(t, first, second)
	leave()
	flood()
	require.Same(t, first, turnsAt(c, "registry.example.com"), "somebody uses it still")
	leaveSecond()
	require.Empty(t, c.hosts.using)
}

func TestNamespacesOfOneAccountShareItsPace(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	c := NewClient(Options{PerSecond: 1})
	t.Cleanup(c.Close)
	reached := func(namespace verify.Namespace, account verify.Account) int {
		before := len(h.Requests())
		fetchAs(t.Context(), t, c, h, Access{Namespace: namespace, Account: account})
		return len(h.Requests()) - before
	}
	// After it, a request would wait for a minute and is refused at once, however slow the machine is.
	useUp := func(namespace verify.Namespace, account verify.Account) {
		t.Helper()
		requests := c.pace(Access{Namespace: namespace, Account: account}).requests
		require.Equal(t, 2, requests.Burst(), "twice the rate")
		for range 30 {
			require.True(t, requests.ReserveN(time.Now(), 2).OK())
		}
	}
	require.Equal(t, 1, reached("a", "shared"))
	useUp("a", "shared")
	require.Zero(t, reached("a", "shared"))
	require.Zero(t, reached("b", "shared"), "the second namespace shares it")
	require.Equal(t, 1, reached("c", ""), "no account is a pace of its own")
	useUp("c", "")
	require.Zero(t, reached("c", ""))
	require.Zero(t, reached("c", "namespace/c"), "it is the namespace's own")
	require.Equal(t, 1, reached("d", ""), "nor is it an account that several share")
	c.Forget("a")
	require.Zero(t, reached("a", "shared"), "a namespace that is made again does not refill it")
}
