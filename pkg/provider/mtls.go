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

// config is the TLS configuration of new connections under one identity. There
// is no HTTP/2: Gatekeeper speaks HTTP/1.1, and what is not spoken cannot be
// attacked. There are no session tickets: Gatekeeper never resumes, and a
// resumed session would outlive a change of authorities (CVE-2025-68121).
func (k *keychain) config(in *identity) *tls.Config {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{*in.certificate},
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.NoClientCert,
	}
	if len(k.files.ClientCAs) > 0 {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, in.clientCAs
		if in.clientCAs == nil {
			config.ClientCAs = x509.NewCertPool() // nil would mean the system's authorities
		}
		config.VerifyConnection = func(state tls.ConnectionState) error { return k.checkName(state.PeerCertificates) }
	}
	return config
}

// listenerConfig gives every new connection the configuration in force.
func (k *keychain) listenerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if err := k.ready(); err != nil {
				return nil, err
			}
			return k.current.Load().config, nil
		},
	}
}

// checkName refuses a client whose certificate has none of the names. Wildcards
// and common names mean nothing: a name here is one client's, not a host's.
func (k *keychain) checkName(peer []*x509.Certificate) error {
	if len(k.names) == 0 {
		return nil
	}
	if len(peer) == 0 {
		return errors.New("the client sent no certificate")
	}
	for _, name := range peer[0].DNSNames {
		if slices.Contains(k.names, strings.ToLower(name)) {
			return nil
		}
	}
	return fmt.Errorf("the client certificate's names %.300q are not among those that may ask", peer[0].DNSNames)
}

// connectionKey finds a connection's *checked in the context of its requests.
type connectionKey struct{}

// checked remembers under which authorities a connection's client was verified.
type checked struct {
	authorities atomic.Pointer[x509.CertPool]
}

func rememberChecks(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &checked{})
}

// admit decides on every request whether its client may ask. The handshake did
// so once; but connections live on, and so an authority that was taken away or
// a certificate that has ended must be noticed here.
func (k *keychain) admit(r *http.Request) error {
	if len(k.files.ClientCAs) == 0 {
		return nil
	}
	authorities := k.current.Load().clientCAs
	if authorities == nil {
		return errors.New("the client CA has not been read yet")
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
	if err := k.checkName(peer); err != nil {
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
