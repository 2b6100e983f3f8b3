//go:build e2e

package evidence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("evidence")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// server is a serve process. If its resources are from files, these are in dir.
type server struct {
	*suite.Server
	dir string
}

// serve starts a process with files of resources, by name, and with an environment.
func serve(t *testing.T, files map[string]string, environment ...string) *server {
	t.Helper()
	return serveWith(t, suite.ServerOptions{Binary: suite.LandwaiterServer, Env: environment}, files)
}

func serveWith(t *testing.T, options suite.ServerOptions, files map[string]string) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	for name, text := range files {
		s.write(t, name, text)
	}
	options.Args = append(options.Args, "--config-dir", s.dir, "--ttl", "deny=100ms")
	var err error
	s.Server, err = suite.ForTest(t).Server(suite.Within(t), options)
	require.NoError(t, err)
	return s
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
	response, err := s.Client.Ask(ctx, gatekeeper.VerifyPath, key)
	if err != nil {
		return "", "", err
	}
	if response.SystemError != "" {
		return undecided, response.SystemError, nil
	}
	verdict, why := gatekeeper.Judge(gatekeeper.Items(response)[key])
	return verdict, why, nil
}

// judged asks until there is a verdict, as Gatekeeper's users do, and returns the first.
func (s *server) judged(t *testing.T, namespace, image string) (verdict gatekeeper.Verdict, why string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) (err error) {
		if verdict, why, err = s.ask(ctx, namespace, image); verdict == undecided {
			return errors.New(why)
		}
		return err
	})
	return verdict, why
}

// requireVerdict asks until the verdict is as wanted and says what is wanted: a change of
// resources takes a moment.
func (s *server) requireVerdict(t *testing.T, want gatekeeper.Verdict, namespace, image string, says ...string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
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
	})
}

// registry is a registry behind TLS, with one signed image.
type registry struct {
	*fixture.Registry
	host string // with the port at which TLS is spoken
	// image is the repository and digest, for any host that leads here.
	image string
}

// startRegistry starts a registry whose certificate is for names and 127.0.0.1. With
// clients, it asks for a client certificate of that authority.
func startRegistry(t *testing.T, key *fixture.CosignKey, authority *fixture.Authority, clients *fixture.Authority, names ...string) *registry {
	t.Helper()
	plain := plainRegistry(t)
	img := pushed(t, plain, "team/app", key)
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

// plainRegistry starts a registry without TLS.
func plainRegistry(t *testing.T) *fixture.Registry {
	t.Helper()
	r, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// pushed pushes an image, and signs it if there is a key.
func pushed(t *testing.T, r *fixture.Registry, repository string, key *fixture.CosignKey) fixture.Image {
	t.Helper()
	img, err := r.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	if key != nil {
		_, err = r.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return img
}

// copied copies an image to a repository, without what refers to it.
func copied(t *testing.T, from *fixture.Registry, img fixture.Image, to *fixture.Registry, repository string) {
	t.Helper()
	source, err := from.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	target, err := to.Repository(t.Context(), repository)
	require.NoError(t, err)
	_, err = oras.Copy(t.Context(), source, img.Reference.Digest.String(), target, "v1", oras.DefaultCopyOptions)
	require.NoError(t, err)
}

// document is a resource of Landwaiter, of the cluster without a namespace; spec is YAML.
func document(kind, namespace, name, spec string) string {
	if namespace != "" {
		name += ", namespace: " + namespace
	}
	return fmt.Sprintf("---\napiVersion: landwaiter.dev/v1beta1\nkind: %s\nmetadata: {name: %s}\nspec:\n  %s\n", kind, name,
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// inline is a field that has text inline.
func inline(field string, text []byte) string {
	return field + ":\n  inline: |\n" + indent(4, text)
}

// indent returns text as a YAML block.
func indent(n int, text []byte) string {
	space := strings.Repeat(" ", n)
	return space + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n"+space)
}

// store is a Store, or a ClusterStore without a namespace, with further lines of its spec.
func store(namespace, name string, registries []string, authority *fixture.Authority, lines ...string) string {
	kind := "ClusterStore"
	if namespace != "" {
		kind = "Store"
	}
	if authority != nil {
		lines = append([]string{inline("caBundle", authority.CertificatePEM)}, lines...)
	}
	return document(kind, namespace, name, "registries: ['"+strings.Join(registries, "', '")+"']\n"+strings.Join(lines, "\n"))
}

func namespaceOf(name string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s, uid: uid-%[1]s}\n", name)
}

// trusting is the rule of a namespace that images are signed with a key.
func trusting(namespace string, key *fixture.CosignKey) string {
	return document("TrustStore", namespace, "keys", "type: PublicKeys\n"+inline("source", key.PEM)) +
		document("Verifier", namespace, "release", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}")
}

// rules are a namespace and the rule that images are signed with a key.
func rules(namespace string, key *fixture.CosignKey) string {
	return namespaceOf(namespace) + trusting(namespace, key)
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
