//go:build e2e

package inspect

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// recorder is a server for whatever looks for credentials on a person's machine, and a
// registry that asks for a login.
type recorder struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []string // paths
	logins []string // Authorization headers
}

func record(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, req.URL.Path)
		if login := req.Header.Get("Authorization") + req.Header.Get("X-Vault-Token"); login != "" {
			r.logins = append(r.logins, login)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) host() string { return strings.TrimPrefix(r.URL, "http://") }

// plant puts credentials of every kind where tools of a person find them, with the recorder
// as the server that gives and takes them.
func plant(t *testing.T, r *recorder) {
	t.Helper()
	home := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("person:canary"))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"auths":{"`+r.host()+`":{"auth":"`+auth+`"}}}`), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".docker"), 0o700))
	require.NoError(t, os.Rename(filepath.Join(home, "config.json"), filepath.Join(home, ".docker", "config.json")))
	for name, value := range map[string]string{
		"HOME": home, "DOCKER_CONFIG": filepath.Join(home, ".docker"), "REGISTRY_AUTH_FILE": filepath.Join(home, ".docker", "config.json"),
		"AWS_ACCESS_KEY_ID": "canary", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": r.URL,
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": r.URL + "/aws", "AWS_EC2_METADATA_SERVICE_ENDPOINT": r.URL,
		"AZURE_TENANT_ID": "canary", "AZURE_CLIENT_ID": "canary", "AZURE_CLIENT_SECRET": "canary", "AZURE_AUTHORITY_HOST": r.URL,
		"IDENTITY_ENDPOINT": r.URL + "/azure", "IDENTITY_HEADER": "canary",
		"GCE_METADATA_HOST": r.host(), "GOOGLE_OAUTH_ACCESS_TOKEN": "canary",
		"VAULT_ADDR": r.URL, "VAULT_TOKEN": "canary",
	} {
		t.Setenv(name, value)
	}
}

func TestAPreviewNeverUsesTheIdentityOrTheLoginsOfTheMachine(t *testing.T) {
	w := withExamples(t)
	r := record(t)
	plant(t, r)
	stranger := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stranger-"}}
	require.NoError(t, w.Client.Create(t.Context(), stranger))
	require.NoError(t, w.runs(suite.Within(t), stranger.Name, "p", r.host()+"/app:v1"))
	t.Cleanup(func() { // the pod at once, because other tests list all pods
		require.NoError(t, w.Client.Delete(context.Background(), suite.Pod(stranger.Name, "p", ""), client.GracePeriodSeconds(0)))
		require.NoError(t, w.Client.Delete(context.Background(), stranger))
	})
	admin := w.somebody(t, "prey", readsEverything())
	admin.landwaiter.Path = suite.MustTool(t, suite.FullLandwaiter)

	const rule = `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerifier
metadata: {name: release}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: lure}], insecureIgnoreTransparencyLog: true}}}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: lure}
spec: {type: PublicKeys, source: {kms: {uri: "URI"}}}
`
	for name, uri := range map[string]string{
		"AWS": "awskms:///alias/release", "Azure": "azurekms://canary.vault.azure.net/release",
		"Google Cloud": "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
	} {
		t.Run(name, func(t *testing.T) {
			printed, _, got := w.previews(t, admin, strings.ReplaceAll(rule, "URI", uri), "-n", "team-c")
			require.Equal(t, 2, got.Code, "%s%s", got.Stdout, got.Stderr)
			require.Equal(t, "unknown", printed.Images[0].To.Answer)
			require.Contains(t, printed.Images[0].To.Reason, "its own is never used")
		})
	}
	require.Empty(t, r.asked, "nobody was asked for credentials, nor with any")

	_, _, got := w.previews(t, admin, `
apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: lure}
spec: {registries: ["`+r.host()+`"], insecurePlainHTTP: true}
`, "-n", stranger.Name, "--all")
	require.NotEmpty(t, r.asked, "the registry was asked: %s%s", got.Stdout, got.Stderr)
	require.Empty(t, r.logins, "and not with a login of the machine")
	for _, path := range r.asked {
		require.True(t, strings.HasPrefix(path, "/v2/"), "%s was asked", path)
	}
}
