package external

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// verifyRS256 returns the claims of a JWT.
func verifyRS256(token string, key *rsa.PublicKey) (claims map[string]any, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errSignature
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil {
		return nil, errSignature
	}
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return claims, json.Unmarshal(body, &claims)
}

// namedServer returns a network in which every name leads to one server.
func namedServer(t *testing.T, handler http.HandlerFunc) network {
	t.Helper()
	ca, err := fixture.NewAuthority("named")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		made, err := ca.IssueServer(hello.ServerName)
		if err != nil {
			return nil, err
		}
		return &made.TLS, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return network{roots: ca.CertificatePEM, dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	require.NoError(t, err)
	return parsed
}
