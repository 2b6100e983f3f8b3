//go:build interop

package interop

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

// issuer is an OpenID Connect provider on loopback (OpenID Connect Discovery 1.0),
// with two addresses: people have an e-mail address at one, workflows claims at
// the other.
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

func (i *issuer) people() string    { return i.address + "/people" }
func (i *issuer) workflows() string { return i.address + "/workflows" }

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

// person is a token of somebody with an e-mail address.
func (i *issuer) person(t *testing.T, email string) string {
	t.Helper()
	return i.token(t, map[string]any{"iss": i.people(), "sub": email, "email": email, "email_verified": true})
}

// workflow is a token of a run of a workflow of a repository, as GitHub Actions
// makes them.
func (i *issuer) workflow(t *testing.T, repository, runner string) string {
	t.Helper()
	return i.token(t, map[string]any{"iss": i.workflows(), "sub": "repo:" + repository + ":ref:refs/heads/main",
		"job_workflow_ref": repository + "/.github/workflows/release.yml@refs/heads/main", "job_workflow_sha": strings.Repeat("a", 40),
		"sha": strings.Repeat("a", 40), "event_name": "push", "repository": repository, "workflow": "release", "ref": "refs/heads/main",
		"runner_environment": runner, "repository_id": "1", "repository_owner": "example", "repository_owner_id": "2", "repository_visibility": "public",
		"workflow_ref": repository + "/.github/workflows/release.yml@refs/heads/main", "workflow_sha": strings.Repeat("a", 40), "run_id": "3", "run_attempt": "1"})
}
