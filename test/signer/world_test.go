//go:build e2e

// Package signer lets a real process judge signatures of AWS Signer, with a stand-in of its
// revocation API, and attestations that GitHub's own Sigstore instance signs, with a
// stand-in of its TUF repository.
package signer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// world is a process that serves the resources in a directory.
type world struct {
	dir      string
	registry *fixture.Registry
	client   *gatekeeper.Client
}

// start starts the process. Its system's certificates are those in roots.
func start(t *testing.T, registry *fixture.Registry, dir, roots string, flags ...string) *world {
	t.Helper()
	binary := os.Getenv("LANDWAITER_FULL_BINARY")
	require.NotEmpty(t, binary, "LANDWAITER_FULL_BINARY must name a binary with the clouds, as make e2e does")
	issued, err := gatekeeper.Issue(t.TempDir())
	require.NoError(t, err)
	ports, err := cluster.FreePorts(2)
	require.NoError(t, err)
	address, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	process, err := cluster.StartProcess(t.TempDir(), cluster.Command{Name: "landwaiter", Path: binary, Env: []string{"SSL_CERT_FILE=" + roots, "SSL_CERT_DIR=" + t.TempDir()},
		Args: append([]string{"serve", "--config-dir", dir, "--address", address, "--health-address", health, "--metrics-address", "",
			"--tls-cert", issued.CertificateFile(), "--tls-key", issued.KeyFile(), "--client-ca", issued.CAFile()}, flags...)})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, process.Await(ctx, func(ctx context.Context) error {
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
	}))
	w := &world{dir: dir, registry: registry, client: gatekeeper.New(issued.Options("https://"+address, 10*time.Second))}
	t.Cleanup(w.client.Close)
	return w
}

// ask returns the answer for one image.
func (w *world) ask(t *testing.T, namespace string, img fixture.Image) (answer externaldata.Response, key string) {
	t.Helper()
	key = "[" + namespace + "]" + img.Reference.Name() + "@" + img.Descriptor.Digest.String()
	answer, err := w.client.Ask(t.Context(), "/v1/verify", key)
	require.NoError(t, err)
	return answer, key
}

// judged asks until there is a definite answer, as Gatekeeper's users do.
func (w *world) judged(t *testing.T, namespace string, img fixture.Image) (gatekeeper.Verdict, string) {
	t.Helper()
	var verdict gatekeeper.Verdict
	var why string
	require.Eventually(t, func() bool {
		answer, key := w.ask(t, namespace, img)
		if answer.SystemError != "" {
			why = answer.SystemError
			return false
		}
		verdict, why = gatekeeper.Judge(gatekeeper.Items(answer)[key])
		return true
	}, 30*time.Second, 50*time.Millisecond, "%s", img.Reference)
	return verdict, why
}

func startRegistry(t *testing.T) *fixture.Registry {
	t.Helper()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = registry.Close() })
	return registry
}

func push(t *testing.T, registry *fixture.Registry, name string) fixture.Image {
	t.Helper()
	img, err := registry.PushImage(t.Context(), name, "v1")
	require.NoError(t, err)
	return img
}

// write writes resources as one file.
func write(t *testing.T, dir, name string, documents ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.Join(documents, "---\n")), 0o600))
}

// resource is one document; spec is YAML.
func resource(kind, namespace, name, spec string) string {
	where := ""
	if namespace != "" {
		where = ", namespace: " + namespace
	}
	return fmt.Sprintf("apiVersion: landwaiter.dev/v1alpha1\nkind: %s\nmetadata: {name: %s%s}\nspec:\n  %s\n", kind, name, where, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// inline is the source of a trust store.
func inline(text string) string {
	return "source:\n  inline: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

func teamOf(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s, uid: uid-%[1]s}\n", name)
}

func loopback(registry *fixture.Registry) string {
	return resource("ClusterStore", "", "loopback", fmt.Sprintf("registries: [%q]\ninsecurePlainHTTP: true", registry.Host()))
}

const everything = `rules: [{images: ["**"], require: [{anyOf: [release]}]}]`
