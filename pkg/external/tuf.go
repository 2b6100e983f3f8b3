package external

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"
)

// trustedRootTarget is the file of a Sigstore TUF repository that holds all keys and
// certificates.
const trustedRootTarget = "trusted_root.json"

// fetchTUF fetches the trusted root from a TUF repository (The Update Framework
// specification v1.0, section 5): Sigstore's public-good one by default. Nothing is
// written to disk. The initial root comes from the source or from the library.
func fetchTUF(ctx context.Context, source Source) ([]byte, error) {
	roots, err := rootsWith(source.Authority)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	download := fetcher.NewDefaultFetcher()
	download.SetHTTPClient(&http.Client{Transport: bound{ctx, limited{transport}}, Timeout: fetchTimeout})
	options := &tuf.Options{Root: []byte(source.Root), RepositoryBaseURL: source.Address, DisableLocalCache: true, Context: ctx, Fetcher: download}
	if source.Root == "" {
		options.Root = tuf.DefaultRoot()
	}
	if source.Address == "" {
		options.RepositoryBaseURL = tuf.DefaultMirror
	}
	client, err := tuf.New(options)
	if err != nil {
		return nil, fmt.Errorf("read the TUF repository: %w", err)
	}
	content, err := client.GetTarget(trustedRootTarget)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", trustedRootTarget, err)
	}
	return content, nil
}

// bound makes requests end with ctx, which the library does not pass on.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(r.WithContext(b.ctx))
}
