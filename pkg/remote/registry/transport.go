package registry

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// poolKey identifies a connection pool: by its CAs, by the addresses that it may reach, by
// the client certificate and by the proxy with its credentials. So a connection that was
// opened with one store's certificate or proxy is never used for another's requests.
type poolKey [sha256.Size]byte

// keyOf returns the key of a pool. A certificate contains its public key, so the key does not
// include the private key.
func keyOf(pool egress.Pool) poolKey {
	all := fmt.Appendf(nil, "%d %x", pool.Reach, sha256.Sum256(pool.Roots))
	if pool.Certificate != nil {
		all = fmt.Appendf(all, " certificate %x", pool.Certificate.Certificate)
	}
	if p := pool.Proxy; p != nil {
		all = fmt.Appendf(all, " proxy %q %t %q %q %q", p.Address, p.TLS, p.Username, p.Password, p.Roots)
	}
	return sha256.Sum256(all)
}

// transport returns the connection pool for a request to a host.
func (g *guard) transport(req *http.Request, host string) (*http.Transport, error) {
	proxy, err := g.session.client.proxy(g.session.access, g.origin, host, req.URL.Host)
	if err != nil {
		return nil, err
	}
	pool := egress.Pool{Reach: egress.Public, Roots: g.store.RootCAs, Proxy: proxy}
	if rule, _ := g.session.access.rule(host); rule.Private || g.named && host == g.origin {
		pool.Reach = egress.Private
	}
	if g.presents(host) {
		pool.Certificate = g.store.ClientCertificate
	}
	if expired(pool.Certificate, time.Now()) {
		return nil, verify.PermanentWith(policy.ReasonBrokenResource, fmt.Errorf("the client certificate for %s expired at %s",
			host, pool.Certificate.Leaf.NotAfter.UTC().Format(time.RFC3339)), "renew the Secret that clientCertificate of the Store names")
	}
	return g.session.client.transport(pool)
}

// expired reports whether a client certificate has expired: the errors of registries about
// that do not help.
func expired(certificate *tls.Certificate, now time.Time) bool {
	return certificate != nil && certificate.Leaf != nil && now.After(certificate.Leaf.NotAfter)
}

// presents reports whether a host may receive the store's client certificate: the hosts that
// the store lists by name, and the registry itself. Redirects and token servers get it only
// if they are listed by name.
func (g *guard) presents(host string) bool {
	return slices.Contains(g.store.Registries, host) || (host == g.origin && g.store.serves(host))
}

// transport returns the shared connection pool of that kind.
func (c *Client) transport(pool egress.Pool) (*http.Transport, error) {
	key := keyOf(pool)
	if transport, ok := c.transports.GetIfPresent(key); ok {
		return transport, nil
	}
	pool.Guard, pool.DialTimeout, pool.MaxIdlePerHost, pool.HTTP2 = c.addresses, c.options.DialTimeout, c.options.PerHost, true
	made, err := egress.NewTransport(pool)
	if err != nil {
		return nil, verify.Permanent(policy.ReasonBrokenResource, fmt.Errorf("connect to the registry: %w", err))
	}
	transport, _ := c.transports.SetIfAbsent(key, made)
	return transport, nil
}

// ParseClientCertificate reads a certificate chain and its private key, both PEM, as in a
// Secret of type kubernetes.io/tls. Its errors never contain its input.
func ParseClientCertificate(chain, key []byte) (*tls.Certificate, error) {
	switch {
	case len(chain) == 0:
		return nil, errors.New("it has no tls.crt")
	case len(key) == 0:
		return nil, errors.New("it has no tls.key")
	case len(chain) > maxClientChainBytes:
		return nil, fmt.Errorf("tls.crt is %d bytes large, the limit is %d", len(chain), maxClientChainBytes)
	case len(key) > maxClientKeyBytes:
		return nil, fmt.Errorf("tls.key is %d bytes large, the limit is %d", len(key), maxClientKeyBytes)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, errors.New("tls.crt and tls.key are not the PEM text of a certificate and its private key")
	}
	if public, ok := pair.Leaf.PublicKey.(*rsa.PublicKey); ok && public.N.BitLen() > maxClientKeyBits {
		return nil, fmt.Errorf("the key has %d bits, the limit is %d", public.N.BitLen(), maxClientKeyBits)
	}
	return &pair, nil
}
