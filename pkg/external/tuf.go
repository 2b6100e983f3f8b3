package external

import (
	"context"
	"errors"
	"net/url"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"

	"github.com/landwaiter/landwaiter/pkg/egress"
)

// trustedRootTarget is the file of a Sigstore TUF repository that holds all keys and
// certificates.
const trustedRootTarget = "trusted_root.json"

// fetchTUF fetches the trusted root from a TUF repository (The Update Framework
// specification v1.0, section 5): Sigstore's public-good one by default. Nothing is
// written to disk. The initial root comes from the source or from the library.
func (n network) fetchTUF(ctx context.Context, source Source) ([]byte, error) {
	options := &tuf.Options{Root: []byte(source.Root), RepositoryBaseURL: source.Address, DisableLocalCache: true, Context: ctx}
	if source.Root == "" {
		options.Root = tuf.DefaultRoot()
	}
	reach := egress.Private // an admin named the mirror
	if source.Address == "" {
		options.RepositoryBaseURL, reach = tuf.DefaultMirror, egress.Public
	}
	mirror, err := url.Parse(options.RepositoryBaseURL)
	if err != nil {
		return nil, problem("the address of the mirror is malformed")
	}
	client, err := n.client(ctx, egress.Options{Hosts: []string{mirror.Host}, Reach: reach, Roots: []byte(source.Authority)})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	download := fetcher.NewDefaultFetcher()
	download.SetHTTPClient(client.HTTP())
	options.Fetcher = download
	updated, err := tuf.New(options)
	if err != nil {
		return nil, tufError(err)
	}
	content, err := updated.GetTarget(trustedRootTarget)
	if err != nil {
		return nil, tufError(err)
	}
	return content, nil
}

// tufError says in our own words why a repository cannot be used.
func tufError(err error) error {
	var status *metadata.ErrDownloadHTTP
	var expired *metadata.ErrExpiredMetadata
	var unsigned *metadata.ErrUnsignedMetadata
	var large *metadata.ErrDownloadLengthMismatch
	var changed *metadata.ErrLengthOrHashMismatch
	var network *egress.Error
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &status):
		return answered("the TUF repository", status.StatusCode)
	case errors.As(err, &expired):
		return problem("the metadata of the TUF repository has expired")
	case errors.As(err, &unsigned):
		return problem("the metadata of the TUF repository is not signed by the keys of its root; check spec.source.tuf.root")
	case errors.As(err, &large):
		return problem("a file of the TUF repository is larger than it may be")
	case errors.As(err, &changed):
		return problem("a file of the TUF repository is not what its metadata says")
	}
	return problem("the TUF repository, or its root, is malformed")
}
