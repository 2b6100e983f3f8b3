package egress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// ErrNoCertificate means that a CA bundle holds no certificate.
var ErrNoCertificate = errors.New("the CA bundle holds no certificate")

// Pool configures [NewTransport]. The zero value is safe.
type Pool struct {
	Guard *Guard
	Reach Reach
	// Roots are PEM certificates that are trusted in addition to the system's.
	Roots []byte
	// DialTimeout bounds connecting and the TLS handshake (5 seconds).
	DialTimeout time.Duration
	// MaxIdlePerHost is how many unused connections to a host are kept (Go's default, 2).
	MaxIdlePerHost int
	// HTTP2 allows HTTP/2.
	HTTP2 bool
	// Proxy, if set, opens the connections, and resolves names in place of the Guard.
	Proxy *Proxy
	// Certificate, if set, is presented to servers that ask for one, and not to the Proxy.
	Certificate *tls.Certificate
}

// NewTransport returns a pool of connections that are guarded: no proxy but
// the given one, TLS 1.2 at least, a limited header, and no compression, because a
// compressed answer could unpack to any size. It checks addresses only: whoever uses it
// without a [Client] decides about hosts, schemes, redirects and bodies.
func NewTransport(pool Pool) (*http.Transport, error) {
	roots, err := rootsWith(pool.Roots)
	if err != nil {
		return nil, err
	}
	if pool.Guard == nil {
		pool.Guard = NewGuard()
	}
	if pool.DialTimeout <= 0 {
		pool.DialTimeout = defaultDialTimeout
	}
	dial := pool.Guard.dial(pool.Reach, pool.DialTimeout)
	if pool.Proxy != nil {
		if dial, err = pool.Guard.tunnel(pool.Proxy, pool.DialTimeout); err != nil {
			return nil, err
		}
	}
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if pool.Certificate != nil {
		trust.Certificates = []tls.Certificate{*pool.Certificate}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(pool.HTTP2)
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    pool.DialTimeout,
		Protocols:              protocols,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    pool.MaxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		DisableCompression:     true,
	}, nil
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
		return nil, ErrNoCertificate
	}
	return roots, nil
}
