package external

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// fetchers returns the Fetch of each kind.
func (n network) fetchers() map[Kind]Fetch {
	lasting := func(fetch func(network, context.Context, Source) ([]byte, error)) Fetch {
		return func(ctx context.Context, source Source) (Content, error) {
			content, err := fetch(n.of(source), ctx, source)
			return Content{Bytes: content}, err
		}
	}
	ending := func(ctx context.Context, source Source) (Content, error) {
		return n.of(source).fetchRegistry(ctx, source)
	}
	repository := func(ctx context.Context, source Source) (Content, error) { return n.of(source).fetchTUF(ctx, source) }
	return map[Kind]Fetch{VaultKeys: lasting(network.fetchVault), VaultCertificates: lasting(network.fetchVault), KMS: lasting(network.fetchKMS),
		TUF: repository, Registry: ending}
}

// fetch fetches a source once, if its owner may.
func (f *Fetcher) fetch(ctx context.Context, source Source) (Content, error) {
	if err := source.permitted(f.hosts); err != nil {
		return Content{}, err
	}
	if err := f.refused(source.As); err != nil {
		return Content{}, err
	}
	fetch, ok := f.options.Fetch[source.Kind]
	if !ok {
		return Content{}, fmt.Errorf("%s is not a kind that can be fetched", source)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	content, err := fetch(ctx, source)
	switch {
	case err != nil:
		return Content{}, fmt.Errorf("fetch %s: %w", source, shown(err))
	case len(content.Bytes) == 0:
		return Content{}, fmt.Errorf("fetch %s: the content is empty", source)
	case len(content.Bytes) > maxContent:
		return Content{}, fmt.Errorf("fetch %s: the content has %d bytes, the limit is %d", source, len(content.Bytes), maxContent)
	}
	return content, nil
}

// refused returns an error for the identity of this process where it is nobody's to use.
func (f *Fetcher) refused(as Identity) error {
	if _, ambient := as.(pod); ambient && !f.options.UnsafePod {
		return problem("it is read with the cloud identity of Landwaiter's pod, which this machine does not have; its own is never used")
	}
	return nil
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
		if !s.own() {
			return errors.New("a namespace's resource needs credentials of its own for a key management service: set spec.source.kms.secretRef or serviceAccount")
		}
		if scheme, rest, _ := strings.Cut(s.Address, "://"); scheme != "gcpkms" && scheme != "azurekms" && !strings.HasPrefix(rest, "/") {
			return fmt.Errorf("a namespace's resource cannot name the endpoint of a key management service: use %.20s:///…", scheme)
		}
		return nil
	case Registry:
		if !s.own() {
			return errors.New("a namespace's resource needs credentials of its own for a registry: set spec.identity.secretRef or serviceAccount")
		}
		return nil // fetchRegistry only talks to the cloud's own hosts
	case VaultKeys, VaultCertificates, TUF:
	}
	if !hosts.Contain(address) {
		return fmt.Errorf("host %.253s is not one that a namespace's resource may name; a cluster admin can allow it with --egress-host, or make a ClusterTrustStore", address.Host)
	}
	if (s.Kind == VaultKeys || s.Kind == VaultCertificates) && !s.own() {
		return errors.New("a namespace's resource needs credentials of its own for Vault: set spec.source.vault.tokenSecretKeyRef or serviceAccount")
	}
	return nil
}

// own reports whether the identity is one that the owner's namespace may give.
func (s Source) own() bool {
	switch as := s.As.(type) {
	case given:
		return true
	case account:
		return as.namespace == string(s.Owner)
	}
	return false
}
