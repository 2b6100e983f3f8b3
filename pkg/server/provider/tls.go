package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// TLSSource has the server's certificate and the CAs of its clients, and may replace both at
// any time. It is called for every connection and every request, so a change needs no
// notification. It is safe for concurrent use.
type TLSSource interface {
	// Certificate returns the current certificate, with its Leaf. An error says why there is
	// none yet: until then nobody is served.
	Certificate() (*tls.Certificate, error)
	// ClientCAs returns the CAs of client certificates, the same pool until they change. An
	// error says why there are none yet: until then nobody is served. nil without an error means
	// that there never will be any.
	ClientCAs() (*x509.CertPool, error)
}

// edgeTLS applies a TLSSource to connections and requests.
type edgeTLS struct {
	source     TLSSource
	authorize  bool     // clients need a certificate
	names      []string // DNS names of which a client must have one; none: any
	configured atomic.Pointer[configured]
}

// configured is a TLS configuration and its inputs.
type configured struct {
	certificate *tls.Certificate
	clientCAs   *x509.CertPool
	config      *tls.Config
}

func newEdgeTLS(options Options) *edgeTLS {
	e := &edgeTLS{source: options.TLS, authorize: !options.InsecureNoClientAuth}
	for _, name := range options.ClientNames {
		e.names = append(e.names, strings.ToLower(name))
	}
	return e
}

// clientCAs returns the current CAs, which are never nil: in a TLS configuration nil means
// the CAs of the system.
func (e *edgeTLS) clientCAs() (*x509.CertPool, error) {
	pool, err := e.source.ClientCAs()
	if err == nil && pool == nil {
		err = errors.New("there is no client CA")
	}
	return pool, err
}

// config returns the TLS configuration for a new connection.
func (e *edgeTLS) config() (*tls.Config, error) {
	certificate, err := e.source.Certificate()
	if err != nil {
		return nil, err
	}
	var authorities *x509.CertPool
	if e.authorize {
		if authorities, err = e.clientCAs(); err != nil {
			return nil, err
		}
	}
	current := e.configured.Load()
	if current == nil || current.certificate != certificate || current.clientCAs != authorities {
		current = &configured{certificate, authorities, e.newConfig(certificate, authorities)}
		e.configured.Store(current)
	}
	return current.config, nil
}

// newConfig disables HTTP/2: Gatekeeper uses HTTP/1.1, and an unused protocol is only a risk.
// It disables session tickets: Gatekeeper never resumes, and a resumed session would outlive
// a change of CAs (CVE-2025-68121).
func (e *edgeTLS) newConfig(certificate *tls.Certificate, authorities *x509.CertPool) *tls.Config {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{*certificate},
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.NoClientCert,
	}
	if e.authorize {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authorities
		config.VerifyConnection = func(state tls.ConnectionState) error { return e.checkName(state.PeerCertificates) }
	}
	return config
}

// listenerConfig uses the current configuration for every new connection.
func (e *edgeTLS) listenerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return e.config() },
	}
}

// checkName refuses a client whose certificate has none of the names. It ignores wildcards
// and common names: a name here identifies one client, not a host.
func (e *edgeTLS) checkName(peer []*x509.Certificate) error {
	if len(e.names) == 0 {
		return nil
	}
	if len(peer) == 0 {
		return errors.New("the client sent no certificate")
	}
	for _, name := range peer[0].DNSNames {
		if slices.Contains(e.names, strings.ToLower(name)) {
			return nil
		}
	}
	return fmt.Errorf("the client certificate's names %.300q are not among those that may ask", peer[0].DNSNames)
}

// connectionKey is the context key of a connection's *checked.
type connectionKey struct{}

// checked records when a connection was opened, and under which CAs its client was verified.
type checked struct {
	opened      time.Time
	authorities atomic.Pointer[x509.CertPool]
}

func rememberChecks(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &checked{opened: time.Now()})
}

// outlived reports whether the connection of a request should end with its answer.
func outlived(ctx context.Context, now time.Time) bool {
	remembered, _ := ctx.Value(connectionKey{}).(*checked)
	return remembered != nil && now.Sub(remembered.opened) >= maxConnectionAge
}

// authorizer returns an error if the client of a request is not allowed.
type authorizer func(*http.Request) error

// insecureAnyone is the authorizer that accepts every client.
func insecureAnyone(*http.Request) error { return nil }

func (e *edgeTLS) authorizer() authorizer {
	if !e.authorize {
		return insecureAnyone
	}
	return e.authorizeClient
}

// authorizeClient decides for every request whether its client is allowed. The handshake did
// so once, but connections live on: this detects a removed CA and an expired certificate.
func (e *edgeTLS) authorizeClient(r *http.Request) error {
	authorities, err := e.clientCAs()
	if err != nil {
		return err
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("the client sent no certificate")
	}
	peer, now := r.TLS.PeerCertificates, time.Now()
	remembered, _ := r.Context().Value(connectionKey{}).(*checked)
	if remembered != nil && remembered.authorities.Load() == authorities && !now.After(peer[0].NotAfter) {
		return nil
	}
	if err := checkChain(peer, authorities, now); err != nil {
		return err
	}
	if err := e.checkName(peer); err != nil {
		return err
	}
	if remembered != nil {
		remembered.authorities.Store(authorities)
	}
	return nil
}

// checkChain verifies a client certificate as the handshake does.
func checkChain(peer []*x509.Certificate, authorities *x509.CertPool, now time.Time) error {
	intermediates := x509.NewCertPool()
	for _, certificate := range peer[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := peer[0].Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("verify the client certificate: %w", err)
	}
	return nil
}
