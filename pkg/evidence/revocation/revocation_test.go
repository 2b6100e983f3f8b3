package revocation

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// address and host are where the responder of a test is.
const (
	host    = "127.0.0.1:8080"
	address = "http://" + host
)

// pipes is a network without sockets, which a bubble can wait for.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.dialed <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr implement [net.Listener].
func (p pipes) Accept() (net.Conn, error) {
	select {
	case server := <-p.dialed:
		return server, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// run starts a Prefetcher in the bubble of t, with a responder that counts its
// requests and answers them as a test says.
func run(t *testing.T, options Options, handler http.HandlerFunc) (p *Prefetcher, asked *atomic.Int32) {
	t.Helper()
	if options.Hosts == nil {
		options.Hosts = []string{host}
	}
	network := pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	options.Dial = network.dial
	p, err := New(options, time.Now)
	require.NoError(t, err)
	asked = &atomic.Int32{}
	responder := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler(w, r)
	})}
	go func() { _ = responder.Serve(network) }()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done); require.NoError(t, responder.Close()) })
	synctest.Wait()
	return p, asked
}

func get(t *testing.T, p *Prefetcher, namespace verify.Namespace, address string) (string, error) {
	t.Helper()
	sent, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	got, err := p.For(namespace).RoundTrip(sent)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return string(content), nil
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
}

// later answers after a second, which begins to pass once whoever asked has heard that the answer is
// pending.
func later(w http.ResponseWriter, r *http.Request) {
	time.Sleep(time.Second)
	hello(w, r)
}

// answered waits for what answers later.
func answered() { time.Sleep(2 * time.Second) }

// kept counts the responses of a namespace and the bytes of all.
func kept(t *testing.T, p *Prefetcher, namespace verify.Namespace) (count, own, total int) {
	t.Helper()
	for _, r := range p.set.Keys() {
		known, err := p.set.Known(r)
		require.NoError(t, err)
		total += len(known.Value)
		if r.namespace == namespace {
			count++
			own += len(known.Value)
		}
	}
	return count, own, total
}

func TestAnswersFromMemoryOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, asked := run(t, Options{}, later)
		_, err := get(t, p, "team-a", address+"/list")
		require.ErrorIs(t, err, errPending)
		require.False(t, verify.IsPermanent(err))
		answered()
		content, err := get(t, p, "team-a", address+"/list")
		require.NoError(t, err)
		require.Equal(t, "GET /list ", content)
		require.EqualValues(t, 1, asked.Load())
		sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/ocsp", strings.NewReader("question"))
		require.NoError(t, err)
		_, err = p.For("team-a").RoundTrip(sent) //nolint:bodyclose // there is no response
		require.ErrorIs(t, err, errPending, "another request")
		_, err = get(t, p, "team-b", address+"/list")
		require.ErrorIs(t, err, errPending, "each namespace has its own responses")
		answered()
	})
}

func TestCommandsWaitForTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := run(t, Options{Wait: true}, hello)
		content, err := get(t, p, "", address+"/list")
		require.NoError(t, err)
		require.Equal(t, "GET /list ", content)
	})
}

func TestAsksOnlyHostsThatAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const port = "8080"
		p, asked := run(t, Options{Hosts: []string{"ocsp.example.com", "127.0.0.1", "127.0.0.2:" + port}, Wait: true}, hello)
		for _, wrong := range []string{
			address, "http://localhost:" + port, "http://ocsp.example.com:8080/", "ftp://ocsp.example.com/", "ldap://ocsp.example.com/",
			"http://user@ocsp.example.com/", "http://ocsp.example.com.evil.example/", "http://" + strings.Repeat("x", 3000) + "/",
			"file:///etc/passwd", "http:///x", "http://evil.example/ocsp.example.com",
		} {
			_, err := get(t, p, "team-a", wrong)
			require.True(t, verify.IsPermanent(err), "%.100s: %v", wrong, err)
		}
		require.Zero(t, asked.Load())
		for _, right := range []string{"http://127.0.0.1/", "http://127.0.0.1:80/", "http://OCSP.example.com/x", "http://127.0.0.2:8080"} {
			_, err := get(t, p, "team-a", right)
			require.NoError(t, err, right)
		}
	})
	for _, wrong := range []string{"", "http://x", "*.example.com", "a b", "x/y", "u@x", "x?y"} {
		_, err := New(Options{Hosts: []string{wrong}}, time.Now)
		require.Error(t, err, wrong)
	}
}

func TestFailuresAreNotAnswersAndAreRetried(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"a redirect":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"not found":   http.NotFound,
		"no end":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"far too big": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxResponse+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fail atomic.Bool
				fail.Store(true)
				p, asked := run(t, Options{Wait: true}, func(w http.ResponseWriter, r *http.Request) {
					if fail.Load() {
						handler(w, r)
						return
					}
					hello(w, r)
				})
				_, err := get(t, p, "team-a", address)
				require.Error(t, err)
				require.False(t, verify.IsPermanent(err))
				before := asked.Load()
				_, err = get(t, p, "team-a", address)
				require.Error(t, err)
				require.Equal(t, before, asked.Load(), "not at once")
				fail.Store(false)
				time.Sleep(firstRetry)
				synctest.Wait()
				_, err = get(t, p, "team-a", address)
				require.NoError(t, err)
			})
		})
	}
}

func TestOldResponsesAreRefreshedAndTheLastGoodOneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Value
		state.Store("first")
		p, _ := run(t, Options{Refresh: time.Hour, Wait: true}, func(w http.ResponseWriter, _ *http.Request) {
			if state.Load() == "down" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, state.Load())
		})
		answer := func() string {
			content, err := get(t, p, "team-a", address)
			require.NoError(t, err)
			return content
		}
		require.Equal(t, "first", answer())
		state.Store("second")
		time.Sleep(50 * time.Minute)
		require.Equal(t, "first", answer(), "it is not old")
		time.Sleep(11 * time.Minute)
		require.Equal(t, "second", answer())
		state.Store("down")
		time.Sleep(61 * time.Minute)
		require.Equal(t, "second", answer())
		time.Sleep(25*time.Hour + time.Minute)
		require.Empty(t, p.set.Keys(), "nobody used it for a day")
	})
}

func TestEachNamespaceHasAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := run(t, Options{Wait: true}, hello)
		_, err := get(t, p, "team-b", address+"/list")
		require.NoError(t, err)
		for i := range 3 * maxResponses {
			_, err := get(t, p, "team-a", fmt.Sprintf("%s/%d", address, i))
			require.NoError(t, err)
		}
		count, _, _ := kept(t, p, "team-a")
		require.Equal(t, maxResponses, count)
		count, _, _ = kept(t, p, "team-b")
		require.Equal(t, 1, count)
		p.Forget("team-a")
		require.Len(t, p.set.Keys(), 1)
		_, own, total := kept(t, p, "team-b")
		require.Equal(t, len("GET /list "), own)
		require.Equal(t, own, total)
	})
}

func TestANamespaceWithTooManyPendingResponsesIsToldToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		p, asked := run(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/quick" {
				later(w, r)
				return
			}
			<-hold
			hello(w, r)
		})
		defer close(hold)
		var last error
		for i := range maxPending + 1 {
			_, last = get(t, p, "team-a", fmt.Sprintf("%s/%d", address, i))
			require.Error(t, last)
		}
		require.ErrorContains(t, last, "too many revocation answers")
		synctest.Wait()
		require.EqualValues(t, maxFetchesEach, asked.Load())
		_, err := get(t, p, "team-b", address+"/quick")
		require.ErrorIs(t, err, errPending)
		answered()
		_, err = get(t, p, "team-b", address+"/quick")
		require.NoError(t, err, "another namespace does not wait for slow responders of the first")
	})
}

func TestBytesAreBoundedPerNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := make([]byte, maxResponse)
		p, _ := run(t, Options{Wait: true}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(large) })
		for i := range maxBytesTotal/maxResponse + 1 { // more than all may keep
			for _, namespace := range []verify.Namespace{"team-a", verify.Namespace(fmt.Sprintf("team-%d", i))} {
				if namespace == "team-a" && i > maxBytes/maxResponse {
					continue // it has asked for more than it may keep
				}
				_, err := p.content(t.Context(), request{namespace: namespace, method: http.MethodGet, address: fmt.Sprintf("%s/%d", address, i)})
				require.NoError(t, err)
				time.Sleep(time.Second)
				_, own, total := kept(t, p, "team-a")
				require.LessOrEqual(t, own, maxBytes)
				require.LessOrEqual(t, total, maxBytesTotal)
			}
		}
	})
}

func TestTheNamespacesOfOneAccountShareItsFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		account := func(n verify.Namespace) verify.Account {
			if strings.HasPrefix(string(n), "merger-") {
				return "tenant/merger"
			}
			return n.Account()
		}
		p, asked := run(t, Options{Account: account}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/quick" {
				later(w, r)
				return
			}
			<-hold
			hello(w, r)
		})
		defer close(hold)
		for i := range 40 {
			_, err := get(t, p, verify.Namespace(fmt.Sprintf("merger-%d", i)), address+"/slow")
			require.ErrorIs(t, err, errPending)
		}
		synctest.Wait()
		require.EqualValues(t, maxFetchesEach, asked.Load())
		_, err := get(t, p, "team-b", address+"/quick")
		require.ErrorIs(t, err, errPending)
		answered()
		_, err = get(t, p, "team-b", address+"/quick")
		require.NoError(t, err)
	})
}

func TestNothingThatAResponderSaysIsInAnError(t *testing.T) {
	const canary = "canary-7f3a"
	for name, handler := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusForbidden) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+canary+"/", http.StatusFound)
		},
		"a header without end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-"+canary, strings.Repeat(canary, 1<<20))
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", canary)
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, asked := run(t, Options{Wait: true}, handler)
				_, err := get(t, p, "team-a", address)
				require.Error(t, err)
				require.False(t, verify.IsPermanent(err))
				require.NotContains(t, err.Error(), canary)
				require.EqualValues(t, 1, asked.Load())
			})
		})
	}
}

func TestAResponderOnAMetadataServiceIsNotAsked(t *testing.T) {
	hosts := []string{"169.254.169.254", "168.63.129.16", "[fd00:ec2::254]"}
	p, err := New(Options{Hosts: hosts, Wait: true}, time.Now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	for _, host := range hosts {
		_, err = get(t, p, "team-a", "http://"+host+"/latest/meta-data/")
		require.ErrorIs(t, err, egress.ErrMetadata)
	}
}
