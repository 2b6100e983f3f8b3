// Package edge starts a provider in a test's process, and asks it as Gatekeeper
// does.
package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// Service is what a provider asks.
type Service interface {
	provider.Decider
	provider.Resolver
}

// Edge is a provider that runs until the end of the test, with a client for it.
type Edge struct {
	*gatekeeper.Client
	// TLS is for a server that is compared with the provider and has the same clients.
	TLS *tls.Config
}

// identity is a TLS identity that never changes.
type identity struct {
	certificate *tls.Certificate
	clientCAs   *x509.CertPool
}

func (i identity) Certificate() (*tls.Certificate, error) { return i.certificate, nil }
func (i identity) ClientCAs() (*x509.CertPool, error)     { return i.clientCAs, nil }

// Start starts a provider on this machine. It sets Address and TLS of options.
func Start(t testing.TB, service Service, options provider.Options) *Edge {
	t.Helper()
	certificates, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	options.Address = "127.0.0.1:0"
	clients := x509.NewCertPool()
	clients.AddCert(certificates.Authority.Chain[0])
	options.TLS = identity{&certificates.Server.TLS, clients}
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := provider.New(service, service, log, options)
	require.NoError(t, err)
	require.NoError(t, server.Listen(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	e := &Edge{Client: certificates.Ask("https://"+server.Address(), 0), TLS: certificates.ServerTLS()}
	t.Cleanup(func() {
		e.Close()
		stop()
		require.NoError(t, <-ended)
	})
	return e
}
