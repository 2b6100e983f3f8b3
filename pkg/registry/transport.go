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

// transportKey tells pools of connections apart: those with other trust, and
// those that may reach private addresses.
type transportKey struct {
	ca      string
	private bool
}

// errPrivateAddress is definite: an address does not become public by waiting.
var errPrivateAddress = errors.New("the host is on a loopback, link-local, private or cluster address, " +
	"and no ClusterStore lists it under registries")

// transport returns the pool for a CA bundle; private ones do not look at
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
		// The check is made on the address that is about to be dialled, so that a
		// name which resolves to another address the second time gains nothing.
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
		return nil, nil //nolint:nilnil // nil stands for the system's certificates
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

// specialPrefixes are not public although they look so: "this" network, the
// space that providers share (RFC 6598; some clouds have their metadata service
// in it), benchmarks, reserved space, and the two ways to write an IPv4 address
// as an IPv6 one that a gateway would translate back (RFC 6052, RFC 3056).
func specialPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"),
	}
}

func (c *Client) checkAddress(address string) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	addr := parsed.Addr().Unmap()
	special := addr.IsLoopback() || addr.IsPrivate() || addr.IsUnspecified() || addr.IsMulticast() ||
		addr.IsLinkLocalUnicast() || addr.IsInterfaceLocalMulticast() || !addr.IsGlobalUnicast()
	denied := append(specialPrefixes(), c.options.DeniedPrefixes...)
	if special || slices.ContainsFunc(denied, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return errPrivateAddress
	}
	return nil
}
