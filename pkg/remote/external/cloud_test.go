//go:build aws && azure && gcp

package external

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const (
	awsRelease = "awskms:///alias/release"
	gcpRelease = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"
	canary     = "canary-7f3a"
)

// cloud is a network in which every name leads to one server, that has a certificate for
// each. It remembers what it was asked.
type cloud struct {
	network
	mu    sync.Mutex
	asked []string // method, host and path
	text  strings.Builder
}

func newCloud(t *testing.T, handler http.HandlerFunc) *cloud {
	t.Helper()
	ca, err := fixture.NewAuthority("cloud")
	require.NoError(t, err)
	c := &cloud{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		c.mu.Lock()
		c.asked = append(c.asked, r.Method+" "+r.Host+r.URL.Path)
		fmt.Fprintln(&c.text, r.Header, string(body))
		c.mu.Unlock()
		_ = r.ParseForm()
		handler(w, r)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		made, err := ca.IssueServer(hello.ServerName)
		if err != nil {
			return nil, err
		}
		return &made.TLS, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.roots = ca.CertificatePEM
	c.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	return c
}

func (c *cloud) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// nobody is a network where nothing may be asked.
func nobody(t *testing.T) *cloud {
	t.Helper()
	c := newCloud(t, func(http.ResponseWriter, *http.Request) {})
	t.Cleanup(func() { require.Empty(t, c.requests()) })
	return c
}

// serviceAccountKey returns credentials.json with changes, and its public key.
func serviceAccountKey(t *testing.T, changes map[string]any) (Identity, *rsa.PublicKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	account := map[string]any{"type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": gcpTokenURI}
	for name, value := range changes {
		account[name] = value
	}
	text, err := json.Marshal(account)
	require.NoError(t, err)
	as, err := Given(map[string]string{"credentials.json": string(text)})
	require.NoError(t, err)
	return as, &key.PublicKey
}

func released(t *testing.T) (text []byte, key any, der []byte) {
	t.Helper()
	made, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	block, _ := pem.Decode(made.PEM)
	key, err = x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	return made.PEM, key, block.Bytes
}

func requireKey(t *testing.T, want, got []byte) {
	t.Helper()
	wanted, err := trust.ParsePublicKeys(want)
	require.NoError(t, err)
	parsed, err := trust.ParsePublicKeys(got)
	require.NoError(t, err)
	require.Equal(t, wanted, parsed)
}

func awsIdentity(t *testing.T, region string) Identity {
	t.Helper()
	as, err := Given(map[string]string{"accessKeyID": "AKIDEXAMPLE", "secretAccessKey": "x", "region": region})
	require.NoError(t, err)
	return as
}

func TestKeysOfAWSAreReadWithTheCredentialsGiven(t *testing.T) {
	want, _, der := released(t)
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"UnrecognizedClientException","message":"`+canary+`"}`)
			return
		}
		usage := "SIGN_VERIFY"
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "alias/encrypts") {
			usage = "ENCRYPT_DECRYPT"
		}
		_ = json.NewEncoder(w).
			Encode(map[string]any{"KeyId": "k", "PublicKey": base64.StdEncoding.EncodeToString(der), "KeySpec": "ECC_NIST_P256", "KeyUsage": usage})
	})
	hostileEnvironment(t)
	got, err := c.fetchKMS(t.Context(), Source{Kind: KMS, Address: awsRelease, As: awsIdentity(t, "eu-central-1")})
	require.NoError(t, err)
	requireKey(t, want, got)
	_, err = c.fetchKMS(t.Context(),
		Source{Kind: KMS, Address: "awskms:///arn:aws-cn:kms:cn-north-1:123456789012:alias/release", As: awsIdentity(t, "eu-central-1")})
	require.NoError(t, err)
	_, err = c.fetchKMS(t.Context(),
		Source{Kind: KMS, Address: "awskms://vpce-1.kms.eu-central-1.vpce.amazonaws.com/alias/release", As: awsIdentity(t, "eu-central-1")})
	require.NoError(t, err)
	require.Equal(t, []string{"POST kms.eu-central-1.amazonaws.com/", "POST kms.cn-north-1.amazonaws.com.cn/", "POST vpce-1.kms.eu-central-1.vpce.amazonaws.com/"},
		c.requests())
	other, err := Given(map[string]string{"accessKeyID": "AKIDOTHER", "secretAccessKey": "x", "region": "eu-central-1"})
	require.NoError(t, err)
	_, err = c.fetchKMS(t.Context(), Source{Kind: KMS, Address: awsRelease, As: other})
	require.ErrorContains(t, err, "AWS KMS refuses the credentials")
	require.NotContains(t, err.Error(), canary)
	_, err = c.fetchKMS(t.Context(), Source{Kind: KMS, Address: "awskms:///alias/encrypts", As: awsIdentity(t, "eu-central-1")})
	require.ErrorContains(t, err, "SIGN_VERIFY")
}

func TestNoPartOfAResourceBecomesAnotherHost(t *testing.T) {
	c := nobody(t)
	for _, region := range []string{"", "evil.example/", "evil.example#", "x@evil.example", "eu-central-1.evil.example", "evil.example:443/", "169.254.169.254",
		"eu-central-1\nx", "%2e"} {
		_, err := c.fetchKMS(t.Context(), Source{Kind: KMS, Address: awsRelease, As: awsIdentity(t, region)})
		require.ErrorContains(t, err, "is not a region", region)
	}
	google, _ := serviceAccountKey(t, nil)
	client, err := Given(map[string]string{"tenantID": "../../evil", "clientID": "c", "clientSecret": "s"})
	require.NoError(t, err)
	for _, s := range []Source{
		{Kind: KMS, Address: "awskms:///arn:aws:kms:evil.example/:1:alias/x", As: awsIdentity(t, "eu-central-1")},
		{Kind: KMS, Address: "awskms:///arn:aws:kms:evil.example:1:alias/x", As: awsIdentity(t, "eu-central-1")},
		{Kind: KMS, Address: "awskms://evil.example@/alias/x", As: awsIdentity(t, "eu-central-1")},
		{Kind: KMS, Address: "gcpkms://projects/../../evil/locations/l/keyRings/r/cryptoKeys/k", As: google},
		{Kind: KMS, Address: "gcpkms://projects/p?x/locations/l/keyRings/r/cryptoKeys/k", As: google},
		{Kind: KMS, Address: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/..", As: google},
		{Kind: KMS, Address: gcpRelease + "/versions/1%2f", As: google},
		{Kind: KMS, Address: "azurekms://evil.example/key", As: pod{}}, {Kind: KMS, Address: "azurekms://evil.example/.vault.azure.net/key", As: pod{}},
		{Kind: KMS, Address: "azurekms://x.y.vault.azure.net/key", As: pod{}}, {Kind: KMS, Address: "azurekms://x@v.vault.azure.net/key", As: pod{}},
		{Kind: KMS, Address: "azurekms://v.vault.azure.net/../key", As: pod{}},
		{Kind: Registry, Path: "ACR", Address: "team.azurecr.io", As: client},
	} {
		_, err := c.fetcher()[s.Kind](t.Context(), s)
		require.Error(t, err, s.Address)
		require.NotContains(t, err.Error(), "not in this build")
	}
}

func (c *cloud) fetcher() map[Kind]Fetch { return c.fetchers() }

// paddedKey returns a good key in PKCS #8 with attributes that make it too large.
func paddedKey(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	var whole asn1.RawValue
	_, err = asn1.Unmarshal(der, &whole)
	require.NoError(t, err)
	attributes, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: make([]byte, maxPrivateKey)})
	require.NoError(t, err)
	padded, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: append(whole.Bytes, attributes...)})
	require.NoError(t, err)
	_, err = x509.ParsePKCS8PrivateKey(padded)
	require.NoError(t, err)
	return padded
}

func TestAClusterResourceMayActAsThePod(t *testing.T) {
	want, _, der := released(t)
	c := newCloud(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).
			Encode(map[string]any{"KeyId": "k", "PublicKey": base64.StdEncoding.EncodeToString(der), "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"})
	})
	hostileEnvironment(t)
	as, err := Pod(verify.Cluster)
	require.NoError(t, err)
	f := New(Options{UnsafePod: true, Fetch: c.fetchers()}, time.Now)
	got, err := f.fetch(t.Context(), Source{Kind: KMS, Address: awsRelease, As: as})
	require.NoError(t, err)
	requireKey(t, want, got.Bytes)
	require.Equal(t, []string{"POST kms.eu-central-1.amazonaws.com/"}, c.requests())
	require.Contains(t, c.text.String(), "Credential=POD/")
}

// A namespace wrote token_uri, and we posted there, past the list of hosts.
func TestGoogleCredentialsNameNoServerThatIsAsked(t *testing.T) {
	var reached atomic.Int32
	attacker, _ := served(t, func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		fmt.Fprint(w, `{"access_token":"x","error":"`+canary+`","error_description":"`+canary+`"}`)
	})
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(plain.Close)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("service account token of the pod"), 0o600))
	touched := filepath.Join(t.TempDir(), "touched")
	small, err := rsa.GenerateKey(rand.Reader, 1024) // it is refused
	require.NoError(t, err)
	padded := paddedKey(t)
	c := nobody(t)
	for name, changes := range map[string]map[string]any{
		"another server":         {"token_uri": attacker + "/token"},
		"without TLS":            {"token_uri": plain.URL},
		"Google's, without TLS":  {"token_uri": "http://oauth2.googleapis.com/token"},
		"Google's, another port": {"token_uri": "https://oauth2.googleapis.com:444/token"},
		"Google's as a user":     {"token_uri": "https://oauth2.googleapis.com@127.0.0.1/token"},
		"the metadata service":   {"token_uri": "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"},
		"a file":                 {"token_uri": "file://" + file},
		"another universe":       {"universe_domain": "127.0.0.1"},
		"a user":                 {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"},
		"an external account with a command": {"type": "external_account", "audience": "a", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
			"token_url":         attacker,
			"credential_source": map[string]any{"executable": map[string]any{"command": "touch " + touched}}},
		"an external account with a file": {"type": "external_account", "audience": "a", "token_url": attacker, "credential_source": map[string]any{"file": file}},
		"an external account with a URL": {"type": "external_account", "audience": "a", "token_url": attacker,
			"credential_source": map[string]any{"url": plain.URL}},
		"an external account of AWS": {"type": "external_account", "audience": "a", "token_url": attacker,
			"credential_source": map[string]any{"environment_id": "aws1", "region_url": plain.URL, "url": plain.URL}},
		"an external user": {"type": "external_account_authorized_user", "token_url": attacker, "refresh_token": "r"},
		"another's identity": {"type": "impersonated_service_account", "service_account_impersonation_url": attacker,
			"source_credentials": map[string]any{"type": "authorized_user"}},
		"a GDCH account":          {"type": "gdch_service_account", "token_uri": attacker},
		"no type":                 {"type": ""},
		"a type in capitals":      {"type": "SERVICE_ACCOUNT"},
		"no key":                  {"private_key": ""},
		"a key that is too small": {"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(small)}))},
		"a key that is too large": {"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: padded}))},
		"no e-mail":               {"client_email": ""},
		"too much":                {"x": strings.Repeat("x", maxServiceAccount)},
	} {
		as, _ := serviceAccountKey(t, changes)
		for _, source := range []Source{{Kind: KMS, Address: gcpRelease, As: as}, {Kind: Registry, Path: "GAR", Address: "europe-docker.pkg.dev", As: as}} {
			_, err := c.fetcher()[source.Kind](t.Context(), source)
			require.ErrorContains(t, err, "credentials.json", name)
			require.NotContains(t, err.Error(), canary, name)
			require.NotContains(t, err.Error(), "not in this build")
		}
	}
	require.Zero(t, reached.Load())
	require.NoFileExists(t, touched)
}

func TestKeysAndTokensOfGoogleAreReadWithAServiceAccount(t *testing.T) {
	want, _, _ := released(t)
	var public *rsa.PublicKey
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == gcpTokenHost:
			parts := strings.Split(r.PostFormValue("assertion"), ".")
			signature, _ := base64.RawURLEncoding.DecodeString(parts[len(parts)-1])
			sum := sha256.Sum256([]byte(strings.Join(parts[:len(parts)-1], ".")))
			if rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) != nil {
				http.Error(w, `{"error":"invalid_grant","error_description":"`+canary+`"}`, http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, `{"access_token":"ya29"}`)
		case r.Header.Get("Authorization") != "Bearer ya29":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/cryptoKeyVersions"):
			fmt.Fprint(w, `{"cryptoKeyVersions":[{"name":"a/9","state":"ENABLED"},{"name":"a/10","state":"ENABLED"},{"name":"a/11","state":"DISABLED"}]}`)
		case strings.HasSuffix(r.URL.Path, "/10/publicKey"):
			_ = json.NewEncoder(w).Encode(map[string]string{"pem": string(want)})
		default:
			http.Error(w, canary, http.StatusNotFound)
		}
	})
	hostileEnvironment(t)
	as, own := serviceAccountKey(t, nil)
	public = own
	got, err := c.fetchKMS(t.Context(), Source{Kind: KMS, Address: gcpRelease, As: as})
	require.NoError(t, err)
	requireKey(t, want, got)
	require.Equal(t,
		[]string{"POST oauth2.googleapis.com/token", "GET cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions",
			"GET cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/10/publicKey"}, c.requests())
	_, err = c.fetchKMS(t.Context(), Source{Kind: KMS, Address: gcpRelease + "/versions/9", As: as})
	require.ErrorContains(t, err, "has nothing of that name (404)")
	login, err := c.fetchRegistry(t.Context(), Source{Kind: Registry, Path: "GAR", Address: "europe-docker.pkg.dev", As: as})
	require.NoError(t, err)
	require.Contains(t, string(login.Bytes), base64.StdEncoding.EncodeToString([]byte("oauth2accesstoken:ya29")))
	stranger, _ := serviceAccountKey(t, nil)
	_, err = c.fetchKMS(t.Context(), Source{Kind: KMS, Address: gcpRelease, As: stranger})
	require.ErrorContains(t, err, "refuses the credentials (400)")
	require.NotContains(t, err.Error(), canary)
}

func TestLoginsOfAzureAndAWSGoToTheirOwnHosts(t *testing.T) {
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == "login.microsoftonline.com" && r.PostFormValue("client_secret") == "s":
			fmt.Fprint(w, `{"access_token":"entra"}`)
		case r.Host == "team.azurecr.io" && r.PostFormValue("access_token") == "entra":
			fmt.Fprint(w, `{"refresh_token":"refresh"}`)
		case r.Host == "api.ecr.eu-central-1.amazonaws.com":
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			fmt.Fprint(w, `{"authorizationData":[{"authorizationToken":"`+base64.StdEncoding.EncodeToString([]byte("AWS:token"))+`"}]}`)
		default:
			http.Error(w, `{"error":"`+canary+`","error_description":"`+canary+`"}`, http.StatusUnauthorized)
		}
	})
	hostileEnvironment(t)
	as, err := Given(map[string]string{"tenantID": "t", "clientID": "c", "clientSecret": "s"})
	require.NoError(t, err)
	login, err := c.fetchRegistry(t.Context(), Source{Kind: Registry, Path: "ACR", Address: "team.azurecr.io", As: as})
	require.NoError(t, err)
	require.Contains(t, string(login.Bytes), base64.StdEncoding.EncodeToString([]byte(acrUser+":refresh")))
	require.Equal(t, []string{"POST login.microsoftonline.com/t/oauth2/v2.0/token", "POST team.azurecr.io/oauth2/exchange"}, c.requests())
	login, err = c.fetchRegistry(t.Context(),
		Source{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com", As: awsIdentity(t, "")})
	require.NoError(t, err)
	require.Contains(t, string(login.Bytes), base64.StdEncoding.EncodeToString([]byte("AWS:token")))
	wrong, err := Given(map[string]string{"tenantID": "t", "clientID": "c", "clientSecret": "wrong"})
	require.NoError(t, err)
	_, err = c.fetchRegistry(t.Context(), Source{Kind: Registry, Path: "ACR", Address: "team.azurecr.io", As: wrong})
	require.ErrorContains(t, err, "refuses the credentials (401)")
	require.NotContains(t, err.Error(), canary)
}

// hostileEnvironment sets what SDKs read, as it is in a pod that has identities in every
// cloud, and leads elsewhere.
func hostileEnvironment(t *testing.T) (reached *atomic.Int32) {
	t.Helper()
	reached = &atomic.Int32{}
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		fmt.Fprint(w,
			`{"AccessKeyId":"POD","SecretAccessKey":"POD","Token":"POD","Expiration":"2099-01-01T00:00:00Z","access_token":"POD","expires_in":"3600",`+
				`"expires_on":"4070908800","token_type":"Bearer"}`)
	}))
	t.Cleanup(metadata.Close)
	host := strings.TrimPrefix(metadata.URL, "http://")
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t,
		os.WriteFile(file, []byte("[default]\naws_access_key_id=POD\naws_secret_access_key=POD\nregion=eu-central-1\nendpoint_url="+metadata.URL+"\n"), 0o600))
	google := filepath.Join(t.TempDir(), "google.json")
	require.NoError(t,
		os.WriteFile(google, []byte(`{"type":"authorized_user","client_id":"POD","client_secret":"POD","refresh_token":"POD","token_uri":"`+metadata.URL+`"}`),
			0o600))
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "POD", "AWS_SECRET_ACCESS_KEY": "POD", "AWS_SESSION_TOKEN": "POD", "AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1",
		"AWS_ENDPOINT_URL": metadata.URL, "AWS_ENDPOINT_URL_KMS": metadata.URL, "AWS_ENDPOINT_URL_ECR": metadata.URL, "AWS_SHARED_CREDENTIALS_FILE": file,
		"AWS_CONFIG_FILE":                    file,
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.URL, "AWS_WEB_IDENTITY_TOKEN_FILE": file,
		"AWS_ROLE_ARN":                   "arn:aws:iam::1:role/POD",
		"GOOGLE_APPLICATION_CREDENTIALS": google, "GCE_METADATA_HOST": host, "GOOGLE_CLOUD_PROJECT": "POD", "GOOGLE_CLOUD_UNIVERSE_DOMAIN": host,
		"AZURE_TENANT_ID": "POD", "AZURE_CLIENT_ID": "POD", "AZURE_CLIENT_SECRET": "POD", "AZURE_AUTHORITY_HOST": metadata.URL, "AZURE_FEDERATED_TOKEN_FILE": file,
		"IDENTITY_ENDPOINT": metadata.URL, "IDENTITY_HEADER": "POD", "MSI_ENDPOINT": metadata.URL,
		"HTTPS_PROXY": metadata.URL, "HTTP_PROXY": metadata.URL,
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { require.Zero(t, reached.Load(), "the environment led somewhere") })
	return reached
}

func TestANamespaceNeverActsAsThePod(t *testing.T) {
	hostileEnvironment(t)
	c := newCloud(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusForbidden) })
	identities := []Identity{nil, pod{}} // pod{} can only be written in this package
	for _, values := range []map[string]string{
		{}, {"x": "y"}, {"accessKeyID": " "}, {"accessKeyID": "a"}, {"secretAccessKey": "s"}, {"region": "eu-central-1"}, {"sessionToken": "t"},
		{"accessKeyID": "a", "secretAccessKey": "\n"},
		{"credentials.json": "{}"}, {"credentials.json": " "}, {"credentials.json": "null"}, {"credentials.json": `{"type":"service_account"}`},
		{"credentials.json": `[]`},
		{"tenantID": "t"}, {"tenantID": "t", "clientID": "c"}, {"tenantID": "t", "clientID": "c", "clientSecret": " "},
	} {
		if as, err := Given(values); err == nil {
			identities = append(identities, as)
		}
	}
	f := New(Options{UnsafePod: true, Fetch: c.fetchers()}, time.Now)
	for _, as := range identities {
		for _, source := range []Source{
			{Kind: KMS, Address: awsRelease}, {Kind: KMS, Address: "awskms:///arn:aws:kms:eu-central-1:123456789012:alias/x"}, {Kind: KMS, Address: gcpRelease},
			{Kind: KMS, Address: "azurekms://v.vault.azure.net/k"}, {Kind: KMS, Address: "azurekms:///k"},
			{Kind: Registry, Path: "ECR", Address: "123456789012.dkr.ecr.eu-central-1.amazonaws.com"}, {Kind: Registry, Path: "ACR", Address: "team.azurecr.io"},
			{Kind: Registry, Path: "GAR", Address: "europe-docker.pkg.dev"},
		} {
			source.Owner, source.As = verify.Namespace("team-a"), as
			_, err := f.fetch(t.Context(), source)
			require.Error(t, err)
			require.NotContains(t, err.Error(), canary)
			if as == (pod{}) {
				continue
			}
			_, err = c.fetcher()[source.Kind](t.Context(), source) // past permitted
			require.Error(t, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NotContains(t, c.text.String(), "POD")
	require.Empty(t, c.asked)
}

func TestKeysOfAzureAreReadAsThePodOfAClusterResource(t *testing.T) {
	want, key, _ := released(t)
	public, ok := key.(*ecdsa.PublicKey)
	require.True(t, ok)
	point, err := public.Bytes()
	require.NoError(t, err)
	c := newCloud(t, func(w http.ResponseWriter, r *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/discovery/instance"):
			fmt.Fprint(w, `{"tenant_discovery_endpoint":"https://login.microsoftonline.com/t/v2.0/.well-known/openid-configuration","metadata":[]}`)
		case strings.HasSuffix(path, "/openid-configuration"):
			fmt.Fprint(w, `{"authorization_endpoint":"https://login.microsoftonline.com/t/a","token_endpoint":"https://login.microsoftonline.com/t/token","issuer":"https://login.microsoftonline.com/t/v2.0"}`)
		case path == "/t/token":
			fmt.Fprint(w, `{"access_token":"entra","expires_in":3600,"token_type":"Bearer"}`)
		case r.Header.Get("Authorization") == "Bearer entra" && strings.HasPrefix(path, "/keys/release"):
			fmt.Fprintf(w, `{"key":{"kty":"EC-HSM","crv":"P-256","x":%q,"y":%q}}`, encode(point[1:33]), encode(point[33:]))
		default:
			http.Error(w, canary, http.StatusForbidden)
		}
	})
	for _, name := range []string{"AZURE_AUTHORITY_HOST", "AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"} {
		t.Setenv(name, "t")
	}
	for uri, asked := range map[string]string{
		"azurekms://team.vault.azure.net/release":      "GET team.vault.azure.net/keys/release",
		"azurekms://team.vault.azure.net/release/0a1b": "GET team.vault.azure.net/keys/release/0a1b",
		"azurekms://team.managedhsm.azure.net/release": "GET team.managedhsm.azure.net/keys/release",
	} {
		got, err := c.fetchKMS(t.Context(), Source{Kind: KMS, Address: uri, As: pod{}})
		require.NoError(t, err, uri)
		requireKey(t, want, got)
		require.Contains(t, c.requests(), asked)
	}
	_, err = c.fetchKMS(t.Context(), Source{Kind: KMS, Address: "azurekms://team.vault.azure.net/other", As: pod{}})
	require.ErrorContains(t, err, "Azure Key Vault refuses the credentials (403)")
	require.NotContains(t, err.Error(), canary)
}

func TestKeysOfAzureAreReadAsJSONWebKeys(t *testing.T) {
	_, key, _ := released(t)
	public, ok := key.(*ecdsa.PublicKey)
	require.True(t, ok)
	point, err := public.Bytes()
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	for _, kind := range []string{"EC", "EC-HSM"} {
		got, err := jsonWebKey{Type: kind, Curve: "P-256", X: encode(point[1:33]), Y: encode(point[33:])}.public()
		require.NoError(t, err)
		require.True(t, public.Equal(got))
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	got, err := jsonWebKey{Type: "RSA", N: encode(signer.N.Bytes()), E: "AQAB"}.public()
	require.NoError(t, err)
	require.True(t, signer.PublicKey.Equal(got))
	for _, wrong := range []jsonWebKey{
		{}, {Type: "oct"}, {Type: "EC", Curve: "P-256K"}, {Type: "EC", Curve: "P-256", X: "AA", Y: "AA"},
		{Type: "EC", Curve: "P-256", X: encode(point[33:]), Y: encode(point[1:33])},
		{Type: "RSA"}, {Type: "RSA", N: encode(make([]byte, maxModulus+1)), E: "AQAB"}, {Type: "RSA", N: encode(signer.N.Bytes()), E: encode(make([]byte, 5))},
		{Type: "RSA", N: "!", E: "!"},
	} {
		_, err := wrong.public()
		require.Error(t, err)
	}
}
