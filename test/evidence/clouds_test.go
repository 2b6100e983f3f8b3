//go:build e2e

package evidence

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	vaultHost = "vault.example.com:8200"
	ecrHost   = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	acrHost   = "teama.azurecr.io"
	garHost   = "europe-docker.pkg.dev"
	ghcrHost  = "ghcr.io"

	issuer   = "https://kubernetes.default.svc"
	roleARN  = "arn:aws:iam::123456789012:role/team-a"
	pool     = "projects/1/locations/global/workloadIdentityPools/clusters/providers/this"
	email    = "team-a@p.iam.gserviceaccount.com"
	entra    = "00000000-1111-2222-3333-444444444444"
	clientID = "team-a-app"
)

// clouds are stand-ins of token services, key management services and registries, behind
// one address, with a certificate for each name. They check tokens as the real ones do:
// the signature by the keys that the API server publishes, the issuer, the one audience,
// the time, and whom the asked role trusts.
type clouds struct {
	ca       *fixture.Authority
	server   *httptest.Server
	registry *fixture.Registry
	backend  http.Handler
	accounts jose.JSONWebKeySet // of the API server
	released []byte             // the public key that is in every key management service
	der      []byte
	app      *rsa.PrivateKey // of the GitHub App

	mu      sync.Mutex
	trusted map[string]bool   // accounts that all roles, applications and service accounts trust
	given   map[string]string // what was given out, and for what
	tokens  []string          // that came, good or not
	asked   []string          // by whom, and what was answered
}

func startClouds(ctx context.Context, config *rest.Config) (c *clouds, err error) {
	c = &clouds{given: map[string]string{}, trusted: map[string]bool{}}
	if c.ca, err = fixture.NewAuthority("clouds"); err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	published, err := clients.RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the API server's keys: %w", err)
	}
	if err := json.Unmarshal(published, &c.accounts); err != nil || len(c.accounts.Keys) == 0 {
		return nil, fmt.Errorf("read the API server's %d keys: %w", len(c.accounts.Keys), err)
	}
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(key.PEM)
	c.released, c.der = key.PEM, block.Bytes
	if c.app, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if c.registry, err = fixture.StartRegistry(fixture.RegistryOptions{}); err != nil {
		return nil, err
	}
	c.backend = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: c.registry.Host()})
	c.server = httptest.NewUnstartedServer(c)
	c.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		made, err := c.ca.IssueServer(hello.ServerName)
		if err != nil {
			return nil, err
		}
		return &made.TLS, nil
	}}
	c.server.StartTLS()
	return c, nil
}

func (c *clouds) close() {
	if c.server != nil {
		c.server.Close()
	}
	if c.registry != nil {
		_ = c.registry.Close()
	}
}

func (c *clouds) address() string { return c.server.Listener.Addr().String() }

// hosts are those that serve finds here.
func (c *clouds) hosts() []string {
	return []string{vaultHost, ecrHost, acrHost, garHost, ghcrHost, "sts.eu-central-1.amazonaws.com", "api.ecr.eu-central-1.amazonaws.com",
		"kms.eu-central-1.amazonaws.com",
		"login.microsoftonline.com", "team.vault.azure.net", "sts.googleapis.com", "iamcredentials.googleapis.com", "cloudkms.googleapis.com", "api.github.com"}
}

// subject returns whose a token is. It returns an error unless it is one of the API server
// for this audience and no other.
func (c *clouds) subject(token, audience string) (string, error) {
	c.mu.Lock()
	c.tokens = append(c.tokens, token)
	c.mu.Unlock()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.RS256})
	if err != nil {
		return "", fmt.Errorf("parse a token: %w", err)
	}
	var claims jwt.Claims
	if err := parsed.Claims(c.accounts, &claims); err != nil {
		return "", fmt.Errorf("check the signature: %w", err)
	}
	if err := claims.ValidateWithLeeway(jwt.Expected{Issuer: issuer, Time: time.Now()}, time.Minute); err != nil {
		return "", fmt.Errorf("check the claims: %w", err)
	}
	switch life := claims.Expiry.Time().Sub(claims.IssuedAt.Time()); {
	case !slices.Equal(claims.Audience, jwt.Audience{audience}):
		return "", fmt.Errorf("the audience is %q, not %q", claims.Audience, audience)
	case life > 10*time.Minute:
		return "", fmt.Errorf("the token lives for %s", life)
	}
	return claims.Subject, nil
}

// trust lets the account puller of a namespace in everywhere.
func (c *clouds) trust(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trusted["system:serviceaccount:"+namespace+":puller"] = true
}

// trusts returns an error unless a token is a trusted account's.
func (c *clouds) trusts(token, audience string) error {
	subject, err := c.subject(token, audience)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && !c.trusted[subject] {
		err = errors.New("no trust in " + subject)
	}
	return err
}

// give returns a secret that stands for something.
func (c *clouds) give(what string) string {
	secret := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[secret] = what
	return secret
}

func (c *clouds) was(secret, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return secret != "" && c.given[secret] == what
}

func (c *clouds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "cut", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	host, _, _ := strings.Cut(r.Host, ":")
	var answer string
	switch {
	case strings.HasPrefix(r.URL.Path, "/v2/"):
		c.pull(w, r)
		return
	case strings.HasSuffix(host, ".amazonaws.com"):
		answer, err = c.aws(host, r)
	case host == "login.microsoftonline.com", host == acrHost, host == "team.vault.azure.net":
		answer, err = c.azure(host, r)
	case strings.HasSuffix(host, ".googleapis.com"):
		answer, err = c.google(host, r)
	case r.Host == vaultHost:
		answer, err = c.vault(r, body)
	case host == "api.github.com":
		answer, err = c.github(r, body)
	default:
		err = errors.New("nobody is here")
	}
	c.mu.Lock()
	c.asked = append(c.asked, fmt.Sprint(r.Method, " ", r.Host, r.URL.Path, " ", err))
	c.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if host == "api.github.com" {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = io.WriteString(w, answer)
}

// pull answers as a registry that demands the login that its cloud gave out.
func (c *clouds) pull(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	users := map[string]string{ecrHost: "AWS", acrHost: "00000000-0000-0000-0000-000000000000", garHost: "oauth2accesstoken", ghcrHost: "x-access-token"}
	if users[r.Host] == "" || user != users[r.Host] || !c.was(password, "login at "+r.Host) {
		w.Header().Set("WWW-Authenticate", `Basic realm="cloud"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.backend.ServeHTTP(w, r)
}

func (c *clouds) aws(host string, r *http.Request) (string, error) {
	if host == "sts.eu-central-1.amazonaws.com" {
		if r.PostFormValue("Action") != "AssumeRoleWithWebIdentity" || r.PostFormValue("RoleArn") != roleARN || r.Header.Get("Authorization") != "" {
			return "", errors.New("no such role")
		}
		return fmt.Sprintf(`<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			c.give("session of AWS"), time.Now().Add(15*time.Minute).UTC().Format(time.RFC3339)), c.trusts(r.PostFormValue("WebIdentityToken"), "sts.amazonaws.com")
	}
	if !c.was(r.Header.Get("X-Amz-Security-Token"), "session of AWS") || !strings.Contains(r.Header.Get("Authorization"), "Credential=ASIAEXAMPLE/") {
		return "", errors.New("no session")
	}
	if host == "kms.eu-central-1.amazonaws.com" {
		return fmt.Sprintf(`{"KeyId":"k","PublicKey":%q,"KeyUsage":"SIGN_VERIFY"}`, base64.StdEncoding.EncodeToString(c.der)), nil
	}
	return fmt.Sprintf(`{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d}]}`,
		base64.StdEncoding.EncodeToString([]byte("AWS:"+c.give("login at "+ecrHost))), time.Now().Add(12*time.Hour).Unix()), nil
}

func (c *clouds) azure(host string, r *http.Request) (string, error) {
	switch host {
	case acrHost:
		if r.URL.Path != "/oauth2/exchange" || !c.was(r.PostFormValue("access_token"), "https://containerregistry.azure.net/.default") {
			return "", errors.New("no token")
		}
		return fmt.Sprintf(`{"refresh_token":%q}`, c.give("login at "+acrHost)), nil
	case "team.vault.azure.net":
		if !c.was(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "https://vault.azure.net/.default") {
			return "", errors.New("no token")
		}
		key, err := x509.ParsePKIXPublicKey(c.der)
		if err != nil {
			return "", err
		}
		public, _ := key.(*ecdsa.PublicKey)
		point, err := public.Bytes()
		encode := base64.RawURLEncoding.EncodeToString
		return fmt.Sprintf(`{"key":{"kty":"EC","crv":"P-256","x":%q,"y":%q}}`, encode(point[1:33]), encode(point[33:])), err
	}
	if r.URL.Path != "/"+entra+"/oauth2/v2.0/token" || r.PostFormValue("client_id") != clientID || r.PostFormValue("client_secret") != "" {
		return "", errors.New("no such application")
	}
	return fmt.Sprintf(`{"access_token":%q}`, c.give(r.PostFormValue("scope"))), c.trusts(r.PostFormValue("client_assertion"), "api://AzureADTokenExchange")
}

// mayImpersonate reports whether a federated token is a trusted account's.
func (c *clouds) mayImpersonate(federated string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	subject, is := strings.CutPrefix(c.given[federated], "federated ")
	return is && c.trusted[subject]
}

// google exchanges the token of any account of the cluster, as a pool does, and lets
// trusted ones alone impersonate.
func (c *clouds) google(host string, r *http.Request) (string, error) {
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch host {
	case "sts.googleapis.com":
		if r.PostFormValue("audience") != "//iam.googleapis.com/"+pool {
			return "", errors.New("no such pool")
		}
		subject, err := c.subject(r.PostFormValue("subject_token"), "https://iam.googleapis.com/"+pool)
		return fmt.Sprintf(`{"access_token":%q,"expires_in":3599}`, c.give("federated "+subject)), err
	case "iamcredentials.googleapis.com":
		if r.URL.Path != "/v1/projects/-/serviceAccounts/"+email+":generateAccessToken" || !c.mayImpersonate(bearer) {
			return "", errors.New("may not impersonate")
		}
		return fmt.Sprintf(`{"accessToken":%q,"expireTime":%q}`, c.give("login at "+garHost), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), nil
	}
	if !c.was(bearer, "login at "+garHost) {
		return "", errors.New("no token")
	}
	text, err := json.Marshal(map[string]string{"pem": string(c.released)})
	return string(text), err
}

// vault has a role release for the trusted account, with an audience, as its auth method
// kubernetes has.
func (c *clouds) vault(r *http.Request, body []byte) (string, error) {
	switch r.URL.Path {
	case "/v1/auth/kubernetes/login":
		var login struct{ Role, JWT string }
		if err := json.Unmarshal(body, &login); err != nil || login.Role != "release" {
			return "", errors.New("no such role")
		}
		return fmt.Sprintf(`{"auth":{"client_token":%q}}`, c.give("token of Vault")), c.trusts(login.JWT, "vault://"+vaultHost)
	case "/v1/transit/keys/release":
		if !c.was(r.Header.Get("X-Vault-Token"), "token of Vault") {
			return "", errors.New("no token")
		}
		text, err := json.Marshal(
			map[string]any{"data": map[string]any{"keys": map[string]any{"1": map[string]string{"name": "P-256", "public_key": string(c.released)}}}})
		return string(text), err
	}
	return "{}", nil
}

func (c *clouds) github(r *http.Request, body []byte) (string, error) {
	parsed, err := jwt.ParseSigned(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return "", err
	}
	var claims jwt.Claims
	if err := parsed.Claims(c.app.Public(), &claims); err != nil {
		return "", err
	}
	if claims.Issuer != "4711" || claims.Expiry.Time().After(time.Now().Add(10*time.Minute)) || r.URL.Path != "/app/installations/42/access_tokens" ||
		!strings.Contains(string(body), `"packages":"read"`) {
		return "", errors.New("no such installation")
	}
	return fmt.Sprintf(`{"token":%q,"expires_at":%q}`, c.give("login at "+ghcrHost), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)), nil
}

// seen returns the tokens that came, and how each request ended.
func (c *clouds) seen() (tokens, asked []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens), slices.Clone(c.asked)
}
