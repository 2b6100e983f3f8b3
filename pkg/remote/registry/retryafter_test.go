package registry_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// store is a Store of a namespace that logs in at a host.
func store(namespace, host string) []registry.Store {
	return []registry.Store{{Source: policy.ObjectRef{Kind: "Store", Namespace: namespace, Name: "own"}, Registries: []string{host},
		Logins: loginFor(host, registry.Credential{Username: namespace, Password: "p"})}}
}

func TestRetryAfterPausesAllAccountsAtAHostThatAClusterStoreNames(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/blobs/", hostile.Status(429, "Retry-After: 3600"))
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	ask := func(ns verify.Namespace, account verify.Account, stores ...registry.Store) int {
		before := len(h.Requests())
		_, err := of(client, registry.Access{Namespace: ns, Account: account, Hosts: plain(h.Host()), Stores: stores}).
			Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
		require.EqualValues(t, "transient", reason(t, err))
		if len(h.Requests()) == before {
			require.ErrorContains(t, err, h.Host()+" asked for a pause")
		}
		return len(h.Requests()) - before
	}
	require.Equal(t, 1, ask("own-login", "", store("own-login", h.Host())...))
	require.Equal(t, 0, ask("own-login", "", store("own-login", h.Host())...))
	require.Equal(t, 1, ask("team-a", ""), "the limit of a team's login is its own")
	require.Equal(t, 0, ask("team-a", ""))
	require.Equal(t, 0, ask("team-b", ""), "accounts share what the registry asks for")
	require.Equal(t, 1, ask("other-login", "", store("other-login", h.Host())...), "a login has its own limit")
	client.Forget("team-a")
	require.Equal(t, 0, ask("team-a", ""), "a namespace that is made again does not end the pause")
	client.Forget("own-login")
	require.Equal(t, 1, ask("own-login", "", store("own-login", h.Host())...))
}

func TestRetryAfterPausesOneTenantOnlyAtAHostThatItsStoreNames(t *testing.T) {
	made, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	var asked atomic.Int32
	made.SetIntercept(func(w http.ResponseWriter, _ *http.Request) bool {
		asked.Add(1)
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	// No ClusterStore names it, so the admin says where it is.
	endpoints, err := egress.ParseEndpoints([]string{made.Host() + "=" + made.Host()})
	require.NoError(t, err)
	client := registry.NewClient(registry.Options{Endpoints: endpoints})
	t.Cleanup(client.Close)
	ask := func(ns verify.Namespace, account verify.Account) int {
		before := asked.Load()
		stores := []registry.Store{{Source: policy.ObjectRef{Kind: "Store", Namespace: string(ns), Name: "own"}, Registries: []string{made.Host()},
			RootCAs: made.CertificatePEM()}}
		_, err := of(client, registry.Access{Namespace: ns, Account: account, Stores: stores}).Fetch(t.Context(), parse(t, made.Host()+"/app"), descriptor(7), 100)
		require.EqualValues(t, "transient", reason(t, err))
		return int(asked.Load() - before)
	}
	require.Equal(t, 1, ask("team-a", ""))
	require.Equal(t, 0, ask("team-a", ""))
	require.Equal(t, 1, ask("team-b", ""), "an account that makes a registry ask for a pause silences nobody else")
	require.Equal(t, 1, ask("dev", "tenant/x"))
	require.Equal(t, 0, ask("prod", "tenant/x"), "namespaces of one account are one client")
	client.Forget("dev")
	require.Equal(t, 0, ask("prod", "tenant/x"), "deleting a namespace does not end the account's pause")
}

func TestARegistryThatRefusesOneAccountForEverDoesNotStopAnother(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/blobs/", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/proxied/") { // to a server of the account
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte("content"))
	})
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = of(client, registry.Access{Namespace: "flood", Hosts: plain(h.Host())}).Fetch(ctx, parse(t, h.Host()+"/proxied"), descriptor(7), 100)
			}
		})
	}
	require.Eventually(t, func() bool { return len(h.Requests()) > 0 }, time.Minute, time.Millisecond)
	served := 0
	for range 50 {
		// Each waits for a part of a second at most; a slow machine may need more.
		if _, err := of(client, registry.Access{Namespace: "quiet", Hosts: plain(h.Host())}).
			Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100); err == nil {
			served++
		}
	}
	stop()
	all.Wait()
	require.Equal(t, 50, served)
}

func TestRequestsThatWaitForAConnectionAreNotSentDuringAPause(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	release := make(chan struct{})
	h.Handle("", "/blobs/", func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	var e exchanges
	client := registry.NewClient(registry.Options{PerHost: 2, Observe: e.observe})
	t.Cleanup(client.Close)
	var all sync.WaitGroup
	for range 50 { // one is sent, as half of the connections are for others
		all.Go(func() {
			_, _ = of(client, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())}).Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
		})
	}
	require.Eventually(t, func() bool { return len(h.Requests()) == 1 }, time.Minute, time.Millisecond)
	close(release)
	all.Wait()
	require.Len(t, h.Requests(), 1)
	outcomes := map[string]int{}
	for _, x := range e.take() {
		outcomes[x]++
	}
	require.Equal(t, map[string]int{"fetch rate_limited": 1, "fetch paused": 49}, outcomes)
}
