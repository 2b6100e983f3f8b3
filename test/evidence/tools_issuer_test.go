//go:build nightly && !e2e

package evidence

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// issuer is an OpenID Connect provider on loopback (OpenID Connect Discovery 1.0).
type issuer struct {
	address string
	key     *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	i := &issuer{key: key}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.address = server.URL
	return i
}

// ServeHTTP answers discovery and the keys.
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	base := i.address + strings.TrimSuffix(r.URL.Path, "/.well-known/openid-configuration")
	if r.URL.Path != "/keys" {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": base, "jwks_uri": i.address + "/keys", "authorization_endpoint": base + "/auth",
			"token_endpoint": base + "/token", "response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"}})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
		"n": base64url(i.key.N.Bytes()), "e": base64url(big.NewInt(int64(i.key.E)).Bytes())}}})
}

func base64url(content []byte) string { return base64.RawURLEncoding.EncodeToString(content) }

// token signs claims for Sigstore (RFC 7519, RS256).
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	claims["aud"], claims["iat"], claims["exp"] = "sigstore", time.Now().Add(-time.Minute).Unix(), time.Now().Add(10*time.Minute).Unix()
	body, err := json.Marshal(claims)
	require.NoError(t, err)
	signed := base64url([]byte(`{"alg":"RS256","kid":"1","typ":"JWT"}`)) + "." + base64url(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, 5, sum[:]) // 5 is crypto.SHA256
	require.NoError(t, err)
	return signed + "." + base64url(signature)
}
