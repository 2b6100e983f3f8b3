//go:build !e2e && !nightly

package evidence

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// environment is a registry and a service that verifies its images.
type environment struct {
	*service.Service
	registry *fixture.Registry
	key      map[string]*fixture.CosignKey
}

func newEnvironment(t *testing.T, options fixture.RegistryOptions) *environment {
	t.Helper()
	r, err := fixture.StartRegistry(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	e := &environment{registry: r, key: map[string]*fixture.CosignKey{}}
	e.start(t, service.Options{})
	return e
}

// start replaces the service, as a restart with other flags does.
func (e *environment) start(t *testing.T, options service.Options) {
	t.Helper()
	s, err := service.New(options, service.AnyNamespace{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		s.Close()
		stop()
		require.NoError(t, <-ended)
	})
	e.Service = s
}

// signer returns the key of a name, making it the first time.
func (e *environment) signer(t *testing.T, name string) *fixture.CosignKey {
	t.Helper()
	if e.key[name] == nil {
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
		e.key[name] = key
	}
	return e.key[name]
}

// signed pushes an image and signs it with the named keys.
func (e *environment) signed(t *testing.T, repository string, signers ...string) fixture.Image {
	t.Helper()
	img, err := e.registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	for _, name := range signers {
		_, err = e.registry.SignCosign(t.Context(), img, e.signer(t, name), fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return img
}

// apply validates and compiles resources, and puts them in force.
func (e *environment) apply(t *testing.T, resources ...func(*resource.Objects)) []resource.Problem {
	t.Helper()
	var o resource.Objects
	e.clusterStore(t)(&o)
	for _, add := range resources {
		add(&o)
	}
	return e.Apply(t.Context(), written.AsRead(t, o))
}

// clusterStore lets the registry be on a loopback address.
func (e *environment) clusterStore(t *testing.T) func(*resource.Objects) {
	t.Helper()
	return func(o *resource.Objects) {
		store := &v1beta1.ClusterStore{}
		store.Name = "fixture"
		store.Spec.Registries = []string{e.registry.Host()}
		if pem := e.registry.CertificatePEM(); pem != nil {
			store.Spec.CABundle = &v1beta1.CABundle{Inline: string(pem)}
		} else {
			store.Spec.InsecurePlainHTTP = true
		}
		o.Resources = append(o.Resources, store)
	}
}

// trusting gives a namespace, or with "" the cluster, a verifier "release" that
// trusts the named key.
func (e *environment) trusting(t *testing.T, namespace, signer string) func(*resource.Objects) {
	t.Helper()
	pem := string(e.signer(t, signer).PEM)
	return func(o *resource.Objects) {
		if namespace == "" {
			store, verifier := &v1beta1.ClusterTrustStore{}, &v1beta1.ClusterVerifier{Spec: byKey("keys")}
			store.Spec.Type, store.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, pem
			store.Name, verifier.Name = "keys", "release"
			o.Resources = append(o.Resources, store, verifier)
			return
		}
		verifier := &v1beta1.Verifier{Spec: byKey("keys")}
		verifier.Name, verifier.Namespace = "release", namespace
		o.Resources = append(o.Resources, trustStore(namespace, "keys", v1beta1.TrustStoreTypePublicKeys, pem), verifier)
	}
}

func trustStore(namespace, name string, kind v1beta1.TrustStoreType, text string) *v1beta1.TrustStore {
	store := &v1beta1.TrustStore{}
	store.Spec.Type, store.Spec.Source.Inline = kind, text
	store.Namespace, store.Name = namespace, name
	return store
}

// policy gives a namespace, or with "" the cluster, a policy from YAML.
func (e *environment) policy(t *testing.T, namespace, name, spec string) func(*resource.Objects) {
	t.Helper()
	return func(o *resource.Objects) {
		document := fmt.Sprintf("metadata: {name: %s, namespace: %q}\nspec:\n  %s", name, namespace, strings.ReplaceAll(spec, "\n", "\n  "))
		if namespace == "" {
			p := &v1beta1.ClusterVerificationPolicy{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), p))
			o.Resources = append(o.Resources, p)
			return
		}
		p := &v1beta1.VerificationPolicy{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), p))
		o.Resources = append(o.Resources, p)
	}
}

const releaseNeeded = "rules: [{images: [\"**\"], require: [{anyOf: [release]}]}]"

func digestOf(img fixture.Image) image.Reference {
	ref := img.Reference
	ref.Tag = ""
	return ref
}
