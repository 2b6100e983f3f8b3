package external

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// issued stands for the Kubernetes API: its tokens say whose they are and for whom.
type issued struct {
	mu    sync.Mutex
	asked []string
	err   error
}

func (i *issued) Token(_ context.Context, namespace, name, audience string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, namespace+"/"+name+" for "+audience)
	return "token of " + namespace + "/" + name + " for " + audience, i.err
}

func (i *issued) all() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// puller is a ServiceAccount of team-a.
func puller(t *testing.T, federation Federation) Identity {
	t.Helper()
	as, err := ServiceAccount("team-a", "team-a", "puller", federation)
	require.NoError(t, err)
	return as
}

func TestANamespaceNamesItsOwnServiceAccountsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		owner           verify.Namespace
		namespace, name string
		says            string
	}{
		"its own":                {"team-a", "team-a", "puller", ""},
		"of the cluster":         {verify.Cluster, "team-a", "puller", ""},
		"another namespace's":    {"team-a", "team-b", "puller", "a resource of namespace team-a cannot act as a ServiceAccount of namespace team-b"},
		"Landwaiter's":           {"team-a", "landwaiter-system", "landwaiter", "cannot act as"},
		"of no namespace":        {"team-a", "", "puller", "needs a namespace and a name"},
		"without a name":         {"team-a", "team-a", "", "needs a namespace and a name"},
		"of the cluster, nobody": {verify.Cluster, "", "puller", "needs a namespace and a name"},
	} {
		as, err := ServiceAccount(c.owner, c.namespace, c.name, Federation{})
		if c.says == "" {
			require.NoError(t, err, name)
			require.NotNil(t, as, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
		require.Nil(t, as, name)
	}
}

func TestTheFingerprintCoversTheAccountAndWhatItIsFor(t *testing.T) {
	seen := map[string]string{}
	for name, as := range map[string]Identity{
		"one": account{"team-a", "puller", Federation{}}, "another account": account{"team-a", "other", Federation{}},
		"another namespace": account{"team-b", "puller", Federation{}},
		"moved bounds":      account{"team-apuller", "", Federation{}}, "a role": account{"team-a", "puller", Federation{AWSRoleARN: "x"}},
		"a region": account{"team-a", "puller", Federation{AWSRegion: "x"}},
		"a tenant": account{"team-a", "puller", Federation{AzureTenantID: "x"}}, "a client": account{"team-a", "puller", Federation{AzureClientID: "x"}},
		"a provider": account{"team-a", "puller", Federation{GoogleProvider: "x"}}, "an email": account{"team-a", "puller", Federation{GoogleServiceAccount: "x"}},
		"a Vault role": account{"team-a", "puller", Federation{VaultRole: "x"}}, "a mount": account{"team-a", "puller", Federation{VaultMount: "x"}},
		"a namespace of Vault": account{"team-a", "puller", Federation{VaultNamespace: "x"}}, "the pod": pod{}, "nobody": nil,
	} {
		sum := Source{Owner: "team-a", Kind: Registry, As: as}.Fingerprint()
		require.Empty(t, seen[sum], "%s and %s", name, seen[sum])
		seen[sum] = name
	}
}

// federated answers as Vault does to a login of its auth method kubernetes, of the role
// release for team-a/puller.
func federated(t *testing.T, tokens Tokens) (n network, source Source, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	var want string
	address, authority := served(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		var login struct{ Role, JWT string }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &login)
		switch {
		case r.Header.Get("X-Vault-Namespace") != "teams":
			http.Error(w, "wrong namespace", http.StatusForbidden)
		case r.URL.Path == "/v1/auth/k8s/one/login" && login.Role == "release" && login.JWT == want:
			fmt.Fprint(w, `{"auth":{"client_token":"hvs.short"}}`)
		case strings.HasSuffix(r.URL.Path, "/login"):
			http.Error(w, `{"errors":["says a stranger"]}`, http.StatusBadRequest)
		case r.Header.Get("X-Vault-Token") != "hvs.short":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/v1/auth/token/revoke-self":
			w.WriteHeader(http.StatusNoContent)
		default:
			fmt.Fprint(w, `{"data":{"certificate":"the chain"}}`)
		}
	})
	want = "token of team-a/puller for vault://" + strings.TrimPrefix(address, "https://")
	source = Source{Owner: "team-a", Kind: VaultCertificates, Address: address, Authority: authority, Path: "pki/cert/ca",
		As: puller(t, Federation{VaultRole: "release", VaultMount: "k8s/one", VaultNamespace: "teams"})}
	return network{tokens: tokens}, source, func() []string { mu.Lock(); defer mu.Unlock(); return asked }
}

func TestVaultIsReadAsAServiceAccountAndItsTokenIsGivenBack(t *testing.T) {
	tokens := &issued{}
	n, source, requests := federated(t, tokens)
	got, err := n.fetchVault(t.Context(), source)
	require.NoError(t, err)
	require.Equal(t, "the chain", string(got))
	require.Equal(t, []string{"POST /v1/auth/k8s/one/login", "GET /v1/pki/cert/ca", "POST /v1/auth/token/revoke-self"}, requests())
	require.Equal(t, []string{"team-a/puller for vault://" + strings.TrimPrefix(source.Address, "https://")}, tokens.all(), "the audience names the host")
	require.Equal(t, "vault://vault.example.com", vaultAudience(mustParse(t, "https://Vault.example.com:443/base")))
}

func TestVaultRefusesAnAccountOfAnotherTeam(t *testing.T) {
	n, source, requests := federated(t, &issued{})
	as, err := ServiceAccount("team-b", "team-b", "puller", Federation{VaultRole: "release", VaultMount: "k8s/one", VaultNamespace: "teams"})
	require.NoError(t, err)
	source.Owner, source.As = "team-b", as
	_, err = n.fetchVault(t.Context(), source)
	require.ErrorContains(t, err, "Vault's token server refuses the credentials (400)")
	require.NotContains(t, err.Error(), "stranger")
	require.Equal(t, []string{"POST /v1/auth/k8s/one/login"}, requests(), "nothing is read")
	for mount, says := range map[string]string{"../sys": "the mount has an empty part", "a//b": "the mount has an empty part",
		"..": "the mount has an empty part"} {
		source.As = puller(t, Federation{VaultRole: "release", VaultMount: mount})
		_, err := n.fetchVault(t.Context(), source)
		require.ErrorContains(t, err, says, mount)
	}
	source.As = puller(t, Federation{})
	_, err = n.fetchVault(t.Context(), source)
	require.ErrorContains(t, err, "needs a role")
	require.Len(t, requests(), 1)
}

func TestWithoutTheKubernetesAPIThereAreNoTokens(t *testing.T) {
	n, source, requests := federated(t, nil)
	_, err := n.fetchVault(t.Context(), source)
	require.ErrorContains(t, shown(err), "a token of ServiceAccount team-a/puller needs the Kubernetes API, and resources in files do without it: use secretRef")
	n.tokens = &issued{err: fmt.Errorf("%w; grant it with: kubectl create role", ErrNoRight)}
	_, err = n.fetchVault(t.Context(), source)
	require.ErrorIs(t, shown(err), ErrNoRight)
	require.EqualError(t, shown(err), "landwaiter has no permission to get its tokens; grant it with: kubectl create role")
	require.Empty(t, requests())
}

func TestALoginCountsNoLongerThanItIsValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var state error
		f, _, changed := run(t, Options{Refresh: 5 * time.Minute, Keep: 24 * time.Hour, Fetch: map[Kind]Fetch{kind: func(context.Context, Source) (Content, error) {
			mu.Lock()
			defer mu.Unlock()
			return Content{Bytes: []byte("login"), Ends: time.Now().Add(time.Hour)}, state
		}}})
		a := Source{Kind: kind, Address: listed, Path: "a"}
		known := func() Value { return f.Known([]Source{a})[a] }
		f.Want("", []Source{a})
		await(t, changed, "")
		require.Equal(t, "login", string(known().Content))
		mu.Lock()
		state = errDown
		mu.Unlock()
		time.Sleep(50 * time.Minute)
		require.Equal(t, "login", string(known().Content), "it is still valid")
		for len(changed) > 0 {
			<-changed
		}
		time.Sleep(11 * time.Minute)
		require.Nil(t, known().Content, "long before 24 hours are over")
		require.ErrorContains(t, known().Err, "has ended: test https://ok.example.com a could not be fetched: it is down")
		require.NotEmpty(t, changed, "and who uses it is told")
	})
}

func TestALoginOfAGitHubAppMayReadPackagesAlone(t *testing.T) {
	key, text := appKey(t, 2048)
	var asked []string
	n := namedServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Host+r.URL.Path+" "+string(body))
		claims, err := verifyRS256(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), &key.PublicKey)
		now := time.Now()
		switch {
		case err != nil, claims["iss"] != "4711":
			http.Error(w, `{"message":"says a stranger"}`, http.StatusUnauthorized)
		case claims["exp"].(float64) > float64(now.Add(10*time.Minute).Unix()), claims["iat"].(float64) > float64(now.Unix()): //nolint:forcetypeassert // numbers of JSON
			http.Error(w, "the time", http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/42/access_tokens"):
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(map[string]any{"token": "ghs_x", "expires_at": now.Add(time.Hour).UTC().Format(time.RFC3339)})
		default:
			http.NotFound(w, r)
		}
	})
	login := func(host, app, installation, private string) (Content, error) {
		as, err := Given(map[string]string{"appID": app, "installationID": installation, "privateKey": private})
		require.NoError(t, err)
		return n.fetchRegistry(t.Context(), Source{Owner: "team-a", Kind: Registry, Path: "GHCR", Address: host, As: as})
	}
	got, err := login("ghcr.io", "4711", "42", text)
	require.NoError(t, err)
	require.JSONEq(t, `{"auths":{"ghcr.io":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("x-access-token:ghs_x"))+`"}}}`, string(got.Bytes))
	require.WithinRange(t, got.Ends, time.Now().Add(50*time.Minute), time.Now().Add(time.Hour))
	require.Equal(t, []string{`api.github.com/app/installations/42/access_tokens {"permissions":{"packages":"read"}}`}, asked)

	_, stranger := appKey(t, 2048)
	_, small := appKey(t, 1024)
	for name, c := range map[string]struct{ host, app, installation, private, says string }{
		"another App":               {"ghcr.io", "4712", "42", text, "GitHub refuses the credentials (401)"},
		"another key":               {"ghcr.io", "4711", "42", stranger, "GitHub refuses the credentials (401)"},
		"no such installation":      {"ghcr.io", "4711", "43", text, "has nothing of that name (404)"},
		"a path in place of it":     {"ghcr.io", "4711", "42/../../user", text, "is not a number"},
		"a small key":               {"ghcr.io", "4711", "42", small, "privateKey of the credentials is not an RSA key of 2048 to 4096 bits"},
		"no key":                    {"ghcr.io", "4711", "42", "x", "is not an RSA key"},
		"a key that is missing":     {"ghcr.io", "4711", "42", "", "the credentials have no privateKey"},
		"another registry":          {"evil.example.com", "4711", "42", text, "is not a host of GHCR"},
		"a registry with its name":  {"ghcr.io.evil.example", "4711", "42", text, "is not a host of GHCR"},
		"another port of its hosts": {"ghcr.io:444", "4711", "42", text, "is not a host of GHCR"},
	} {
		_, err := login(c.host, c.app, c.installation, c.private)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "stranger", name)
	}
	_, err = n.fetchRegistry(t.Context(), Source{Kind: Registry, Path: "GHCR", Address: "ghcr.io", As: pod{}})
	require.ErrorContains(t, err, "needs the credentials of a GitHub App")
	_, err = n.fetchRegistry(t.Context(), Source{Kind: Registry, Path: "GHCR", Address: "ghcr.io", As: puller(t, Federation{})})
	require.ErrorContains(t, err, "use secretRef")
}

// appKey returns the key of a GitHub App, in the form in which GitHub gives it.
func appKey(t *testing.T, bits int) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

var errSignature = errors.New("the signature is wrong")
