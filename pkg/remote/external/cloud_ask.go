//go:build aws || azure || gcp

package external

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// asPod returns a client for the identity of this process, which clouds provide at addresses
// that no other client may reach, and without TLS.
func (n network) asPod(ctx context.Context) (*egress.Client, error) {
	return n.client(ctx, egress.Options{UnsafeAnyHost: true, PlainHTTP: true, Reach: egress.UnsafeMetadata})
}

// getJSON reads a document with a bearer token.
func (n network) getJSON(ctx context.Context, who, address, token string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return problem("the address is malformed")
	}
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/json"}}
	return n.askHost(ctx, who, r, into)
}

// postForm sends a form, which carries credentials.
func (n network) postForm(ctx context.Context, who, address string, form url.Values, into any) error {
	r, err := newForm(ctx, address, form)
	if err != nil {
		return err
	}
	return n.askHost(ctx, who, r, into)
}

// askHost sends a request to the host that it names, and to no other.
func (n network) askHost(ctx context.Context, who string, r *http.Request, into any) error {
	client, err := n.to(ctx, "", r.URL.Host)
	if err != nil {
		return err
	}
	defer client.Close()
	return ask(client, who, r, into)
}

func newForm(ctx context.Context, address string, form url.Values) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, problem("the address is malformed")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r, nil
}

// isSegment reports whether s can be one segment of a path in a cloud's API.
func isSegment(s string) bool {
	return s != "" && len(s) <= maxSegment && strings.Trim(s, ".") != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	}) < 0
}
