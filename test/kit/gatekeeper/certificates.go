package gatekeeper

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// ClientName is the DNS name in the certificate of Gatekeeper's webhook.
const ClientName = "gatekeeper-webhook-service.gatekeeper-system.svc"

// Certificates are those of both sides, of one CA, as files in a directory.
type Certificates struct {
	Authority      *fixture.Authority
	Server, Client *fixture.Certificate

	dir string
}

// Issue makes certificates for a provider on this machine and for Gatekeeper, and
// writes them into dir: tls.crt, tls.key, ca.crt, gatekeeper.crt, gatekeeper.key.
func Issue(dir string) (*Certificates, error) {
	c := &Certificates{dir: dir}
	var err error
	if c.Authority, err = fixture.NewAuthority("test CA"); err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	if c.Server, err = c.Authority.IssueServer("127.0.0.1", "localhost"); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	if c.Client, err = c.Authority.IssueClient(ClientName, ClientName); err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	for path, pem := range map[string][]byte{c.CAFile(): c.Authority.CertificatePEM, c.CertificateFile(): c.Server.CertificatePEM, c.KeyFile(): c.Server.KeyPEM,
		c.at("gatekeeper.crt"): c.Client.CertificatePEM, c.at("gatekeeper.key"): c.Client.KeyPEM} {
		if err := os.WriteFile(path, pem, 0o600); err != nil {
			return nil, fmt.Errorf("write a certificate: %w", err)
		}
	}
	return c, nil
}

func (c *Certificates) at(name string) string { return filepath.Join(c.dir, name) }

// Dir is the directory of all files.
func (c *Certificates) Dir() string { return c.dir }

// CertificateFile has the provider's certificate.
func (c *Certificates) CertificateFile() string { return c.at("tls.crt") }

// KeyFile has the key of CertificateFile.
func (c *Certificates) KeyFile() string { return c.at("tls.key") }

// CAFile has the CA of both certificates.
func (c *Certificates) CAFile() string { return c.at("ca.crt") }

// Ask returns a client for the provider at url.
func (c *Certificates) Ask(url string, timeout time.Duration) *Client {
	return New(c.Options(url, timeout))
}

// Options are those of a client for the provider at url.
func (c *Certificates) Options(url string, timeout time.Duration) Options {
	return Options{URL: url, RootCAs: c.Authority.CertificatePEM, Certificate: &c.Client.TLS, Timeout: timeout}
}

// ServerTLS is for a server that is compared with the provider.
func (c *Certificates) ServerTLS() *tls.Config {
	clients := x509.NewCertPool()
	clients.AddCert(c.Authority.Chain[0])
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.Server.TLS},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, NextProtos: []string{"http/1.1"}}
}
