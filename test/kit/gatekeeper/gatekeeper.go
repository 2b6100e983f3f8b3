// Package gatekeeper starts the whole provider in a test's process, with a client that asks
// as Gatekeeper does.
package gatekeeper

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/provider"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Desk is what a provider asks.
type Desk interface {
	provider.Decider
	provider.Resolver
}

// Edge is a provider that runs until the end of the test.
type Edge struct {
	// URL is where images are verified.
	URL string
	// Client has a certificate that the provider takes, and keeps 10 connections.
	Client *http.Client
	// TLS is for a server that is compared with it and has the same clients.
	TLS *tls.Config
}

// identity never changes.
type identity struct {
	certificate *tls.Certificate
	clientCAs   *x509.CertPool
}

func (i identity) Certificate() (*tls.Certificate, error) { return i.certificate, nil }
func (i identity) ClientCAs() (*x509.CertPool, error)     { return i.clientCAs, nil }

// Start starts a provider on this machine; Address and TLS of options are its own.
func Start(t testing.TB, desk Desk, options provider.Options) *Edge {
	t.Helper()
	authority, err := fixture.NewAuthority("edge")
	require.NoError(t, err)
	certificate, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	caller, err := authority.IssueClient("gatekeeper")
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority.CertificatePEM))
	options.Address = "127.0.0.1:0"
	options.TLS = identity{&certificate.TLS, roots}
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := provider.New(desk, desk, log, options)
	require.NoError(t, err)
	require.NoError(t, server.Listen(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{caller.TLS}}}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
		require.NoError(t, <-ended)
	})
	return &Edge{URL: "https://" + server.Address() + "/v1/verify", Client: client,
		TLS: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate.TLS},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, NextProtos: []string{"http/1.1"}}}
}
