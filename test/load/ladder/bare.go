package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/bare"
)

// answerFile is what the bare handler answers.
const answerFile = "answer.json"

// serveBare is what no provider can be faster than: it decodes the request and
// answers one body, over the same TLS, in a process of its own. Its address is in a
// file of the folder, where also its certificate and its clients' CA are.
func serveBare(ctx context.Context, dir string) error {
	answer, err := os.ReadFile(filepath.Join(dir, answerFile))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return fmt.Errorf("read the CA: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	address, err := os.ReadFile(filepath.Join(dir, "bare.address"))
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", string(address))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: bare.Handler(answer)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err = server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
