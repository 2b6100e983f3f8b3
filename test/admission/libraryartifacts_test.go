//go:build e2e

package admission

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// rules are a team's: its images and artifacts are signed with its key.
func rules(key *fixture.CosignKey) string {
	return `
{apiVersion: landwaiter.dev/v1beta1, kind: TrustStore, metadata: {name: keys, namespace: $NS}, spec: {type: PublicKeys, source: {inline: ` +
		fmt.Sprintf("%q", key.PEM) + `}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: Verifier, metadata: {name: release, namespace: $NS}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: signed, namespace: $NS}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}`
}

// artifact pushes what `flux push artifact` does, signed with keys.
func (l *library) artifact(t *testing.T, repository string, keys ...*fixture.CosignKey) fixture.Image {
	t.Helper()
	ctx := suite.Within(t)
	target, err := l.Registry.Repository(ctx, repository)
	require.NoError(t, err)
	push := func(mediaType, text string) ocispec.Descriptor {
		descriptor := content.NewDescriptorFromBytes(mediaType, []byte(text))
		require.NoError(t, target.Push(ctx, descriptor, bytes.NewReader([]byte(text))))
		return descriptor
	}
	config, layer := push("application/vnd.cncf.flux.config.v1+json", rand.Text()), push("application/vnd.cncf.flux.content.v1.tar+gzip", rand.Text())
	manifest, err := oras.PackManifest(ctx, target, oras.PackManifestVersion1_0, "",
		oras.PackManifestOptions{ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}})
	require.NoError(t, err)
	require.NoError(t, target.Tag(ctx, manifest, "v1"))
	reference, err := image.Parse(fmt.Sprintf("%s/%s:v1@%s", l.Registry.Host(), repository, manifest.Digest))
	require.NoError(t, err)
	pushed := fixture.Image{Reference: reference, Descriptor: manifest}
	for _, key := range keys {
		_, err := l.Registry.SignCosign(ctx, pushed, key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return pushed
}

// ociRepository is one whose reference is given.
func ociRepository(repository, ref string) string {
	return "{apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: app, namespace: $NS}, spec: {interval: 1m, insecure: true, url: " +
		"oci://$HOST/" + repository + ", ref: {" + ref + "}}}"
}

func byDigest(img fixture.Image) string { return "digest: " + img.Descriptor.Digest.String() }

func newKey(t *testing.T) *fixture.CosignKey {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	return key
}

func TestArtifactsAreVerifiedLive(t *testing.T) {
	l := withLibrary(t)
	const ns, constraint = "live-artifacts", "live-artifacts"
	own, other := newKey(t), newKey(t)
	signed, byOther, unsigned := l.artifact(t, "flux/signed", own), l.artifact(t, "flux/other", other), l.artifact(t, "flux/unsigned")
	l.apply(t, ns, namespaceOf("iris-green"))
	l.apply(t, ns, rules(own))
	l.enforced(t, suite.Root+"/library/verified-artifacts/samples/constraint-everything.yaml", constraint, map[string]any{"namespaces": []any{ns}}, nil)
	asking := func(text string) func(context.Context) error {
		objects := l.decode(t, ns, text)
		return func(ctx context.Context) error { return l.try(ctx, objects) }
	}
	for name, text := range map[string]string{
		"a signed artifact":                 ociRepository("flux/signed", byDigest(signed)),
		"a signed artifact beside its tag":  ociRepository("flux/signed", "tag: v1, "+byDigest(signed)),
		"a HelmRelease of an OCIRepository": release("chartRef: {kind: OCIRepository, name: app}"),
		"a Kustomization of one":            kustomization("sourceRef: {kind: OCIRepository, name: app}"),
	} {
		t.Run(name, func(t *testing.T) { l.admitted(t, asking(text)) })
	}
	for name, c := range map[string]struct{ text, reason string }{
		"an unsigned artifact":         {ociRepository("flux/unsigned", byDigest(unsigned)), "no signature was found"},
		"an artifact of another key":   {ociRepository("flux/other", byDigest(byOther)), "VerificationPolicy live-artifacts/signed"},
		"another repository's digest":  {ociRepository("flux/unsigned", byDigest(signed)), "is denied in namespace live-artifacts"},
		"a signed artifact by its tag": {ociRepository("flux/signed", "tag: v1"), "spec.ref.digest is missing"},
		"a range of versions":          {ociRepository("flux/signed", "semver: '>=1.0.0'"), "spec.ref.digest is missing"},
		"a chart of a HelmRepository": {release("chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: app}}}"),
			"spec.chart cannot be bound to a digest"},
		"a chart of another namespace": {release("chartRef: {kind: OCIRepository, name: app, namespace: flux-system}"), "spec.chartRef names another namespace"},
		"a Kustomization of Git":       {kustomization("sourceRef: {kind: GitRepository, name: app}"), "spec.sourceRef names no OCIRepository"},
		"a GitRepository": {"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: app, namespace: $NS}, spec: {interval: 1m, url: " +
			"https://github.com/example/app}}",
			"this kind cannot be bound to a digest"},
	} {
		t.Run(name, func(t *testing.T) { l.denied(t, constraint, c.reason, asking(c.text)) })
	}
}

// The flow of the sample: only its trust material and its registry are replaced.
func TestFluxImagesNeedFluxIdentity(t *testing.T) {
	l := withLibrary(t)
	instance, err := sigstore.New()
	require.NoError(t, err)
	trusted, err := instance.TrustedRoot()
	require.NoError(t, err)
	text, err := os.ReadFile(suite.Root + "/library/samples/flux-images.yaml")
	require.NoError(t, err)
	sample := string(text)
	for from, to := range map[string]string{"tuf: {}": fmt.Sprintf("inline: %q", trusted), "ghcr.io/": l.Registry.Host() + "/"} {
		require.Contains(t, sample, from)
		sample = strings.ReplaceAll(sample, from, to)
	}
	l.apply(t, "flux-system", "{apiVersion: v1, kind: Namespace, metadata: {name: $NS}}")
	objects, err := cluster.Decode([]byte(sample))
	require.NoError(t, err)
	require.NoError(t, l.Apply(suite.Within(t), objects...))
	t.Cleanup(func() {
		for _, object := range objects {
			if err := l.Client.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		}
	})

	// A team's own policy allows everything: only the mandatory policy is left.
	const team = "live-flux-images"
	l.apply(t, team, namespaceOf("iris-green"))
	l.apply(t, team, "{apiVersion: landwaiter.dev/v1beta1, kind: VerificationPolicy, metadata: {name: everything, namespace: $NS}, spec: {rules: [{images: "+
		"['**'], action: Allow}]}}")
	l.enforced(t, suite.Root+"/library/verified-images/samples/constraint.yaml", team, map[string]any{"namespaces": []any{team}}, nil)

	const actions, workflow = "https://token.actions.githubusercontent.com", "/source-controller/.github/workflows/release.yml@refs/tags/v1.7.0"
	for name, c := range map[string]struct {
		issuer, subject string
		fine            bool
	}{
		"Flux's own workflow":                {actions, "https://github.com/fluxcd" + workflow, true},
		"another organisation":               {actions, "https://github.com/evil" + workflow, false},
		"an organisation that looks alike":   {actions, "https://github.com/fluxcd-evil" + workflow, false},
		"a host that looks alike":            {actions, "https://github.com.evil/fluxcd" + workflow, false},
		"a host with another letter":         {actions, "https://githubxcom/fluxcd" + workflow, false},
		"a subject that holds the right one": {actions, "https://evil.example.com/https://github.com/fluxcd" + workflow, false},
		"no workflow":                        {actions, "https://github.com/fluxcd/source-controller", false},
		"another issuer":                     {"https://issuer.example.com", "https://github.com/fluxcd" + workflow, false},
		"nobody":                             {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := l.Registry.PushImage(suite.Within(t), "fluxcd/source-controller", "v1")
			require.NoError(t, err)
			reason := "flux-images requires a valid signature for flux-release: no signature was found"
			if c.subject != "" {
				reason = fmt.Sprintf("flux-images requires a valid signature for flux-release: the signature is by %q, certified by ", c.subject) // long ones are cut
				l.signKeyless(t, instance, img, c.subject, c.issuer)
			}
			for namespace, constraint := range map[string]string{"flux-system": "verified-images-flux", team: team} {
				objects := l.decode(t, namespace, podOf("containers: [{name: manager, image: '"+img.Reference.String()+"'}]"))
				ask := func(ctx context.Context) error { return l.try(ctx, objects) }
				if c.fine {
					l.admitted(t, ask)
					continue
				}
				l.denied(t, constraint, reason, ask)
			}
		})
	}
}

// signKeyless signs as somebody whom issuer vouches for, with a certificate that a
// transparency log knows.
func (l *library) signKeyless(t *testing.T, instance *sigstore.Sigstore, img fixture.Image, subject, issuer string) {
	t.Helper()
	statement := sigstore.Statement(img.Descriptor.Digest, cosign.PredicateTypeSignature, map[string]any{})
	bundle, err := instance.Bundle(subject, issuer, statement, sigstore.SignOptions{SCTs: []int{0}})
	require.NoError(t, err)
	target, err := l.Registry.Repository(suite.Within(t), img.Reference.Repository)
	require.NoError(t, err)
	_, err = fixture.PushBundle(suite.Within(t), target, img, bundle)
	require.NoError(t, err)
}
