package external

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/egress"
	"github.com/landwaiter/landwaiter/pkg/trust"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// fetched is what one fetch got.
type fetched struct {
	content []byte
	ends    []trust.End // of what the source says about itself, beyond the content
}

// datedFetch gets the content of a source, and when it ends.
type datedFetch func(ctx context.Context, source Source) (fetched, error)

// undated returns fetch for content that says itself when it ends, if it does.
func undated(fetch Fetch) datedFetch {
	return func(ctx context.Context, source Source) (fetched, error) {
		content, err := fetch(ctx, source)
		return fetched{content: content}, err
	}
}

// fetchers returns the Fetch of each kind.
func (n network) fetchers() map[Kind]Fetch {
	return map[Kind]Fetch{VaultKeys: n.fetchVault, VaultCertificates: n.fetchVault, KMS: n.fetchKMS, Registry: n.fetchRegistry}
}

// dated returns how each kind is fetched: as own says, or from the network.
func (n network) dated(own map[Kind]Fetch) map[Kind]datedFetch {
	all := map[Kind]datedFetch{}
	if own == nil {
		own, all[TUF] = n.fetchers(), n.fetchTUF
	}
	for kind, fetch := range own {
		all[kind] = undated(fetch)
	}
	return all
}

// fetch fetches a source once, if its owner may.
func (f *Fetcher) fetch(ctx context.Context, source Source) (fetched, error) {
	if err := source.permitted(f.hosts); err != nil {
		return fetched{}, err
	}
	fetch, ok := f.fetches[source.Kind]
	if !ok {
		return fetched{}, fmt.Errorf("%s is not a kind that can be fetched", source)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, err := fetch(ctx, source)
	switch {
	case err != nil:
		return fetched{}, fmt.Errorf("fetch %s: %w", source, shown(err))
	case len(got.content) == 0:
		return fetched{}, fmt.Errorf("fetch %s: the content is empty", source)
	case len(got.content) > maxContent:
		return fetched{}, fmt.Errorf("fetch %s: the content has %d bytes, the limit is %d", source, len(got.content), maxContent)
	}
	return got, nil
}

// permitted returns an error if the owner may not fetch the source: a tenant only
// reaches hosts that an admin has listed, and never uses the identity of this process.
func (s Source) permitted(hosts egress.Hosts) error {
	address, err := url.Parse(s.Address)
	switch s.Kind {
	case TUF, VaultKeys, VaultCertificates:
		if s.Kind == TUF && s.Address == "" {
			return nil // Sigstore's own, the same for everybody
		}
		if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil {
			return fmt.Errorf("%.200q is not an https address", s.Address)
		}
	case KMS, Registry:
	}
	if s.Owner == verify.Cluster {
		return nil
	}
	switch s.Kind {
	case KMS:
		if _, own := s.As.(given); !own {
			return errors.New("a namespace's resource needs credentials of its own for a key management service: set spec.source.kms.secretRef")
		}
		if scheme, rest, _ := strings.Cut(s.Address, "://"); scheme != "gcpkms" && !strings.HasPrefix(rest, "/") {
			return fmt.Errorf("a namespace's resource cannot name the endpoint of a key management service: use %.20s:///…", scheme)
		}
		return nil
	case Registry:
		if _, own := s.As.(given); !own {
			return errors.New("a namespace's resource needs credentials of its own for a registry: set spec.identity.secretRef")
		}
		return nil // fetchRegistry only talks to the cloud's own hosts
	case VaultKeys, VaultCertificates, TUF:
	}
	if !hosts.Contain(address) {
		return fmt.Errorf("host %.253s is not one that a namespace's resource may name; a cluster admin can allow it with --egress-host, or make a ClusterTrustStore", address.Host)
	}
	return nil
}
