//go:build e2e

package evidence

import (
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is a forward proxy that records what it is asked for. It leads every name to the
// place that the test says, as a company's DNS would.
type proxy struct {
	server *httptest.Server
	places map[string]string // host:port asked for → where it is

	mu     sync.Mutex
	asked  []string
	login  string // user:password that it wants
	status int    // that it answers instead of connecting
}

func startProxy(t *testing.T, places map[string]string) *proxy {
	t.Helper()
	p := &proxy{places: places}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = quiet()
	p.server.Start()
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })
	return p
}

func (p *proxy) url() string { return p.server.URL }

// requests returns what was asked for so far, method and host, each once.
func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	seen := map[string]bool{}
	for _, line := range p.asked {
		if !seen[line] {
			seen[line], found = true, append(found, line)
		}
	}
	return found
}

// want changes what the proxy demands and answers.
func (p *proxy) want(login string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.login, p.status = login, status
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	login, status := p.login, p.status
	p.mu.Unlock()
	place, known := p.places[r.Host]
	switch {
	case login != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(login)):
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	case status != 0:
		w.WriteHeader(status)
		return
	case r.Method != http.MethodConnect || !known:
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	behind, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", place)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	client, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = behind.Close(); _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() { _, _ = io.Copy(behind, client); _ = behind.Close() }()
	_, _ = io.Copy(client, behind)
}

// requireOnly checks that the proxy opened tunnels to these hosts and was asked for
// nothing else.
func (p *proxy) requireOnly(t *testing.T, hosts ...string) {
	t.Helper()
	var want []string
	for _, host := range hosts {
		want = append(want, "CONNECT "+host)
	}
	require.ElementsMatch(t, want, p.requests())
}

// closed returns an address at which nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	p := startProxy(t, nil)
	p.server.Close()
	return strings.TrimPrefix(p.url(), "http://")
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
