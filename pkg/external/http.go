package external

import "net/http"

// limited is a transport whose answers fail past maxReply: a cut answer must not
// look like a whole one.
type limited struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxReply)
	}
	return response, err
}
