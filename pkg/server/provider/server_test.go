package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestOptionsThatCanOnlyBeMistakesAreRefused(t *testing.T) {
	good, noClientCA := prepare(t, byRepository, nil), withoutClientCA()
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no client CA":             {func(o *Options) { o.TLS = noClientCA }, "anyone could ask"},
		"client CA and anyone":     {func(o *Options) { o.InsecureNoClientAuth = true }, "contradict"},
		"client CA to come":        {func(o *Options) { o.TLS, o.InsecureNoClientAuth = &fakeTLS{}, true }, "contradict"},
		"names without client CA":  {func(o *Options) { o.TLS, o.InsecureNoClientAuth = noClientCA, true }, "without a client CA"},
		"no TLS source":            {func(o *Options) { o.TLS = nil }, "no TLS source"},
		"no address":               {func(o *Options) { o.Address = "" }, "no address"},
		"verify timeout too short": {func(o *Options) { o.VerifyTimeout = time.Millisecond }, "verify timeout"},
		"negative verify timeout":  {func(o *Options) { o.VerifyTimeout = -time.Second }, "verify timeout"},
		"mutate timeout too long":  {func(o *Options) { o.MutateTimeout = time.Hour }, "mutate timeout"},
		"negative requests":        {func(o *Options) { o.MaxKeys = -1 }, "negative"},
		"negative grace":           {func(o *Options) { o.GracePeriod = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Address: "127.0.0.1:0", TLS: good.tls, ClientNames: []string{gatekeeperName}}
			c.change(&options)
			_, err := New(byRepository, pinning, quiet(), options)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := New(nil, pinning, quiet(), Options{Address: "127.0.0.1:0", TLS: good.tls})
	require.Error(t, err)
}

func TestServesOnlyTheClientsItWasToldOf(t *testing.T) {
	w := serve(t, byRepository, nil)
	stranger := newAuthority(t, "authority") // same name, another key
	fromServer, err := w.authority.IssueServer(gatekeeperName)
	require.NoError(t, err)
	response, err := w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Len(t, response.Items, 1)
	for name, client := range map[string]*http.Client{
		"no certificate":             w.caller(t, nil),
		"another CA":                 w.caller(t, issueClient(t, stranger, gatekeeperName)),
		"another name":               w.caller(t, issueClient(t, w.authority, "evil.example.com")),
		"no name but a common name":  w.caller(t, issueClient(t, w.authority)),
		"longer name":                w.caller(t, issueClient(t, w.authority, "x."+gatekeeperName)),
		"wildcard":                   w.caller(t, issueClient(t, w.authority, "*.gatekeeper-system.svc")),
		"not a client's certificate": w.caller(t, fromServer),
	} {
		_, err := w.send(t, client, "/v1/verify", "r.example.com/a")
		require.Error(t, err, name)
	}
	response, err = w.send(t, w.caller(t, issueClient(t, w.authority, "other", strings.ToUpper(gatekeeperName))), "/v1/verify", "r.example.com/a")
	require.NoError(t, err, "one of several names, DNS names ignore case")
	require.Len(t, response.Items, 1)
}

func TestServesAnyoneOnlyIfToldSo(t *testing.T) {
	anyone := withoutClientCA()
	w := serve(t, byRepository, func(o *Options) { o.TLS, o.ClientNames, o.InsecureNoClientAuth = anyone, nil, true })
	anyone.certificate.Store(w.tls.certificate.Load())
	response, err := w.send(t, w.caller(t, nil), "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Len(t, response.Items, 1)
}

func dial(t *testing.T, w *testServer, change func(*tls.Config)) (*tls.Conn, error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{w.client.TLS}}
	change(config)
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(context.Background(), "tcp", w.server.Address())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn), nil
}

func TestSpeaksTLS13AndHTTP11Only(t *testing.T) {
	w := serve(t, byRepository, nil)
	_, err := dial(t, w, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	require.ErrorContains(t, err, "protocol version")
	_, err = dial(t, w, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	require.ErrorContains(t, err, "no application protocol")
	conn, err := dial(t, w, func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} })
	require.NoError(t, err)
	require.Equal(t, uint16(tls.VersionTLS13), conn.ConnectionState().Version)
	require.Equal(t, "http/1.1", conn.ConnectionState().NegotiatedProtocol)
}

func TestNoSessionIsResumed(t *testing.T) {
	w := serve(t, byRepository, nil)
	sessions := tls.NewLRUClientSessionCache(8)
	for range 3 {
		conn, err := dial(t, w, func(c *tls.Config) { c.ClientSessionCache = sessions })
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		_, err = io.ReadAll(conn) // tickets would come with the first bytes
		require.NoError(t, err)
		require.False(t, conn.ConnectionState().DidResume)
	}
}

func TestClientOfARemovedAuthorityIsRefusedOnNewAndOnOpenConnections(t *testing.T) {
	w := serve(t, byRepository, nil)
	old := w.caller(t, w.client)
	response, err := w.send(t, old, "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Len(t, response.Items, 1)

	next := newAuthority(t, "next")
	w.tls.trust(w.authority, next)
	fresh := w.caller(t, issueClient(t, next, gatekeeperName))
	for _, client := range []*http.Client{old, fresh} {
		response, err = w.send(t, client, "/v1/verify", "r.example.com/a")
		require.NoError(t, err)
		require.Len(t, response.Items, 1, "both CAs overlap")
	}
	w.tls.trust(next)
	response, err = w.send(t, old, "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Contains(t, response.SystemError, "not authorized", "the open connection")
	_, err = w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a")
	require.Error(t, err, "a new connection")
	response, err = w.send(t, fresh, "/v1/verify", "r.example.com/a")
	require.NoError(t, err)
	require.Len(t, response.Items, 1)
}

func TestRequestWithoutAVerifiedClientIsNotAuthorized(t *testing.T) {
	w := prepare(t, byRepository, nil)
	response, status := post(t, w.server.handler, "/v1/verify", requestBody(t, "r.example.com/a"))
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, response.Response.SystemError, "no certificate")
}

func TestCertificatesAreReloadedUnderLoadWithoutAFailedRequest(t *testing.T) {
	w := serve(t, byRepository, nil)
	next := newAuthority(t, "next")
	w.tls.trust(w.authority, next)
	var clients []*http.Client
	for i, authority := range []int{0, 1, 0, 1} {
		c := w.caller(t, w.client, next)
		if authority == 1 {
			c = w.caller(t, issueClient(t, next, gatekeeperName), next)
		}
		if i < 2 {
			transport, _ := c.Transport.(*http.Transport)
			transport.DisableKeepAlives = true // a handshake for every request
		}
		clients = append(clients, c)
	}
	var stop atomic.Bool
	var sent atomic.Int64
	var load sync.WaitGroup
	for _, client := range clients {
		load.Go(func() {
			for !stop.Load() {
				response, err := w.send(t, client, "/v1/verify", "r.example.com/a")
				if err != nil || len(response.Items) != 1 {
					t.Errorf("a request failed: %v %s", err, response.SystemError)
					return
				}
				sent.Add(1)
			}
		})
	}
	for range 10 {
		current, reached := w.server.tls.configured.Load(), sent.Load()
		w.issueServer(t, next)
		require.Eventually(t, func() bool { return current != w.server.tls.configured.Load() && sent.Load() > reached+4 }, time.Minute, time.Millisecond)
	}
	stop.Store(true)
	load.Wait()
}

func TestStopFinishesWhatIsUnderWay(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := serve(t, deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		close(started)
		<-release
		return verdict(policy.Allowed, ns, ref)
	}), nil)
	answered := make(chan error, 1)
	go func() {
		response, err := w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a")
		if err == nil && len(response.Items) != 1 {
			err = fmt.Errorf("system error: %s", response.SystemError)
		}
		answered <- err
	}()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	require.Eventually(t, func() bool {
		status, _ := get(t, "http://"+w.server.HealthAddress()+"/readyz")
		conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", w.server.Address())
		if err == nil {
			_ = conn.Close()
		}
		return status == http.StatusServiceUnavailable && err != nil
	}, time.Minute, time.Millisecond)
	close(release)
	require.NoError(t, <-answered)
	require.NoError(t, <-stopped)
}

func TestStopDoesNotWaitForever(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	w := prepare(t, deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		close(started)
		<-release
		return verdict(policy.Allowed, ns, ref)
	}), func(o *Options) { o.GracePeriod = time.Millisecond })
	defer close(release)
	require.NoError(t, w.server.Listen(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	go func() { _, _ = w.send(t, w.caller(t, w.client), "/v1/verify", "r.example.com/a") }()
	<-started
	cancel()
	require.ErrorContains(t, <-ended, "finish requests")
}

func TestFirstListenerErrorEndsTheServer(t *testing.T) {
	w := prepare(t, byRepository, nil)
	require.NoError(t, w.server.Listen(context.Background()))
	require.NoError(t, w.server.scrape.listener.Close())
	require.ErrorContains(t, w.server.Run(context.Background()), "serve on")
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := prepare(t, byRepository, func(o *Options) { o.Address = listener.Addr().String() })
	require.ErrorContains(t, taken.server.Run(context.Background()), "listen on")
}

func TestReadyOnlyWhenToldSoAndServing(t *testing.T) {
	var ready atomic.Bool
	w := prepare(t, byRepository, func(o *Options) {
		o.Ready = func() error {
			if !ready.Load() {
				return fmt.Errorf("resources are not loaded")
			}
			return nil
		}
	})
	require.Error(t, w.server.ready(), "not serving yet")
	w.run(t)
	status, text := get(t, "http://"+w.server.HealthAddress()+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "resources are not loaded")
	ready.Store(true)
	status, _ = get(t, "http://"+w.server.HealthAddress()+"/readyz")
	require.Equal(t, http.StatusOK, status)
	status, _ = get(t, "http://"+w.server.HealthAddress()+"/healthz")
	require.Equal(t, http.StatusOK, status)
}

func TestSlowBodyIsAnsweredAtTheDeadlineAndHoldsNoPlace(t *testing.T) {
	w := serve(t, byRepository, func(o *Options) { o.VerifyTimeout = minTimeout })
	conn, err := dial(t, w, func(*tls.Config) {})
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "POST /v1/verify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), " 408 ")
	_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	require.Contains(t, parseAnswer(t, body).Response.SystemError, "did not arrive in time")
	require.True(t, w.server.handler.door.Take("somebody", defaultMaxKeys, 0), "it takes no place")
}

func TestUncleanPathIsAnsweredNotRedirected(t *testing.T) {
	w := serve(t, byRepository, nil)
	for _, path := range []string{"//v1/verify", "/v1/verify/", "/v1/../v1/verify", "/v1/%76erify", "*"} {
		conn, err := dial(t, w, func(*tls.Config) {})
		require.NoError(t, err)
		method := "POST"
		if path == "*" {
			method = "OPTIONS"
		}
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method, path)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
		require.Contains(t, parseAnswer(t, body).Response.SystemError, "no such path", path)
		require.NotContains(t, string(answer), "Location:")
	}
}
