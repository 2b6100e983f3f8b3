//go:build e2e || nightly

package browser

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Exchange is one request of a browser, and all that came back.
type Exchange struct {
	// Method, URL and Body are those of the request.
	Method, URL, Body string
	// Status is that of the answer, and Received its status line, headers and body.
	Status   int
	Received string
	// Header has the headers of the answer.
	Header http.Header
}

// Recorder is a proxy that keeps what passes it. It passes on requests to loopback alone: all others
// fail, and are recorded.
type Recorder struct {
	address string

	mutex     sync.Mutex
	exchanges []Exchange
}

// Record starts a recorder that ends with the test.
func Record(t testing.TB) *Recorder {
	t.Helper()
	r := &Recorder{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.address = server.Listener.Addr().String()
	return r
}

// ServeHTTP passes a request on.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	sent, _ := io.ReadAll(http.MaxBytesReader(w, request.Body, 16<<20)) // what was read is passed on
	kept := Exchange{Method: request.Method, URL: request.URL.String(), Body: string(sent), Status: http.StatusForbidden}
	defer func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.exchanges = append(r.exchanges, kept)
	}()
	if request.URL.Hostname() != "127.0.0.1" || request.Method == http.MethodConnect {
		http.Error(w, "the recorder leads nowhere else", http.StatusForbidden)
		return
	}
	passed := request.Clone(request.Context())
	passed.RequestURI, passed.Body = "", io.NopCloser(bytes.NewReader(sent))
	passed.Header.Del("Proxy-Connection")
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(passed)
	if err != nil {
		kept.Status = http.StatusBadGateway
		http.Error(w, "", http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	received, err := httputil.DumpResponse(answer, true)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	kept.Status, kept.Received, kept.Header = answer.StatusCode, string(received), answer.Header
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the browser may have gone
}

// Exchanges returns all that has passed.
func (r *Recorder) Exchanges() []Exchange {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]Exchange(nil), r.exchanges...)
}

// RequirePlain fails the test if an answer was compressed: a word could hide in it.
func RequirePlain(t testing.TB, e Exchange) {
	t.Helper()
	require.Empty(t, e.Header.Get("Content-Encoding"), e.URL)
}
