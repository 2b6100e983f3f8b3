//go:build nightly

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	repository = "landwaiter/landwaiter"
	version    = "v0.0.0-image-test"
)

func startRegistry(t *testing.T) *fixture.Registry {
	t.Helper()
	registry, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, registry.Close()) })
	return registry
}

// makeImage builds the image for this architecture and pushes it, by the command that
// docs/howto/install.md has. It returns what is under the tag, and the command's output.
func makeImage(t *testing.T, registry *fixture.Registry, tag string) (img fixture.Image, output string) {
	t.Helper()
	name := fmt.Sprintf("%s/%s:%s", registry.Host(), repository, tag)
	command := exec.CommandContext(t.Context(), "make", "image", "IMAGE="+name, "PUSH=1", "DOCKER=", "VERSION="+version,
		"PLATFORMS=linux/"+runtime.GOARCH, "VARIANTS=default", "LAYOUT="+filepath.Join(t.TempDir(), "image"))
	command.Dir = root
	command.Env = []string{"DOCKER_CONFIG=" + t.TempDir()}
	for _, setting := range os.Environ() { // without those of the make that runs this test
		if !strings.HasPrefix(setting, "MAKE") && !strings.HasPrefix(setting, "MFLAGS") {
			command.Env = append(command.Env, setting)
		}
	}
	text, err := command.CombinedOutput()
	require.NoError(t, err, "%s", text)
	target, err := registry.Repository(t.Context(), repository)
	require.NoError(t, err)
	img.Descriptor, err = target.Resolve(t.Context(), tag)
	require.NoError(t, err)
	img.Reference, err = image.Parse(name + "@" + img.Descriptor.Digest.String())
	require.NoError(t, err)
	return img, string(text)
}

// writeRules writes what serves as the cluster's resources, and returns their folder.
func writeRules(t *testing.T, registry *fixture.Registry, key *fixture.CosignKey) string {
	t.Helper()
	folder := t.TempDir()
	indented := strings.ReplaceAll(strings.TrimSpace(string(key.PEM)), "\n", "\n      ")
	text := fmt.Sprintf(`apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: registry}
spec: {registries: [%q], insecurePlainHTTP: true}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: keys}
spec:
  type: PublicKeys
  source:
    inline: |
      %s
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerifier
metadata: {name: release}
spec:
  type: Cosign
  cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterVerificationPolicy
metadata: {name: default}
spec:
  rules:
  - images: ["**"]
    require: [{anyOf: [release]}]
`, registry.Host(), indented)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cluster.yaml"), []byte(text), 0o600))
	return folder
}

// ask returns the provider's item for one image of a namespace.
func ask(t *testing.T, client *gatekeeper.Client, img fixture.Image) externaldata.Item {
	t.Helper()
	response, err := client.Ask(t.Context(), gatekeeper.VerifyPath, "[team-a]"+img.Reference.String())
	require.NoError(t, err)
	require.Empty(t, response.SystemError)
	require.Len(t, response.Items, 1)
	return response.Items[0]
}

// TestImage tests the container image as a cluster uses it: built and pushed by `make
// image`, signed, verified by itself, and run by runc with the security context and the
// arguments of the chart. What needs a cluster, such as certificates from Secrets, is
// mounted as files instead. It needs root, as container runtimes do.
func TestImage(t *testing.T) {
	registry := startRegistry(t)
	own, output := makeImage(t, registry, "dev")
	require.Contains(t, output, "Pushed "+registry.Host()+"/"+repository+":dev@"+own.Descriptor.Digest.String())
	unpacked := unpack(t, registry, own.Descriptor)
	chart := renderDeployment(t)

	t.Run("is the same twice", func(t *testing.T) {
		again, _ := makeImage(t, registry, "again")
		require.Equal(t, own.Descriptor.Digest, again.Descriptor.Digest)
	})
	t.Run("has the program and certificates only", func(t *testing.T) {
		require.Equal(t, []string{"/etc/ssl/certs/ca-certificates.crt", "/landwaiter-server"}, unpacked.files(t))
	})
	t.Run("prints its version", func(t *testing.T) {
		running := container{image: unpacked, security: chart, args: []string{"--version"}}.start(t)
		require.Equal(t, 0, running.wait(t), "%s", running.output())
		require.Contains(t, running.output(), "landwaiter-server "+version+" (go")
	})
	t.Run("verifies itself", func(t *testing.T) { verifiesItself(t, registry, own, unpacked, chart) })
}

// verifiesItself signs the image, runs it, and asks the container for a verdict on its
// own image, and on one that nobody signed.
func verifiesItself(t *testing.T, registry *fixture.Registry, own fixture.Image, unpacked imageOnDisk, chart deployment) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	_, err = registry.SignCosign(t.Context(), own, key, fixture.CosignOptions{})
	require.NoError(t, err)
	unsigned, err := registry.PushImage(t.Context(), repository, "unsigned")
	require.NoError(t, err)
	certificates := t.TempDir()
	issued, err := gatekeeper.Issue(certificates)
	require.NoError(t, err)
	ports, err := cluster.FreePorts(3)
	require.NoError(t, err)

	c := container{image: unpacked, security: chart, mounts: map[string]string{
		"/rules": readableFor(t, unpacked, writeRules(t, registry, key)), "/certificates": readableFor(t, unpacked, certificates)}}
	c.args = append(chart.args(t), "--config-dir=/rules", "--tls-dir=/certificates", "--client-ca=/certificates/ca.crt",
		fmt.Sprintf("--address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--health-address=127.0.0.1:%d", ports[1]),
		fmt.Sprintf("--metrics-address=127.0.0.1:%d", ports[2]))
	running := c.start(t)
	running.await(t, func(ctx context.Context) error {
		_, err := stack.Get(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]))
		return err
	})
	running.requireConfined(t)

	client := issued.Ask(fmt.Sprintf("https://127.0.0.1:%d", ports[0]), suite.Patience)
	t.Cleanup(client.Close)
	item := ask(t, client, own)
	verdict, why := gatekeeper.Judge(item)
	require.Equal(t, gatekeeper.Allowed, verdict, why)
	value, _ := item.Value.(map[string]any)
	require.Equal(t, own.Descriptor.Digest.String(), value["digest"])
	verdict, why = gatekeeper.Judge(ask(t, client, unsigned))
	require.Equal(t, gatekeeper.Denied, verdict, why)

	stranger := gatekeeper.New(gatekeeper.Options{URL: client.URL, RootCAs: issued.Authority.CertificatePEM, Timeout: suite.Patience})
	t.Cleanup(stranger.Close)
	_, err = stranger.Ask(t.Context(), gatekeeper.VerifyPath, "[team-a]"+own.Reference.String())
	require.Error(t, err, "a client without a certificate is answered")

	require.Equal(t, 0, running.terminate(t), "%s", running.output())
}

// imageOnDisk is an image as a container runtime has it.
type imageOnDisk struct {
	rootfs string
	config ocispec.ImageConfig
}

// files returns the paths of the image's files.
func (i imageOnDisk) files(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(i.rootfs, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, strings.TrimPrefix(name, i.rootfs))
		}
		return err
	}))
	return found
}
