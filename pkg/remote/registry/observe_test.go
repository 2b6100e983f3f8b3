package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// exchanges collects what an observer is told.
type exchanges struct {
	mu   sync.Mutex
	seen []registry.Exchange
}

func (e *exchanges) observe(x registry.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, x)
}

// take returns what was seen as "stage outcome", and forgets it.
func (e *exchanges) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, x := range e.seen {
		all = append(all, string(x.Stage)+" "+string(x.Outcome))
	}
	e.seen = nil
	return all
}

func TestTheObserverIsToldWhatCameOfEachRequest(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	secure, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, secure.Close()) })
	closed := hostile.New()
	closed.Close()
	for path, status := range map[string]int{"ok": 200, "found": 302, "unauthorized": 401, "forbidden": 403, "missing": 404, "limited": 429, "strange": 418,
		"broken": 500} {
		h.Handle("", "/"+path+"/", hostile.Status(status, "Location: http://"+h.Host()+"/elsewhere"))
	}
	h.Handle("", "/slow/", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	open := plain(h.Host(), closed.Host())
	open[secure.Host()] = registry.HostRule{Private: true}
	for name, c := range map[string]struct {
		image string
		rules map[string]registry.HostRule
		want  string
	}{
		"an answer":                 {h.Host() + "/ok", open, "fetch ok"},
		"no such blob":              {h.Host() + "/missing", open, "fetch not_found"},
		"no access":                 {h.Host() + "/unauthorized", open, "fetch unauthorized"},
		"access denied":             {h.Host() + "/forbidden", open, "fetch forbidden"},
		"too many requests":         {h.Host() + "/limited", open, "fetch rate_limited"},
		"an unusual status":         {h.Host() + "/strange", open, "fetch client_error"},
		"a fault of the registry":   {h.Host() + "/broken", open, "fetch server_error"},
		"no answer in time":         {h.Host() + "/slow", open, "fetch timeout"},
		"nobody listens":            {closed.Host() + "/app", open, "fetch unreachable"},
		"a certificate of nobody":   {secure.Host() + "/app", open, "fetch untrusted"},
		"a private address":         {secure.Host() + "/app", nil, "fetch refused"},
		"no TLS, which is not open": {h.Host() + "/ok", map[string]registry.HostRule{h.Host(): {Private: true}}, "fetch unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e exchanges
			timeout := 30 * time.Second
			if name == "no answer in time" {
				timeout = time.Second
			}
			s := session(t, registry.Options{Observe: e.observe, RequestTimeout: timeout}, registry.Access{Namespace: "team-a", Hosts: c.rules})
			_, _ = s.Fetch(t.Context(), parse(t, c.image), descriptor(7), 100) // the exchange matters here
			require.Contains(t, e.take(), c.want)
		})
	}
}

func TestTheObserverSeesStagesTokensAndPauses(t *testing.T) {
	var e exchanges
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/manifests/v1", hostile.Status(401, `WWW-Authenticate: Bearer realm="http://`+h.Host()+`/v2/token",service="x"`))
	h.Handle("", "/v2/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"access_token":"t"}`) })
	h.Handle("", "/blobs/", hostile.Status(429, "Retry-After: 20"))
	s := session(t, registry.Options{Observe: e.observe}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
	ref := parse(t, h.Host()+"/app:v1")
	_, err := s.Resolve(t.Context(), ref)
	require.Error(t, err)
	require.Equal(t, []string{"resolve unauthorized", "token ok", "resolve unauthorized"}, e.take()[:3])
	_, _ = s.Referrers(t.Context(), ref.WithDigest(someDigest))
	for _, x := range e.take() {
		require.True(t, strings.HasPrefix(x, "list ") || strings.HasPrefix(x, "token "), x)
	}
	_, _ = s.Fetch(t.Context(), ref, descriptor(7), 100)
	_, _ = s.Fetch(t.Context(), ref, descriptor(7), 100)
	require.Equal(t, []string{"fetch rate_limited", "fetch paused"}, e.take())
}

func TestTheObserverSeesWhatWaitedInVain(t *testing.T) {
	var e exchanges
	h := hostile.New()
	t.Cleanup(h.Close)
	s := session(t, registry.Options{Observe: e.observe, PerSecond: 1}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
	require.Error(t, flood(t, func(ctx context.Context) error {
		_, err := s.Fetch(ctx, parse(t, h.Host()+"/app:v1"), descriptor(7), 100)
		return err
	}))
	require.Contains(t, e.take(), "fetch overloaded")
}

// Whoever names an image names a host, and may name another one each time.
func TestTheObserverIsNotToldHostsThatOnlyAnImageNames(t *testing.T) {
	var e exchanges
	h := hostile.New()
	t.Cleanup(h.Close)
	client := registry.NewClient(registry.Options{Observe: e.observe})
	t.Cleanup(client.Close)
	for _, hosts := range []map[string]registry.HostRule{nil, plain(h.Host())} {
		_, _ = of(client, registry.Access{Namespace: "team-a", Hosts: hosts}).Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
	}
	require.Empty(t, e.seen[0].Registry)
	require.Equal(t, h.Host(), e.seen[1].Registry)
	require.Positive(t, e.seen[1].Duration)
}
