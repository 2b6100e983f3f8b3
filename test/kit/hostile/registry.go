// Package hostile provides a misbehaving registry for tests, on a loopback address. It
// treats all repository paths alike; requests without a handler get a 404. It streams
// large responses without allocating them.
package hostile

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Registry answers requests with the handlers set for them, and records requests.
type Registry struct {
	server *httptest.Server

	mu       sync.Mutex
	handlers []route
	requests []*http.Request
}

type route struct {
	method, part string
	handler      http.HandlerFunc
}

// New starts a registry over plain HTTP.
func New() *Registry {
	r := &Registry{}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

// Host returns its address as it appears in image names.
func (r *Registry) Host() string { return strings.TrimPrefix(r.server.URL, "http://") }

// Close stops the registry and ends hanging requests.
func (r *Registry) Close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Handle answers requests whose path contains part and whose method is method
// ("" for any) with handler. Later handlers come first.
func (r *Registry) Handle(method, part string, handler http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers = append([]route{{method: method, part: part, handler: handler}}, r.handlers...)
}

// Requests returns the recorded requests.
func (r *Registry) Requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*http.Request(nil), r.requests...)
}

// Authorizations returns every credential that clients sent.
func (r *Registry) Authorizations() []string {
	var shown []string
	for _, req := range r.Requests() {
		if header := req.Header.Get("Authorization"); header != "" {
			shown = append(shown, header)
		}
	}
	return shown
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req.Clone(req.Context()))
	handler := http.NotFound
	for _, candidate := range r.handlers {
		if strings.Contains(req.URL.RequestURI(), candidate.part) && (candidate.method == "" || candidate.method == req.Method) {
			handler = candidate.handler
			break
		}
	}
	r.mu.Unlock()
	handler(w, req)
}

// Manifest answers with content as an image manifest.
func Manifest(content string) http.HandlerFunc {
	return ManifestAs(content, digest.FromString(content))
}

// ManifestAs answers with content and claims the given digest for it.
func ManifestAs(content string, claimed digest.Digest) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", claimed.String())
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = io.WriteString(w, content)
	}
}

// Status answers with a status and headers ("Name: value").
func Status(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Add(name, value)
		}
		w.WriteHeader(status)
	}
}

// Upgrade switches to another protocol (RFC 9110, section 15.2.2), writes text, and then keeps the
// connection without a word.
func Upgrade(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"+text)
		_, _ = connection.Read(make([]byte, 1)) // until the client closes it
		_ = connection.Close()
	}
}

// EndlessPages answers every page of a referrers list with a link to the next
// and perPage new referrers.
func EndlessPages(perPage int) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Link", fmt.Sprintf("<%s?n=%d>; rel=\"next\"", req.URL.Path, n))
		_, _ = io.WriteString(w, `{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[`)
		for i := range perPage {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			n++
			_, _ = fmt.Fprintf(w, `{"mediaType":"%s","digest":"%s","size":2}`, ocispec.MediaTypeImageManifest, digest.FromString(fmt.Sprint(n)))
		}
		_, _ = io.WriteString(w, "]}")
	}
}

// LongList answers with one list of n referrers.
func LongList(n int) http.HandlerFunc {
	entry := fmt.Sprintf(`{"mediaType":"%s","digest":"%s","size":2}`, ocispec.MediaTypeImageManifest, digest.FromString("one"))
	list := `{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageIndex + `","manifests":[` + strings.Repeat(entry+",", n-1) + entry + "]}"
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_, _ = io.WriteString(w, list)
	}
}

// Stream sends size bytes of zeros, as long as the client reads them.
func Stream(mediaType string, size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.CopyN(w, zeros{}, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Drip announces size bytes and sends one per interval.
func Drip(mediaType string, size int, interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", fmt.Sprint(size))
		for range size {
			if _, err := w.Write([]byte{' '}); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-req.Context().Done():
				return
			case <-time.After(interval):
			}
		}
	}
}

// Hang does not answer until the client leaves.
func Hang(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

// Drop closes the connection without an answer.
func Drop(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}
