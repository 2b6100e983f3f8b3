package external

import (
	"errors"
	"io"
	"net/http"
)

// limited is a transport whose answers end at maxReply.
type limited struct{ next http.RoundTripper }

// RoundTrip passes a request on.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxReply}
	}
	return response, err
}

var errReply = errors.New("the answer is too large")

type limitedBody struct {
	io.ReadCloser
	left int
}

// Read fails past the limit: a cut answer must not look like a whole one.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errReply
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
