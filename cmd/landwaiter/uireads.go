package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// errWrites is why a request of the page is refused before it is sent.
var errWrites = errors.New("landwaiter ui only reads: this request was not sent")

// review matches the requests with which verify and preview ask whether Landwaiter may read an object.
// The API server does not store reviews.
var review = regexp.MustCompile(`^/apis/authorization\.k8s\.io/v1/namespaces/[^/]+/localsubjectaccessreviews$`)

// connection matches the subresources that connect to a container, a Service or a node.
var connection = regexp.MustCompile(`^/api/v1/(namespaces/[^/]+/)?(pods|services|nodes)/[^/]+/(proxy|exec|attach|portforward)(/|$)|` +
	`^/api/v1/proxy/`)

// asks matches the request with which check asks whether a server answers: it has neither a path nor an image.
var asks = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/services/https:[^/]+/proxy/$`)

// reads only sends requests that change nothing. It is below the client, so that no code above it can
// write.
type reads struct {
	next   http.RoundTripper
	prefix string // of the path, for an API server behind a proxy
}

// readOnly sends every request of config through [reads], and returns the address of the API server,
// for which a kubeconfig file may omit https. It fails if there is none.
func readOnly(config *rest.Config) (address string, err error) {
	server, _, err := rest.DefaultServerUrlFor(config) // as the client does
	if err != nil {
		return "", fmt.Errorf("read the address of the API server %q: %w", config.Host, err)
	}
	prefix := strings.TrimSuffix(server.Path, "/")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return reads{&refusals{next: next, now: time.Now}, prefix}
	})
	return server.Redacted(), nil
}

// RoundTrip sends a request that only reads.
func (r reads) RoundTrip(request *http.Request) (*http.Response, error) {
	if !r.allows(request) {
		return nil, errWrites
	}
	return r.next.RoundTrip(request)
}

// allows reports whether a request changes nothing: a connection to a pod or a Service may,
// regardless of its method.
func (r reads) allows(request *http.Request) bool {
	path, below := strings.CutPrefix(request.URL.Path, r.prefix)
	if !below || request.Header.Get("Upgrade") != "" {
		return false
	}
	switch request.Method {
	case http.MethodGet:
		return asks.MatchString(path) || !connection.MatchString(path)
	case http.MethodPost:
		return review.MatchString(path)
	}
	return false
}
