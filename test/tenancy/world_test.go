// Package tenancy tests what tenants can see of each other, through everything
// from YAML objects to a real registry.
package tenancy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cache"
	"github.com/landwaiter/landwaiter/pkg/compile"
	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/registry"
	"github.com/landwaiter/landwaiter/pkg/resource"
	"github.com/landwaiter/landwaiter/pkg/revocation"
	"github.com/landwaiter/landwaiter/pkg/tenant"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// world is a registry with a desk before it.
type world struct {
	fetched compile.Fetched // of what resources keep outside the cluster
	*tenant.Desk
	set      *tenant.Set
	client   *registry.Client
	registry *fixture.Registry
	key      map[string]*fixture.CosignKey

	revocation *revocation.Prefetcher // asks nobody unless a test says so
}

func newWorld(t *testing.T, options fixture.RegistryOptions) *world {
	t.Helper()
	r, err := fixture.StartRegistry(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	memory, err := cache.NewMemory(1<<24, time.Now)
	require.NoError(t, err)
	w := &world{set: &tenant.Set{}, client: registry.NewClient(registry.Options{RequestTimeout: 2 * time.Second}), registry: r, key: map[string]*fixture.CosignKey{}}
	t.Cleanup(w.client.Close)
	w.revocation, err = revocation.New(revocation.Options{}, time.Now)
	require.NoError(t, err)
	w.Desk = tenant.NewDesk(w.set, verify.NewEngine(memory, time.Now, verify.Options{}), nil)
	return w
}

// signer returns the key of a name, making it the first time.
func (w *world) signer(t *testing.T, name string) *fixture.CosignKey {
	t.Helper()
	if w.key[name] == nil {
		key, err := fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
		w.key[name] = key
	}
	return w.key[name]
}

// signed pushes an image and signs it with the named keys.
func (w *world) signed(t *testing.T, repository string, signers ...string) fixture.Image {
	t.Helper()
	img, err := w.registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	for _, name := range signers {
		_, err = w.registry.SignCosign(t.Context(), img, w.signer(t, name), fixture.CosignOptions{})
		require.NoError(t, err)
	}
	return img
}

// apply compiles resources and puts them in force.
func (w *world) apply(t *testing.T, resources ...func(*resource.Objects)) []resource.Problem {
	t.Helper()
	var o resource.Objects
	w.clusterStore(t)(&o)
	for _, add := range resources {
		add(&o)
	}
	snapshot, problems := compile.New(o, w.fetched, compile.Outside{
		Registry:   w.client.For,
		Revocation: func(n verify.Namespace) http.RoundTripper { return w.revocation.For(n) },
	})
	w.set.Swap(snapshot)
	return problems
}

// clusterStore lets the registry be on a loopback address.
func (w *world) clusterStore(t *testing.T) func(*resource.Objects) {
	t.Helper()
	return func(o *resource.Objects) {
		var store v1alpha1.ClusterStore
		store.Name = "fixture"
		store.Spec.Registries = []string{w.registry.Host()}
		if pem := w.registry.CertificatePEM(); pem != nil {
			store.Spec.CABundle = &v1alpha1.CABundle{Inline: string(pem)}
		} else {
			store.Spec.InsecurePlainHTTP = true
		}
		o.ClusterStores = append(o.ClusterStores, store)
	}
}

// trusting gives a namespace, or with "" the cluster, a verifier "release" that
// trusts the named key.
func (w *world) trusting(t *testing.T, namespace, signer string) func(*resource.Objects) {
	t.Helper()
	pem := string(w.signer(t, signer).PEM)
	return func(o *resource.Objects) {
		trust := v1alpha1.TrustStoreSpec{Type: v1alpha1.PublicKeys, Source: v1alpha1.TrustSource{Inline: pem}}
		spec := v1alpha1.VerifierSpec{Cosign: &v1alpha1.CosignVerifier{Keys: []v1alpha1.TrustStoreRef{{TrustStore: "keys"}}}}
		if namespace == "" {
			store, verifier := v1alpha1.ClusterTrustStore{Spec: trust}, v1alpha1.ClusterVerifier{Spec: spec}
			store.Name, verifier.Name = "keys", "release"
			o.ClusterTrustStores, o.ClusterVerifiers = append(o.ClusterTrustStores, store), append(o.ClusterVerifiers, verifier)
			return
		}
		store, verifier := v1alpha1.TrustStore{Spec: trust}, v1alpha1.Verifier{Spec: spec}
		store.Name, store.Namespace, verifier.Name, verifier.Namespace = "keys", namespace, "release", namespace
		o.TrustStores, o.Verifiers = append(o.TrustStores, store), append(o.Verifiers, verifier)
	}
}

// policy gives a namespace, or with "" the cluster, a policy from YAML.
func (w *world) policy(t *testing.T, namespace, name, spec string) func(*resource.Objects) {
	t.Helper()
	return func(o *resource.Objects) {
		document := fmt.Sprintf("metadata: {name: %s, namespace: %q}\nspec:\n  %s", name, namespace, strings.ReplaceAll(spec, "\n", "\n  "))
		if namespace == "" {
			var p v1alpha1.ClusterVerificationPolicy
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &p))
			o.ClusterVerificationPolicies = append(o.ClusterVerificationPolicies, p)
			return
		}
		var p v1alpha1.VerificationPolicy
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), &p))
		o.VerificationPolicies = append(o.VerificationPolicies, p)
	}
}

const releaseNeeded = "rules: [{images: [\"**\"], require: [{anyOf: [release]}]}]"

func digestOf(img fixture.Image) image.Reference {
	ref := img.Reference
	ref.Tag = ""
	return ref
}
