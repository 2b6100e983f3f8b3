package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// forward is a proxy that leads every tunnel to one place and keeps what it was asked for.
type forward struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []http.Header
	hosts  []string
	shown  int                 // certificates of clients
	answer func(conn net.Conn) // in place of a tunnel
}

func newForward(t *testing.T, to string, secure bool) *forward {
	t.Helper()
	f := &forward{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked, f.hosts = append(f.asked, r.Header.Clone()), append(f.hosts, r.Method+" "+r.Host)
		if r.TLS != nil {
			f.shown += len(r.TLS.PeerCertificates)
		}
		f.mu.Unlock()
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if f.answer != nil {
			f.answer(conn)
			return
		}
		behind, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(behind, conn); _ = behind.Close() }()
		_, _ = io.Copy(conn, behind)
	}))
	if secure {
		f.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *forward) proxy(t *testing.T) *Proxy {
	t.Helper()
	p, err := ParseProxy(f.URL)
	require.NoError(t, err)
	if f.Certificate() != nil {
		p.Roots = pemOf(f.Certificate())
	}
	return p
}

// behind is a server with TLS, and the request for it under a name that only a proxy knows.
func behind(t *testing.T) (*httptest.Server, *http.Request) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.Header.Get("Proxy-Authorization"))
	}))
	t.Cleanup(server.Close)
	// The test server's certificate is for example.com.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/", nil)
	require.NoError(t, err)
	return server, request
}

func TestATunnelIsAskedForByNameWithTheProxysCredentialsAlone(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			server, request := behind(t)
			f := newForward(t, server.Listener.Addr().String(), secure)
			p := f.proxy(t)
			p.Username, p.Password = "user", "pass"
			transport, err := NewTransport(Pool{Roots: pemOf(server.Certificate()), Proxy: p, HTTP2: true})
			require.NoError(t, err)
			t.Cleanup(transport.CloseIdleConnections)
			response, err := transport.RoundTrip(request)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, errors.Join(err, response.Body.Close()))
			require.Equal(t, "example.com ", string(body), "the server sees no credentials of the proxy")
			require.Equal(t, []string{"CONNECT example.com:443"}, f.hosts)
			require.Equal(t, "Basic dXNlcjpwYXNz", f.asked[0].Get("Proxy-Authorization"))
		})
	}
}

func TestWhatGoesWrongWithAProxyIsSaidOfTheProxy(t *testing.T) {
	say := func(text string) func(net.Conn) {
		return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
	}
	for name, c := range map[string]struct {
		answer func(net.Conn)
		says   string
		status int
	}{
		"wrong credentials": {say("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), "asks for other credentials (status 407)", 407},
		"refused":           {say("HTTP/1.1 403 Forbidden\r\n\r\nSECRET"), "does not let this host through (status 403)", 403},
		"nothing behind":    {say("HTTP/1.1 502 Bad Gateway\r\n\r\n"), "opened no tunnel (status 502)", 502},
		"a redirect":        {say("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n"), "opened no tunnel (status 302)", 302},
		"no HTTP":           {say("SSH-2.0-SECRET\r\n"), "not HTTP", 0},
		"an endless header": {say("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxResponseHeaderBytes)), "not HTTP", 0},
		"broke off":         {func(net.Conn) {}, "not HTTP", 0},
		"hangs":             {func(conn net.Conn) { _, _ = bufio.NewReader(conn).ReadByte() }, "did not answer in time", 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, request := behind(t)
			f := newForward(t, server.Listener.Addr().String(), false)
			f.answer = c.answer
			p := f.proxy(t)
			p.Username, p.Password = "user", "SECRET"
			timeout := 30 * time.Second
			if name == "hangs" {
				timeout = 300 * time.Millisecond
			}
			transport, err := NewTransport(Pool{Roots: pemOf(server.Certificate()), Proxy: p, DialTimeout: timeout})
			require.NoError(t, err)
			response, err := transport.RoundTrip(request)
			if err == nil {
				require.NoError(t, response.Body.Close())
			}
			var failed *ProxyError
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, "the proxy "+p.Address+" ")
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.status, failed.Status)
			require.NotContains(t, err.Error(), "SECRET")
		})
	}
}

func TestAProxyOnALinkLocalAddressIsNotUsed(t *testing.T) {
	_, request := behind(t)
	for address, says := range map[string]string{"169.254.169.254:3128": "metadata", "127.0.0.1:1": "cannot be reached"} {
		transport, err := NewTransport(Pool{Proxy: &Proxy{Address: address}})
		require.NoError(t, err)
		_, err = transport.RoundTrip(request) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "the proxy "+address)
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, ErrMetadata, "it is not the host's")
	}
}

func TestTheClientCertificateIsForTheServerAndNotForTheProxy(t *testing.T) {
	shown := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown = len(r.TLS.PeerCertificates) }))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	f := newForward(t, server.Listener.Addr().String(), true)
	transport, err := NewTransport(Pool{Roots: pemOf(server.Certificate()), Proxy: f.proxy(t), Certificate: &server.TLS.Certificates[0]})
	require.NoError(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	_, request := behind(t)
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 1, shown)
	require.Zero(t, f.shown)
}

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func TestProxiesOfTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		through     []string
		direct      []string
		wrong       string
	}{
		"none":             {nil, nil, []string{"registry.example.com"}, ""},
		"http is not read": {map[string]string{"HTTP_PROXY": "http://proxy:3128"}, nil, []string{"registry.example.com"}, ""},
		"upper case": {map[string]string{"HTTPS_PROXY": "http://user:secret@proxy:3128", "NO_PROXY": ".corp.example,10.0.0.0/8,exact.example.com:5000"},
			[]string{"registry.example.com", "exact.example.com", "11.0.0.1:5000"},
			[]string{"a.corp.example", "10.1.2.3:5000", "exact.example.com:5000", "localhost:5000", "127.0.0.1"}, ""},
		"lower case":     {map[string]string{"https_proxy": "https://proxy", "no_proxy": "*"}, nil, []string{"registry.example.com"}, ""},
		"not a proxy":    {map[string]string{"HTTPS_PROXY": "socks5://secret@proxy"}, nil, nil, "HTTPS_PROXY: it must be http://HOST:PORT"},
		"without scheme": {map[string]string{"https_proxy": "secret:3128"}, nil, nil, "https_proxy: it must be"},
		"with a path":    {map[string]string{"HTTPS_PROXY": "http://proxy/secret"}, nil, nil, "HTTPS_PROXY: it must be"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEnvironment(func(name string) string { return c.environment[name] })
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			for _, host := range c.through {
				require.NotNil(t, e.For(host), host)
			}
			for _, host := range c.direct {
				require.Nil(t, e.For(host), host)
			}
		})
	}
}

func TestAClientUsesTheProxyForTLSOnly(t *testing.T) {
	server, request := behind(t)
	f := newForward(t, server.Listener.Addr().String(), false)
	client, err := New(context.Background(), Options{Hosts: []string{"example.com", "direct.example.com"}, PlainHTTP: true, Roots: pemOf(server.Certificate()),
		Proxy: &Environment{Proxy: f.proxy(t), Bypass: NewBypass("direct.example.com")}, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("direct")
		}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, body, err := client.Read(request)
	require.NoError(t, err)
	require.Equal(t, "example.com ", string(body))
	for _, address := range []string{"http://example.com/", "https://direct.example.com/", "https://other.example.com/"} {
		_, _, err := client.Get(t.Context(), address, nil)
		require.Error(t, err, address)
	}
	require.Equal(t, []string{"CONNECT example.com:443"}, f.hosts)
	f.answer = func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\n\r\n") }
	client.proxied.CloseIdleConnections()
	_, _, err = client.Read(request)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, Proxied, failed.Cause)
	require.ErrorContains(t, err, "host example.com cannot be asked: the proxy "+f.Listener.Addr().String()+" does not let this host through")
}
