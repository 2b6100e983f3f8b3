package external

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// trustedRootTarget is the file of a Sigstore TUF repository that holds all keys and
// certificates.
const trustedRootTarget = "trusted_root.json"

// fetchTUF fetches the trusted root from a TUF repository: Sigstore's public-good one by
// default. What it holds ends with the repository's root and targets, whose keys are kept
// offline. The snapshot and timestamp live for days and are renewed by a machine: if they
// are not, fetching fails, and the value says so.
func (n network) fetchTUF(ctx context.Context, source Source) (Content, error) {
	copied, err := n.copyTUF(ctx, source)
	if err != nil {
		return Content{}, err
	}
	return Content{Bytes: copied.TrustedRoot, Roles: copied.Roles}, nil
}

// copyTUF reads a TUF repository over the network.
func (n network) copyTUF(ctx context.Context, source Source) (TUFCopy, error) {
	address := source.Address
	reach := egress.Private // an admin named the mirror
	if address == "" {
		address, reach = tuf.DefaultMirror, egress.Public
	}
	mirror, err := url.Parse(address)
	if err != nil {
		return TUFCopy{}, problem("the address of the mirror is malformed")
	}
	client, err := n.client(ctx, egress.Options{Hosts: []string{mirror.Host}, Reach: reach, Roots: []byte(source.Authority)})
	if err != nil {
		return TUFCopy{}, err
	}
	defer client.Close()
	download := fetcher.NewDefaultFetcher()
	download.SetHTTPClient(client.HTTP())
	return readTUF(ctx, address, source.Root, download)
}

// readTUF reads and verifies a TUF repository (The Update Framework specification v1.0,
// section 5). Nothing is written to disk. The initial root is Sigstore's if it is empty.
func readTUF(ctx context.Context, address, root string, from fetcher.Fetcher) (TUFCopy, error) {
	initial := []byte(root)
	if root == "" {
		initial = tuf.DefaultRoot()
	}
	read := &recorded{from: from, files: map[string][]byte{roleRoot: initial}}
	updated, err := tuf.New(&tuf.Options{Root: initial, RepositoryBaseURL: address, DisableLocalCache: true, Context: ctx, Fetcher: read})
	if err != nil {
		return TUFCopy{}, tufError(err)
	}
	content, err := updated.GetTarget(trustedRootTarget)
	if err != nil {
		return TUFCopy{}, tufError(err)
	}
	roles, err := read.roles()
	return TUFCopy{TrustedRoot: content, Roles: roles}, err
}

// tufError says in our own words why a repository cannot be used.
func tufError(err error) error {
	var status *metadata.ErrDownloadHTTP
	var expired *metadata.ErrExpiredMetadata
	var unsigned *metadata.ErrUnsignedMetadata
	var large *metadata.ErrDownloadLengthMismatch
	var changed *metadata.ErrLengthOrHashMismatch
	var network *egress.Error
	var own problem
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &own):
		return own
	case errors.As(err, &status) && !strings.Contains(status.URL, "://"):
		return &RefusedError{problemf("file %.200q is missing from the copy of the TUF repository", status.URL)}
	case errors.As(err, &status):
		return answered("the TUF repository", status.StatusCode)
	case errors.As(err, &expired):
		return &RefusedError{"the metadata of the TUF repository has expired"}
	case errors.As(err, &unsigned):
		return &RefusedError{"the metadata of the TUF repository is not signed by the keys of its root; check the root.json that was given"}
	case errors.As(err, &large):
		return &RefusedError{"a file of the TUF repository is larger than it may be"}
	case errors.As(err, &changed):
		return &RefusedError{"a file of the TUF repository is not what its metadata says"}
	}
	return &RefusedError{"the TUF repository, or its root, is malformed"}
}
