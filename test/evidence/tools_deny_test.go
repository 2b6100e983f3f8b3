//go:build !e2e

package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// signed signs a new image and returns all that it took.
func signed(t *testing.T, f format, more ...string) (*fixture.Registry, tool, keyPair, fixture.Image) {
	t.Helper()
	registry, command := start(t, fixture.RegistryOptions{}), f.command(t)
	key := command.generate(t)
	img := push(t, registry, repository, "v1")
	f.sign(t, command, key, img, more...)
	return registry, command, key, img
}

func TestDeniesSignatureCopiedToAnotherImage(t *testing.T) {
	registry, _, key, img := signed(t, v2Tag())
	unsigned := push(t, registry, repository, "v2")
	_, err := registry.CopyCosign(t.Context(), img, unsigned)
	require.NoError(t, err)
	requireDenied(t, "WrongDigest", decide(t, registry, byKey(trusted), key.public, unsigned.Reference))
}

func TestDeniesBundleCopiedToAnotherImage(t *testing.T) {
	registry, _, key, img := signed(t, v3Bundle())
	unsigned := push(t, registry, repository, "v2")
	target, err := registry.Repository(t.Context(), repository)
	require.NoError(t, err)
	bundle, err := content.FetchAll(t.Context(), target.Blobs(), evidence(t, registry, img))
	require.NoError(t, err)
	_, err = fixture.PushBundle(t.Context(), target, unsigned, bundle)
	require.NoError(t, err)
	requireDenied(t, "WrongDigest", decide(t, registry, byKey(trusted), key.public, unsigned.Reference))
}

// The same image in another repository has the same digest; cosign itself
// accepts the signature there, and so do we unless matchRepository is set.
func TestDeniesSignatureOfAnotherRepositoryWithMatchRepository(t *testing.T) {
	registry, _, key, img := signed(t, v2Tag())
	moved := copyImage(t, registry, img, "team-b/app")
	_, err := registry.CopyCosign(t.Context(), img, moved)
	require.NoError(t, err)

	spec := byKey(trusted)
	requireAllowed(t, typeTag, decide(t, registry, spec, key.public, moved.Reference))
	spec.Cosign.MatchRepository = true
	requireAllowed(t, typeTag, decide(t, registry, spec, key.public, img.Reference))
	requireDenied(t, "WrongRepository", decide(t, registry, spec, key.public, moved.Reference))
}

// What cosign v3 signs by default names no repository.
func TestDeniesBundleWithMatchRepository(t *testing.T) {
	registry, _, key, img := signed(t, v3Bundle())
	spec := byKey(trusted)
	spec.Cosign.MatchRepository = true
	requireDenied(t, "WrongRepository", decide(t, registry, spec, key.public, img.Reference))
}

// Changed in the registry under the digest of what was signed. Nobody signed the digest of other content, so it proves
// no tampering: a proxy that is broken does the same.
func TestDeniesTamperedPayload(t *testing.T) {
	for name, f := range map[string]format{"v2, tag": v2Tag(), "v3, bundle": v3Bundle()} {
		t.Run(name, func(t *testing.T) {
			// With annotations, the payload cannot be known without being fetched.
			registry, _, key, img := signed(t, f, "-a", "env=prod")
			blob := evidence(t, registry, img)
			body := bytes.Repeat([]byte("x"), int(blob.Size))
			registry.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/blobs/"+blob.Digest.String()) {
					return false
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				w.Header().Set("Docker-Content-Digest", blob.Digest.String())
				_, err := w.Write(body)
				return err == nil
			})
			requireDenied(t, "ContentMismatch", decide(t, registry, byKey(trusted), key.public, img.Reference))
		})
	}
}

// Changed and stored again, so that every digest is right but the signed one.
func TestDeniesPayloadThatWasRewritten(t *testing.T) {
	registry, _, key, img := signed(t, v2Tag())
	other := push(t, registry, repository, "v2")
	signature, err := base64.StdEncoding.DecodeString(evidence(t, registry, img).Annotations["dev.cosignproject.cosign/signature"])
	require.NoError(t, err)
	payload, err := fixture.CosignPayload(other.Reference, nil)
	require.NoError(t, err)
	anyKey, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	_, err = registry.SignCosign(t.Context(), other, anyKey, fixture.CosignOptions{Payload: payload, Signature: signature})
	require.NoError(t, err)
	requireDenied(t, "WrongKey", decide(t, registry, byKey(trusted), key.public, other.Reference))
}

func TestDeniesAttestationInPlaceOfASignature(t *testing.T) {
	registry, command := start(t, fixture.RegistryOptions{}), cosignV3(t)
	key := command.generate(t)
	img := push(t, registry, repository, "v1")
	predicate := filepath.Join(command.home, "predicate.json")
	require.NoError(t, os.WriteFile(predicate, []byte(`{"spdxVersion":"SPDX-2.3"}`), 0o600))
	attest := []string{"attest", "--key", key.file, "--allow-http-registry", "--yes", "--signing-config", command.noServices(t),
		"--predicate", predicate, "--type", "spdxjson", img.Reference.Name() + "@" + img.Descriptor.Digest.String()}
	command.run(t, nil, attest...)
	requireDenied(t, "WrongPredicate", decide(t, registry, byKey(trusted), key.public, img.Reference))

	// Beside a signature it does no harm.
	v3Bundle().sign(t, command, key, img)
	requireAllowed(t, typeBundle, decide(t, registry, byKey(trusted), key.public, img.Reference))
}

func TestDeniesSignatureManifestWithoutLayers(t *testing.T) {
	registry := start(t, fixture.RegistryOptions{})
	key := cosignV2(t).generate(t)
	img := push(t, registry, repository, "v1")
	target, err := registry.Repository(t.Context(), repository)
	require.NoError(t, err)
	config := content.NewDescriptorFromBytes(ocispec.MediaTypeImageConfig, []byte("{}"))
	require.NoError(t, target.Blobs().Push(t.Context(), config, strings.NewReader("{}")))
	text := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[]}`,
		ocispec.MediaTypeImageManifest, config.MediaType, config.Digest)
	manifest := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, []byte(text))
	require.NoError(t, target.PushReference(t.Context(), manifest, strings.NewReader(text), fixture.CosignTag(img.Descriptor.Digest)))

	result := decide(t, registry, byKey(trusted), key.public, img.Reference)
	requireDenied(t, "NoLayers", result)
	require.Contains(t, result.Verdict.Reason, "no layers")
}

func TestDeniesValidSignatureBehindTheLimitAndSaysSo(t *testing.T) {
	registry, command := start(t, fixture.RegistryOptions{}), cosignV2(t)
	key := command.generate(t)
	img := push(t, registry, repository, "v1")
	stranger, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	for i := range 64 {
		_, err := registry.SignCosign(t.Context(), img, stranger, fixture.CosignOptions{Annotations: map[string]string{"number": fmt.Sprint(i)}})
		require.NoError(t, err)
	}
	v2Tag().sign(t, command, key, img)
	result := decide(t, registry, byKey(trusted), key.public, img.Reference)
	requireDenied(t, "LimitExceeded", result)
	require.Contains(t, result.Verdict.Reason, "65 signatures")
}

// copyImage copies an image without what refers to it.
func copyImage(t *testing.T, registry *fixture.Registry, img fixture.Image, name string) fixture.Image {
	t.Helper()
	from, err := registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	to, err := registry.Repository(t.Context(), name)
	require.NoError(t, err)
	_, err = oras.Copy(t.Context(), from, img.Descriptor.Digest.String(), to, img.Reference.Tag, oras.DefaultCopyOptions)
	require.NoError(t, err)
	ref, err := image.Parse(registry.Host() + "/" + name + ":" + img.Reference.Tag + "@" + img.Descriptor.Digest.String())
	require.NoError(t, err)
	return fixture.Image{Reference: ref, Descriptor: img.Descriptor}
}

// evidence returns the layer of the only signature of img, wherever it is.
func evidence(t *testing.T, registry *fixture.Registry, img fixture.Image) ocispec.Descriptor {
	t.Helper()
	target, err := registry.Repository(t.Context(), img.Reference.Repository)
	require.NoError(t, err)
	manifests := []ocispec.Descriptor{}
	if manifest, err := target.Resolve(t.Context(), fixture.CosignTag(img.Descriptor.Digest)); err == nil {
		manifests = append(manifests, manifest)
	}
	require.NoError(t, target.Referrers(t.Context(), img.Descriptor, "", func(page []ocispec.Descriptor) error {
		manifests = append(manifests, page...)
		return nil
	}))
	require.Len(t, manifests, 1)
	text, err := content.FetchAll(t.Context(), target.Manifests(), manifests[0])
	require.NoError(t, err)
	var manifest ocispec.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Len(t, manifest.Layers, 1)
	return manifest.Layers[0]
}
