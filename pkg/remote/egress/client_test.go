package egress

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// canary is what a server says; it must not be repeated anywhere.
const canary = "canary-7f3a"

// attacker is a server on loopback that remembers what reached it.
type attacker struct {
	*httptest.Server
	mu      sync.Mutex
	reached []*http.Request
}

func attack(t *testing.T, handler http.HandlerFunc) *attacker {
	t.Helper()
	a := &attacker{}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.reached = append(a.reached, r)
		a.mu.Unlock()
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *attacker) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reached
}

func (a *attacker) host() string { return strings.TrimPrefix(a.URL, "https://") }

func (a *attacker) roots() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
}

// ask asks the attacker, with a token, and requires that nothing of the answer is in the
// error.
func ask(t *testing.T, options Options, address string) (string, error) {
	t.Helper()
	client, err := New(t.Context(), options)
	require.NoError(t, err)
	defer client.Close()
	status, body, err := client.Get(t.Context(), address, http.Header{"Authorization": {"Bearer secret"}, "X-Vault-Token": {"secret"}})
	if err != nil {
		var own *Error
		require.ErrorAs(t, err, &own)
		for _, secret := range []string{canary, "secret", "/path"} {
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, own, own), secret)
		}
		return "", err
	}
	require.Equal(t, http.StatusOK, status)
	return string(body), nil
}

func (a *attacker) named() Options {
	return Options{Hosts: []string{a.host()}, Reach: Private, Roots: a.roots()}
}

func cause(t *testing.T, err error) Cause {
	t.Helper()
	var own *Error
	require.ErrorAs(t, err, &own)
	return own.Cause
}

func TestAsksListedHostsAndNoOthers(t *testing.T) {
	a := attack(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	got, err := ask(t, a.named(), a.URL+"/path")
	require.NoError(t, err)
	require.Equal(t, "hello", got)
	require.Len(t, a.requests(), 1)
	_, port, _ := net.SplitHostPort(a.host())
	for name, hosts := range map[string][]string{"none": nil, "another port": {"127.0.0.1:1"}, "the default port": {"127.0.0.1"},
		"another name": {"localhost:" + port}} {
		options := a.named()
		options.Hosts = hosts
		_, err := ask(t, options, a.URL+"/path")
		require.Equal(t, NotListed, cause(t, err), name)
	}
	for _, address := range []string{"https://u:secret@" + a.host() + "/path", "https://127.0.0.1:0" + port, "https://localhost:" + port} {
		_, err := ask(t, a.named(), address)
		require.Equal(t, NotListed, cause(t, err), address)
	}
	_, err = ask(t, a.named(), "http://"+a.host()+"/path")
	require.Equal(t, Insecure, cause(t, err))
	_, err = ask(t, a.named(), "ftp://"+a.host()+"/path")
	require.Equal(t, Insecure, cause(t, err))
	require.Len(t, a.requests(), 1, "nothing else arrived")
	options := a.named()
	options.Roots = nil
	_, err = ask(t, options, a.URL)
	require.Equal(t, Untrusted, cause(t, err))
	options.Roots = []byte("no certificate")
	_, err = New(t.Context(), options)
	require.ErrorIs(t, err, ErrNoCertificate)
}

func TestAListedHostOnAPrivateAddressIsRefusedUnlessAnAdminNamedIt(t *testing.T) {
	a := attack(t, nil)
	options := a.named()
	options.Reach = Public
	_, err := ask(t, options, a.URL)
	require.ErrorIs(t, err, ErrAddress)
	options = Options{Hosts: []string{"169.254.169.254", "[fd00:ec2::254]", "168.63.129.16"}, Reach: Private, PlainHTTP: true}
	for _, host := range options.Hosts {
		_, err := ask(t, options, "http://"+host+"/latest/meta-data/")
		require.ErrorIs(t, err, ErrMetadata)
	}
	require.Empty(t, a.requests())
}

func TestRedirectsAreNotFollowedAndCarryNothing(t *testing.T) {
	elsewhere := attack(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, target := range map[string]string{"unlisted": elsewhere.URL + "/" + canary, "http": "http://" + elsewhere.host(),
			"metadata": "http://169.254.169.254/" + canary, "itself": "/" + canary} {
			a := attack(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", target)
				w.WriteHeader(status)
				fmt.Fprint(w, canary)
			})
			options := a.named()
			options.Hosts = append(options.Hosts, elsewhere.host()) // listed, and not followed either
			_, err := ask(t, options, a.URL+"/path")
			require.Equal(t, Redirected, cause(t, err), name)
			require.Len(t, a.requests(), 1)

			client, err := New(t.Context(), options)
			require.NoError(t, err)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+"/path", strings.NewReader("secret"))
			require.NoError(t, err)
			_, err = client.HTTP().Do(r) //nolint:bodyclose // there is no response
			require.Equal(t, Redirected, cause(t, err), "as libraries use it")
			require.NotContains(t, err.Error(), canary)
			client.Close()
		}
	}
	require.Empty(t, elsewhere.requests())
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	proxy, a := attack(t, nil), attack(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	_, err := ask(t, a.named(), a.URL)
	require.NoError(t, err)
	transport, err := NewTransport(Pool{})
	require.NoError(t, err)
	require.Nil(t, transport.Proxy, "Go reads the environment once, so the request above does not prove it")
	require.Empty(t, proxy.requests())
}

func TestAnswersAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		cause   Cause
	}{
		"an endless body": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(canary, 1024)); err != nil {
					return
				}
			}
		}, TooLarge},
		"one byte too many": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1001)) }, TooLarge},
		"a body that says too much": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000000000")
			fmt.Fprint(w, strings.Repeat("x", 2000))
		}, TooLarge},
		"a header too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-"+canary, strings.Repeat(canary, maxResponseHeaderBytes))
		}, Broken},
		"too many headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range maxResponseHeaderBytes {
				w.Header().Set(fmt.Sprintf("X-%s-%d", canary, i), canary)
			}
		}, Broken},
		"a cut body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, canary)
		}, Broken},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(buffered, "HTTP/1.1 %s %s\r\n\r\n", canary, canary)
				_ = buffered.Flush()
				_ = conn.Close()
			}
		}, Broken},
	} {
		t.Run(name, func(t *testing.T) {
			a := attack(t, c.handler)
			options := a.named()
			options.MaxBytes = 1000
			_, err := ask(t, options, a.URL)
			require.Equal(t, c.cause, cause(t, err), "%v", err)
		})
	}
	a := attack(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1000)) })
	options := a.named()
	options.MaxBytes = 1000
	got, err := ask(t, options, a.URL)
	require.NoError(t, err)
	require.Len(t, got, 1000)
}

func TestACompressedAnswerIsNotUnpacked(t *testing.T) {
	a := attack(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Accept-Encoding")) })
	got, err := ask(t, a.named(), a.URL)
	require.NoError(t, err)
	require.Empty(t, got)
}

// pipe returns a network whose one server is handle, without sockets, so that a bubble
// can wait for it.
func pipe(handle func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go handle(server)
		return client, nil
	}
}

func TestSlowServersEndAtTheDeadline(t *testing.T) {
	for name, answer := range map[string]string{
		"that says nothing": "", "with a slow header": "HTTP/1.1 200 OK\r\nX-", "with a slow body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + canary,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := Options{Hosts: []string{"slow.example.com"}, PlainHTTP: true, Timeout: time.Minute, Dial: pipe(func(conn net.Conn) {
					defer conn.Close()
					_, _ = conn.Read(make([]byte, 4096))
					gone := make(chan struct{})
					go func() { _, _ = io.Copy(io.Discard, conn); close(gone) }()
					for next := answer; ; next = answer[:min(1, len(answer))] { // a byte a second, for ever
						_, _ = io.WriteString(conn, next)
						select {
						case <-gone:
							return
						case <-time.After(time.Second):
						}
					}
				})}
				began := time.Now()
				_, err := ask(t, options, "http://slow.example.com")
				require.Equal(t, Late, cause(t, err), "%v", err)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, time.Minute, time.Since(began))
			})
		})
	}
}

func TestClosingEndsRequestsThatALibraryLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		client, err := New(t.Context(), Options{Hosts: []string{"slow.example.com"}, PlainHTTP: true, Timeout: time.Hour, Dial: pipe(func(conn net.Conn) {
			open.Add(1)
			defer open.Add(-1)
			_, _ = io.Copy(io.Discard, conn) // it never answers
		})})
		require.NoError(t, err)
		ended := make(chan error, 3)
		for range 3 {
			go func() { // as a library that passes no context on
				r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://slow.example.com", nil)
				if err == nil {
					_, err = client.HTTP().Do(r) //nolint:bodyclose // there is no response
				}
				ended <- err
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 3, open.Load())
		client.Close()
		synctest.Wait()
		require.EqualValues(t, 0, open.Load())
		for range 3 {
			require.ErrorIs(t, <-ended, context.Canceled)
		}
		_, _, err = client.Get(t.Context(), "http://slow.example.com", nil)
		require.ErrorIs(t, err, context.Canceled, "and none begins")
	})
}

func TestRequestsEndWithTheContextOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client, err := New(ctx,
			Options{Hosts: []string{"slow.example.com"}, PlainHTTP: true, Timeout: time.Hour, Dial: pipe(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })})
		require.NoError(t, err)
		defer client.Close()
		began := time.Now()
		_, _, err = client.Get(context.Background(), "http://slow.example.com", nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestErrorsDoNotShowTheNetwork(t *testing.T) {
	for want, err := range map[Cause]error{
		Lookup:      &net.OpError{Op: "dial", Err: &net.DNSError{Name: "vault.example.com", Server: "10.0.0.53:53", Err: canary}},
		Unreachable: &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: errors.New(canary)},
		Address:     &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: ErrMetadata},
		Late:        &url.Error{Op: "Get", URL: "https://x/?" + canary, Err: context.DeadlineExceeded},
		Broken:      fmt.Errorf("malformed HTTP response %q", canary),
	} {
		got := failure("vault.example.com", err)
		require.Equal(t, want, got.Cause)
		require.Contains(t, got.Error(), "vault.example.com")
		for _, secret := range []string{canary, "10."} {
			require.NotContains(t, fmt.Sprintf("%v %#v", got, got), secret)
		}
	}
}

func TestOnlyHTTP11IsSpokenUnlessAskedFor(t *testing.T) {
	var protocol atomic.Value
	a := &attacker{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { protocol.Store(r.Proto) }))}
	a.EnableHTTP2 = true
	a.StartTLS()
	t.Cleanup(a.Close)
	_, err := ask(t, a.named(), a.URL)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1", protocol.Load())
}

func TestHostsAreComparedWhole(t *testing.T) {
	hosts, err := ParseHosts([]string{"vault.example.com", "Vault.Example.com:8200", "10.0.0.1", "[2001:DB8::1]:8200", "a_b.example.com:443"})
	require.NoError(t, err)
	again, err := ParseHosts(append(hosts, "[::1]"))
	require.NoError(t, err)
	require.Equal(t, append(hosts, "[::1]"), again, "canonical hosts are hosts")
	for address, want := range map[string]bool{
		"https://vault.example.com": true, "https://VAULT.example.com:443/x": true, "http://vault.example.com:80": true, "https://vault.example.com:8200": true,
		"https://10.0.0.1": true, "https://[2001:db8:0::1]:8200": true, "https://a_b.example.com": true,
		"https://vault.example.com:80": false, "http://vault.example.com:443": false, "https://vault.example.com:0443": false, "https://vault.example.com.": false,
		"https://x.vault.example.com": false, "https://vault.example.com.evil.example": false, "https://010.0.0.1": false, "https://[2001:db8::1]": false,
		"https://10.0.0.1:": false, "ftp://vault.example.com": false, "https://": false, "https://[fe80::1%25eth0]:8200": false, "http://a_b.example.com": false,
	} {
		parsed, err := url.Parse(address)
		require.NoError(t, err, address)
		require.Equal(t, want, hosts.Contain(parsed), address)
	}
	for _, wrong := range []string{"", "http://x", "*.example.com", "a b", "x/y", "u@x", "x?y", "x:", "x:0", "x:0443", "x:65536", "-x", "x..y", "[::1", "::1",
		"[1.2.3.4]", "[fe80::1%1]",
		strings.Repeat("x.", 127) + "x", strings.Repeat("x", 64), "ä.example"} {
		_, err := ParseHosts([]string{wrong})
		require.Error(t, err, wrong)
	}
	for label, want := range map[string]bool{"eu-central-1": true, "a": true, "": false, "-a": false, "a-": false, "a.b": false, "a/b": false, "a@b": false,
		"a:1": false, "A": false, "ä": false,
		"a b": false, "a\n": false, "a#": false, strings.Repeat("a", 64): false} {
		require.Equal(t, want, IsLabel(label), "%q", label)
	}
}

func TestTheBodyOfARequestThatIsNotSentIsClosed(t *testing.T) {
	client, err := New(t.Context(), Options{})
	require.NoError(t, err)
	closed := &closing{Reader: bytes.NewReader(nil)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://evil.example.com", closed)
	require.NoError(t, err)
	_, err = client.RoundTrip(r) //nolint:bodyclose // there is no response
	require.Equal(t, NotListed, cause(t, err))
	require.True(t, closed.closed)
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }
