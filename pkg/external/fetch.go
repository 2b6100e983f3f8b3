package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/verify"
)

// fetchers returns the Fetch of each kind.
func fetchers() map[Kind]Fetch {
	return map[Kind]Fetch{VaultKeys: fetchVault, VaultCertificates: fetchVault, KMS: fetchKMS, TUF: fetchTUF, Registry: fetchRegistry}
}

// fetch fetches a source once, if its owner may.
func (f *Fetcher) fetch(ctx context.Context, source Source) ([]byte, error) {
	if err := source.permitted(f.options.Hosts); err != nil {
		return nil, err
	}
	fetch, ok := f.options.Fetch[source.Kind]
	if !ok {
		return nil, fmt.Errorf("%s is not a kind that can be fetched", source)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	content, err := fetch(ctx, source)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetch %s: %w", source, outsideView(err))
	case len(content) == 0:
		return nil, fmt.Errorf("fetch %s: the content is empty", source)
	case len(content) > maxContent:
		return nil, fmt.Errorf("fetch %s: the content has %d bytes, the limit is %d", source, len(content), maxContent)
	}
	return content, nil
}

// outsideView keeps name servers and resolved addresses out of errors that tenants
// read: they describe this network.
func outsideView(err error) error {
	var unknown *net.DNSError
	var failed *net.OpError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("host %s cannot be found", unknown.Name)
	case errors.As(err, &failed) && failed.Op == "dial":
		return errors.New("the server cannot be reached")
	case errors.As(err, &tooLarge):
		return fmt.Errorf("the answer is larger than %d bytes", tooLarge.Limit)
	}
	return err
}

// permitted returns an error if the owner may not fetch the source: a tenant only
// reaches hosts that an admin has listed, and never uses the identity of this process.
func (s Source) permitted(hosts []string) error {
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
		if s.Credentials == "" {
			return errors.New("a namespace's resource needs credentials of its own for a key management service: set spec.source.kms.secretRef")
		}
		if scheme, rest, _ := strings.Cut(s.Address, "://"); scheme != "gcpkms" && !strings.HasPrefix(rest, "/") {
			return fmt.Errorf("a namespace's resource cannot name the endpoint of a key management service: use %s:///…", scheme)
		}
		return nil
	case Registry:
		if s.Credentials == "" {
			return errors.New("a namespace's resource needs credentials of its own for a registry: set spec.identity.secretRef")
		}
		return nil // fetchRegistry only talks to the cloud's own hosts
	case VaultKeys, VaultCertificates, TUF:
	}
	if !slices.Contains(hosts, strings.ToLower(address.Host)) {
		return fmt.Errorf("host %s is not one that a namespace's resource may name; a cluster admin can allow it with --egress-host, or make a ClusterTrustStore", address.Host)
	}
	return nil
}

// credentials decodes the owner's credentials.
func (s Source) credentials() (map[string]string, error) {
	if s.Credentials == "" {
		return map[string]string{}, nil
	}
	var given map[string]string
	if err := json.Unmarshal([]byte(s.Credentials), &given); err != nil {
		return nil, errors.New("the credentials cannot be read")
	}
	return given, nil
}
