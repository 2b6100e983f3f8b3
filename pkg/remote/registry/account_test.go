package registry

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

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
	fetch("a", "shared") // half of the connections are for others
	c.turns(h.Host()).await(t, "shared", 1)
	fetch("b", "shared")
	c.turns(h.Host()).await(t, "shared", 2)
	fetch("c", "")
	fetch("d", "")
	reached(4)
	close(release)
	all.Wait()
	require.Len(t, h.Requests(), 6)
}

func TestNamespacesOfOneAccountShareItsPace(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	c := NewClient(Options{PerSecond: 1})
	t.Cleanup(c.Close)
	began := time.Now()
	asked := map[verify.Account]int{} // of each account so far
	// An account has two requests at once, and another each second, however slow the machine is.
	within := func(namespace verify.Namespace, account, shared verify.Account, why string) {
		t.Helper()
		before := len(h.Requests())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		for range 5 {
			fetchAs(ctx, t, c, h, Access{Namespace: namespace, Account: account})
		}
		asked[shared] += len(h.Requests()) - before
		require.LessOrEqual(t, asked[shared], 2+int(time.Since(began).Seconds()), why)
	}
	// What the seconds may hide on a slow machine: whose pace it is.
	of := func(namespace verify.Namespace, account verify.Account) *pace {
		return c.pace(Access{Namespace: namespace, Account: account})
	}
	shared := of("a", "shared")
	require.Same(t, shared, of("b", "shared"))
	require.Same(t, of("c", ""), of("c", "namespace/c"), "it is the namespace's own")
	require.NotSame(t, of("c", ""), of("d", ""), "nor is it an account that several share")
	require.NotSame(t, shared, of("c", ""))

	within("a", "shared", "shared", "the first namespace uses what the account has")
	within("b", "shared", "shared", "the second one shares it")
	within("c", "", "namespace/c", "no account is no way around the limit")
	within("c", "", "namespace/c", "nor is asking again")
	within("c", "namespace/c", "namespace/c", "it is the namespace's own")
	within("d", "", "namespace/d", "nor is it an account that several share")
	c.Forget("a")
	within("a", "shared", "shared", "a namespace that is made again does not refill it")
	require.Same(t, shared, of("a", "shared"))
	for _, account := range []verify.Account{"shared", "namespace/c", "namespace/d"} {
		require.Positive(t, asked[account], account)
	}
}
