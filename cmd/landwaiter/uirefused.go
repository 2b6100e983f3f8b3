package main

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// refusedFor is how long a refusal is repeated: permissions that are granted show as soon as findings of check.
	refusedFor = 30 * time.Second
	// maxRefusals and maxRefusal bound what is kept. A Status of Kubernetes has a few hundred bytes.
	maxRefusals = 1024
	maxRefusal  = 4 << 10
)

// refusals repeats what the API server refused: each view of a person with few permissions asks for the same
// lists, and every refusal costs the API server a decision and an audit log a line.
type refusals struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]refusal
}

type refusal struct {
	until time.Time
	*http.Response
	body []byte
}

// RoundTrip sends a request, unless the same one was refused a short time ago.
func (r *refusals) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return r.next.RoundTrip(request)
	}
	key := request.URL.String() + " " + request.Header.Get("Accept")
	r.mu.Lock()
	known, ok := r.kept[key]
	r.mu.Unlock()
	if ok && r.now().Before(known.until) {
		return known.again(request), nil
	}
	response, err := r.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusForbidden || response.ContentLength < 0 || response.ContentLength > maxRefusal {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // as the transport returned it
	}
	known = refusal{r.now().Add(refusedFor), response, body}
	r.mu.Lock()
	if r.kept == nil || len(r.kept) >= maxRefusals {
		r.kept = map[string]refusal{}
	}
	r.kept[key] = known
	r.mu.Unlock()
	return known.again(request), nil
}

// again returns the refusal as the answer to a request.
func (f refusal) again(request *http.Request) *http.Response {
	response := *f.Response
	response.Request, response.Header, response.Body = request, f.Header.Clone(), io.NopCloser(bytes.NewReader(f.body))
	return &response
}
