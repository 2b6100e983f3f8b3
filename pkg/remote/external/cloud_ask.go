//go:build aws || azure || gcp

package external

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// asPod returns a client for the identity of this process, which clouds give out at
// addresses that nothing else may reach, and without TLS.
func (n network) asPod(ctx context.Context) (*egress.Client, error) {
	return n.client(ctx, egress.Options{UnsafeAnyHost: true, PlainHTTP: true, Reach: egress.UnsafeMetadata})
}

// getJSON reads a document with a bearer token.
func getJSON(ctx context.Context, client *egress.Client, who, address, token string, into any) error {
	status, body, err := client.Get(ctx, address, http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/json"}})
	return decode(who, status, body, err, into)
}

// postForm sends a form, which carries credentials.
func postForm(ctx context.Context, client *egress.Client, who, address string, form url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return problem("the address is malformed")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, err := client.Read(r)
	return decode(who, status, body, err, into)
}

// isSegment reports whether s can be one part of a path that a cloud's API is asked for.
func isSegment(s string) bool {
	return s != "" && len(s) <= maxSegment && strings.Trim(s, ".") != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	}) < 0
}
