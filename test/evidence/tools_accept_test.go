//go:build !e2e

package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Artifact types by which findings tell formats apart: a ".sig" manifest has
// none, so its layer's media type stands for it.
const (
	typeTag      = "application/vnd.dev.cosign.simplesigning.v1+json"
	typeReferrer = "application/vnd.dev.cosign.artifact.sig.v1+json"
	typeBundle   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	typeNotation = "application/vnd.cncf.notary.signature"
)

func TestAcceptsWhatCosignSignsInEveryFormat(t *testing.T) {
	noReferrers := fixture.RegistryOptions{NoReferrers: true}
	cases := map[string]struct {
		registry fixture.RegistryOptions
		format   format
		want     string
	}{
		"v2, its default tag": {fixture.RegistryOptions{}, v2Tag(), typeTag},
		"v2, referrer":        {fixture.RegistryOptions{}, v2Referrer(), typeReferrer},
		"v2, bundle":          {fixture.RegistryOptions{}, v2Bundle(), typeBundle},
		"v2, tag in a registry without referrers":    {noReferrers, v2Tag(), typeTag},
		"v3, its default bundle":                     {fixture.RegistryOptions{}, v3Bundle(), typeBundle},
		"v3, bundle in a registry without referrers": {noReferrers, v3Bundle(), typeBundle},
		"v3, tag": {fixture.RegistryOptions{}, v3Tag(), typeTag},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registry, command := start(t, c.registry), c.format.command(t)
			key := command.generate(t)
			img, unsigned := push(t, registry, repository, "v1"), push(t, registry, repository, "v2")
			c.format.sign(t, command, key, img)

			requireAllowed(t, c.want, decide(t, registry, byKey(trusted), key.public, img.Reference))
			requireAllowed(t, c.want, decide(t, registry, byKey(trusted), key.public, img.Reference.WithTag("v1")))
			requireAllowed(t, c.want, decide(t, registry, byKey(trusted), key.public, img.Reference.WithTag("").WithDigest(img.Descriptor.Digest)))
			requireDeniedWithoutSignature(t, decide(t, registry, byKey(trusted), key.public, unsigned.Reference))

			stranger := c.format.command(t).generate(t)
			requireDenied(t, "WrongKey", decide(t, registry, byKey(trusted), stranger.public, img.Reference))
		})
	}
}

func TestAcceptsSignedAnnotationsAndDeniesOthers(t *testing.T) {
	for name, c := range map[string]struct {
		format format
		want   string
	}{
		"v2, tag": {v2Tag(), typeTag}, "v2, referrer": {v2Referrer(), typeReferrer}, "v3, bundle": {v3Bundle(), typeBundle}, "v3, tag": {v3Tag(), typeTag},
	} {
		t.Run(name, func(t *testing.T) {
			registry, command := start(t, fixture.RegistryOptions{}), c.format.command(t)
			key := command.generate(t)
			img := push(t, registry, repository, "v1")
			c.format.sign(t, command, key, img, "-a", "env=prod", "-a", "team=a")

			spec := byKey(trusted)
			requireAllowed(t, c.want, decide(t, registry, spec, key.public, img.Reference))
			spec.Cosign.Annotations = map[string]string{"env": "prod"}
			requireAllowed(t, c.want, decide(t, registry, spec, key.public, img.Reference))
			spec.Cosign.Annotations = map[string]string{"env": "test"}
			requireDenied(t, "WrongAnnotations", decide(t, registry, spec, key.public, img.Reference))
			spec.Cosign.Annotations = map[string]string{"env": "prod", "reviewed": "yes"}
			requireDenied(t, "WrongAnnotations", decide(t, registry, spec, key.public, img.Reference))
		})
	}
}

func TestAcceptsImportedKeys(t *testing.T) {
	for _, algorithm := range []fixture.Algorithm{fixture.ECDSAP256, fixture.ECDSAP384, fixture.ECDSAP521, fixture.RSA2048, fixture.Ed25519} {
		for name, c := range map[string]struct {
			format format
			want   string
		}{"v2, tag": {v2Tag(), typeTag}, "v2, bundle": {v2Bundle(), typeBundle}, "v3, bundle": {v3Bundle(), typeBundle}, "v3, tag": {v3Tag(), typeTag}} {
			t.Run(string(algorithm)+", "+name, func(t *testing.T) {
				registry, command := start(t, fixture.RegistryOptions{}), c.format.command(t)
				key := command.importKey(t, algorithm)
				img := push(t, registry, repository, "v1")
				c.format.sign(t, command, key, img)
				requireAllowed(t, c.want, decide(t, registry, byKey(trusted), key.public, img.Reference))
			})
		}
	}
}

func TestSignatureOfAnIndexIsForTheIndexOnly(t *testing.T) {
	for name, c := range map[string]struct {
		format format
		want   string
	}{"v2, tag": {v2Tag(), typeTag}, "v3, bundle": {v3Bundle(), typeBundle}} {
		t.Run(name, func(t *testing.T) {
			registry, command := start(t, fixture.RegistryOptions{}), c.format.command(t)
			key := command.generate(t)
			platform := push(t, registry, repository, "amd64")
			index, err := registry.PushIndex(t.Context(), repository, "v1", platform)
			require.NoError(t, err)
			c.format.sign(t, command, key, index)
			requireAllowed(t, c.want, decide(t, registry, byKey(trusted), key.public, index.Reference))
			requireDeniedWithoutSignature(t, decide(t, registry, byKey(trusted), key.public, platform.Reference))
		})
	}
}

// Both signatures stay beside each other, and each of the keys suffices.
func TestAcceptsEitherOfTwoSigners(t *testing.T) {
	registry, v2, v3 := start(t, fixture.RegistryOptions{}), cosignV2(t), cosignV3(t)
	first, second := v2.generate(t), v3.generate(t)
	img := push(t, registry, repository, "v1")
	v2Tag().sign(t, v2, first, img)
	v3Bundle().sign(t, v3, second, img)
	requireAllowed(t, typeTag, decide(t, registry, byKey(trusted), first.public, img.Reference))
	requireAllowed(t, typeBundle, decide(t, registry, byKey(trusted), second.public, img.Reference))
	stranger := cosignV3(t).generate(t)
	requireDenied(t, "WrongKey", decide(t, registry, byKey(trusted), stranger.public, img.Reference))
}
