package external

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// FetchRevocationList fetches a certificate revocation list from an admin's http or https
// address. The list is signed by its issuer, so plain HTTP is safe.
func FetchRevocationList(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	content, err := network{}.fetchList(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("fetch revocation list %.200s: %w", address, shown(err))
	}
	return content, nil
}

func (n network) fetchList(ctx context.Context, address string) ([]byte, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.User != nil || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, problem("it is neither an http nor an https address")
	}
	client, err := n.client(ctx, egress.Options{Hosts: []string{parsed.Host}, Reach: egress.Private, PlainHTTP: true})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	status, content, err := client.Get(ctx, parsed.String(), nil)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, answered("the server", status)
	case len(content) > maxContent:
		return nil, problemf("it has %d bytes, and a ConfigMap carries %d of one key", len(content), maxContent)
	}
	return content, nil
}
