//go:build e2e

// Package reach shows how registries are reached as companies have them: through a real
// `serve` process, with a forward proxy that records what it is asked for, registries with
// TLS of their own, and what tenants try with them.
package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// settle bounds what is waited for.
const settle = 30 * time.Second

// server is a serve process with resources from files.
type server struct {
	*cluster.Process
	client *gatekeeper.Client
	dir    string
}

// serve starts a process with files, by name, and with an environment.
func serve(t *testing.T, files map[string]string, environment ...string) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	for name, text := range files {
		s.write(t, name, text)
	}
	s.start(t, environment, "--config-dir", s.dir)
	return s
}

// start starts the process and waits until it is ready.
func (s *server) start(t *testing.T, environment []string, args ...string) {
	t.Helper()
	binary := os.Getenv("LANDWAITER_BINARY")
	require.NotEmpty(t, binary, "LANDWAITER_BINARY must name the program, as make e2e does")
	issued, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	address, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	logs := t.TempDir()
	s.Process, err = cluster.StartProcess(logs, cluster.Command{Name: "landwaiter", Path: binary, Env: environment,
		Args: append([]string{"serve", "--address", address, "--health-address", health, "--metrics-address", "", "--deny-ttl", "100ms",
			"--tls-cert", issued.CertificateFile(), "--tls-key", issued.KeyFile(), "--client-ca", issued.CAFile()}, args...)})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, s.Await(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}), s.Tail(20))
	s.client = gatekeeper.New(issued.Options("https://"+address, 10*time.Second))
	t.Cleanup(s.client.Close)
}

// write writes a file of resources.
func (s *server) write(t *testing.T, name, text string) {
	t.Helper()
	temporary := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(temporary, []byte(text), 0o600))
	require.NoError(t, os.Rename(temporary, filepath.Join(s.dir, name+".yaml")))
}

// undecided is the verdict of a key that made the answer a system error.
const undecided gatekeeper.Verdict = "undecided"

// ask asks for an image in a namespace.
func (s *server) ask(ctx context.Context, namespace, image string) (gatekeeper.Verdict, string, error) {
	key := "[" + namespace + "]" + image
	response, err := s.client.Ask(ctx, gatekeeper.VerifyPath, key)
	if err != nil {
		return "", "", err
	}
	if response.SystemError != "" {
		return undecided, response.SystemError, nil
	}
	verdict, why := gatekeeper.Judge(gatekeeper.Items(response)[key])
	return verdict, why, nil
}

// requireVerdict asks until the verdict is as wanted and says what is wanted: a change of
// resources takes a moment.
func (s *server) requireVerdict(t *testing.T, want gatekeeper.Verdict, namespace, image string, says ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	require.NoError(t, cluster.Until(ctx, func(ctx context.Context) error {
		verdict, why, err := s.ask(ctx, namespace, image)
		if err != nil {
			return err
		}
		for _, text := range says {
			if !strings.Contains(why, text) {
				return fmt.Errorf("%s, and %q does not say %q", verdict, why, text)
			}
		}
		if verdict != want {
			return fmt.Errorf("%s is %s, want %s: %s", image, verdict, want, why)
		}
		return nil
	}), s.Tail(10))
}

// registry is a registry behind TLS, with one signed image.
type registry struct {
	*fixture.Registry
	host string // with the port at which TLS is spoken
	// image is the repository and digest, for any host that leads here.
	image string
}

// start starts a registry whose certificate is for names and 127.0.0.1. With clients, it
// asks for a client certificate of that authority.
func startRegistry(t *testing.T, key *fixture.CosignKey, authority *fixture.Authority, clients *fixture.Authority, names ...string) *registry {
	t.Helper()
	plain, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = plain.Close() })
	img, err := plain.PushImage(t.Context(), "team/app", "v1")
	require.NoError(t, err)
	_, err = plain.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
	require.NoError(t, err)
	certificate, err := authority.IssueServer(append(names, "127.0.0.1")...)
	require.NoError(t, err)
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: plain.Host()}))
	front.Config.ErrorLog = quiet()
	front.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.TLS}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		front.TLS.ClientAuth, front.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		front.TLS.ClientCAs.AddCert(clients.Chain[0])
	}
	front.StartTLS()
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return &registry{Registry: plain, host: strings.TrimPrefix(front.URL, "https://"), image: "/team/app@" + img.Reference.Digest.String()}
}

// requireLogin makes a registry ask for a user and password.
func (r *registry) requireLogin(user, password string) {
	r.SetIntercept(func(w http.ResponseWriter, request *http.Request) bool {
		if u, p, ok := request.BasicAuth(); ok && u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		return true
	})
}

// rules are a namespace and the rule that images are signed with a key.
func rules(namespace string, key *fixture.CosignKey) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, uid: uid-%[1]s}
---
apiVersion: landwaiter.dev/v1alpha1
kind: TrustStore
metadata: {name: keys, namespace: %[1]s}
spec:
  type: PublicKeys
  source:
    inline: |
%[2]s
---
apiVersion: landwaiter.dev/v1alpha1
kind: Verifier
metadata: {name: release, namespace: %[1]s}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}]}}}
`, namespace, indent(6, key.PEM))
}

// indent returns text as a YAML block.
func indent(n int, text []byte) string {
	space := strings.Repeat(" ", n)
	return space + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n"+space)
}

// newKey returns a key that signs images.
func newKey(t *testing.T) *fixture.CosignKey {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	return key
}

func newAuthority(t *testing.T, name string) *fixture.Authority {
	t.Helper()
	authority, err := fixture.NewAuthority(name)
	require.NoError(t, err)
	return authority
}
