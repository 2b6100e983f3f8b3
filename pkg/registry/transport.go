package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// transportKey identifies a connection pool: by its trust, and by whether it may reach
// private addresses.
type transportKey struct {
	ca      string
	private bool
}

// errPrivateAddress is permanent: an address does not become public by waiting.
var errPrivateAddress = errors.New("the host is on a loopback, link-local, private or cluster address, " +
	"and no ClusterStore lists it under registries")

// transport returns the connection pool for a CA bundle. A private one does not check
// addresses.
func (c *Client) transport(pem []byte, private bool) (*http.Transport, error) {
	key := transportKey{ca: caKey(pem), private: private}
	if transport, ok := c.transports.GetIfPresent(key); ok {
		return transport, nil
	}
	roots, err := rootsWith(pem)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: c.options.DialTimeout, KeepAlive: 30 * time.Second}
	if !private {
		// Checking the address that is about to be dialled defeats DNS rebinding.
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return c.checkAddress(address) }
	}
	transport, _ := c.transports.SetIfAbsent(key, &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.options.DialTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    c.options.PerHost,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		// A compressed answer could unpack to any size.
		DisableCompression: true,
	})
	return transport, nil
}

// rootsWith returns the system's certificates and those in pem.
func rootsWith(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil //nolint:nilnil // nil means the system's certificates
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, verify.Permanent(policy.ReasonBrokenResource, errors.New("the CA bundle holds no certificate"))
	}
	return roots, nil
}

// specialPrefixes returns the prefixes of the IANA IPv4 and IPv6 Special-Purpose
// Address Registries (RFC 6890). It includes those that are globally reachable: no
// registry lives there, and some are translated or tunnelled to other addresses. The last
// two come from RFC 4291 and RFC 3879 instead.
func specialPrefixes() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::1/128", "::/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32",
		"2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10",
		"::/96",     // IPv4-compatible addresses, deprecated
		"fec0::/10", // site-local addresses, deprecated
	}
}

// checkAddress refuses to connect to an address that is not public.
func (c *Client) checkAddress(address string) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	addr := parsed.Addr().Unmap().WithZone("") // a prefix contains no address with a zone
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || slices.ContainsFunc(c.denied, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return errPrivateAddress
	}
	return nil
}
