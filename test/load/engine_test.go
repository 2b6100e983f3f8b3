// Package load measures the main paths and attacks the server. Its benchmarks compare
// within one run with what nothing can be faster than: a bare TLS handler that decodes the
// same request, and one ecdsa.Verify. Its tests flood a server, let its registry and Redis
// fail, and give it hostile registries and resources.
package load

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/pkg/server/provider"
	"github.com/landwaiter/landwaiter/test/kit/bare"
	"github.com/landwaiter/landwaiter/test/kit/edge"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// environment is a service, with a signed image in a registry of this process.
type environment struct {
	*service.Service
	registry *fixture.Registry
	image    image.Reference
}

// unpaced lets one namespace make as many requests as it can: the limit would be
// all that is measured.
func unpaced() registry.Options { return registry.Options{PerSecond: 1_000_000} }

// cold and warm are the options of services that keep nothing, and everything.
func cold() service.Options { return service.Options{Registry: unpaced(), Cache: noCache{}} }
func warm() service.Options { return service.Options{Registry: unpaced(), CacheBytes: 1 << 28} }

// noCache keeps nothing, so that every verification is cold.
type noCache struct{}

func (noCache) Get(context.Context, verify.Key) (verify.Entry, bool)         { return verify.Entry{}, false }
func (noCache) Recall(verify.Key) (verify.Entry, bool)                       { return verify.Entry{}, false }
func (noCache) Put(context.Context, verify.Key, verify.Entry, time.Duration) {}
func (noCache) Forget(verify.Namespace)                                      {}

// newService returns a service with objects in force.
func newService(t testing.TB, options service.Options, objects resource.Objects) *service.Service {
	t.Helper()
	s, err := service.New(options, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.Empty(t, s.Apply(t.Context(), objects))
	return s
}

func newEnvironment(b *testing.B, options service.Options, namespaces int) *environment {
	b.Helper()
	r, err := fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	img, err := r.PushImage(b.Context(), "shared/app", "v1")
	require.NoError(b, err)
	_, err = r.SignCosign(b.Context(), img, key, fixture.CosignOptions{})
	require.NoError(b, err)
	ref := img.Reference
	ref.Tag = ""
	return &environment{Service: newService(b, options, resources(r.Host(), string(key.PEM), namespaces)), registry: r, image: ref}
}

// resources gives every namespace its own trust store, verifier and policy.
func resources(host, key string, namespaces int) resource.Objects {
	var o resource.Objects
	o.Resources = append(o.Resources, clusterStore(host))
	for i := range namespaces {
		o.Resources = append(o.Resources, own(team(i), key)...)
	}
	return o
}

// own are the resources of one namespace.
func own(namespace verify.Namespace, key string) []v1beta1.Object {
	trust := &v1beta1.TrustStore{Spec: inline(v1beta1.TrustStoreTypePublicKeys, key)}
	verifier := &v1beta1.Verifier{Spec: v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: "keys"}},
			TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}}}
	rules := &v1beta1.VerificationPolicy{Spec: v1beta1.VerificationPolicySpec{Rules: []v1beta1.PolicyRule{{
		Images: []string{"**"}, Require: []v1beta1.Requirement{{AnyOf: []string{"release"}}}}}}}
	trust.Name, verifier.Name, rules.Name = "keys", "release", "strict"
	trust.Namespace, verifier.Namespace, rules.Namespace = string(namespace), string(namespace), string(namespace)
	return []v1beta1.Object{trust, verifier, rules}
}

// clusterStore permits a registry on a loopback address.
func clusterStore(host string) *v1beta1.ClusterStore {
	store := &v1beta1.ClusterStore{Spec: v1beta1.StoreSpec{Registries: []string{host}, InsecurePlainHTTP: true}}
	store.Name = "bench"
	return store
}

func team(i int) verify.Namespace { return verify.Namespace(fmt.Sprintf("team-%d", i)) }

func (e *environment) allowed(b *testing.B, ns verify.Namespace) {
	result := e.Verify(b.Context(), ns, e.image)
	if result.Verdict.Outcome() != policy.Allowed {
		b.Fatal(result.Verdict.Reason)
	}
}

func BenchmarkECDSAVerify(b *testing.B) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(b, err)
	sum := sha256.Sum256([]byte("payload"))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(b, err)
	for b.Loop() {
		if !ecdsa.VerifyASN1(&key.PublicKey, sum[:], signature) {
			b.Fatal("invalid")
		}
	}
}

func BenchmarkEngineWarm(b *testing.B) {
	for _, namespaces := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%d namespaces", namespaces), func(b *testing.B) {
			e := newEnvironment(b, warm(), namespaces)
			for i := range namespaces {
				e.allowed(b, team(i))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				e.allowed(b, team(i%namespaces))
				i++
			}
		})
	}
}

func BenchmarkEngineCold(b *testing.B) {
	e := newEnvironment(b, cold(), 1)
	e.allowed(b, team(0))
	b.ReportAllocs()
	for b.Loop() {
		e.allowed(b, team(0))
	}
}

// BenchmarkCompile rebuilds the snapshot of 1,000 namespaces from nothing.
func BenchmarkCompile(b *testing.B) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	objects := resources("127.0.0.1:5000", string(key.PEM), 1000)
	s := newService(b, cold(), resource.Objects{})
	for b.Loop() {
		_, problems := resolve.Empty(s.Outside()).Next(resolve.Group(objects), nil)
		require.Empty(b, problems)
	}
}

// BenchmarkChange compiles one of 1,000 namespaces again.
func BenchmarkChange(b *testing.B) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	snapshot := newService(b, cold(), resources("127.0.0.1:5000", string(key.PEM), 1000)).Set().Snapshot()
	one := resources("127.0.0.1:5000", string(key.PEM), 1)
	for b.Loop() {
		_, problems := snapshot.Next(resolve.Group(one).Only(team(0)), nil)
		require.Empty(b, problems)
	}
}

// BenchmarkClusterChange is a ClusterVerifier that comes and goes, where each of 1,000
// namespaces has a Verifier of its own.
func BenchmarkClusterChange(b *testing.B) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(b, err)
	snapshot := newService(b, cold(), resources("127.0.0.1:5000", string(key.PEM), 1000)).Set().Snapshot()
	store := clusterStore("127.0.0.1:5000")
	verifier := &v1beta1.ClusterVerifier{Spec: v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign}}
	verifier.Name = "shared"
	for with := true; b.Loop(); with = !with {
		o := resource.Objects{Resources: []v1beta1.Object{store}}
		if with {
			o.Resources = append(o.Resources, verifier)
		}
		snapshot, _ = snapshot.Next(resolve.Group(o).Only(verify.Cluster), nil)
	}
}

// BenchmarkColdLatency verifies a digest with a registry that takes a time for
// each answer; round-trips is what the time is of, besides our own.
func BenchmarkColdLatency(b *testing.B) {
	for _, latency := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
		b.Run(latency.String(), func(b *testing.B) {
			e := newEnvironment(b, cold(), 1)
			e.allowed(b, team(0))
			e.registry.SetLatency(latency)
			n := 0
			began := time.Now()
			for b.Loop() {
				e.allowed(b, team(0))
				n++
			}
			each := time.Since(began) / time.Duration(max(n, 1))
			// A digest that is signed under a tag takes one wave: the payload is rebuilt.
			b.ReportMetric(float64((each-latency).Microseconds())/1000, "own-ms")
		})
	}
}

// asked is an HTTPS server, and the request that it is sent.
type asked struct {
	*edge.Edge
	body []byte
}

func (a *asked) ask(b *testing.B) []byte {
	answer, status, err := a.Send(b.Context(), gatekeeper.VerifyPath, a.body)
	if err != nil || status != http.StatusOK {
		b.Fatal(status, err)
	}
	return answer
}

func request(b *testing.B, keys ...string) []byte {
	b.Helper()
	body, err := gatekeeper.Encode(keys...)
	require.NoError(b, err)
	return body
}

// at asks another server with another client.
func (a *asked) at(url string, client *http.Client) *asked {
	return &asked{&edge.Edge{Client: &gatekeeper.Client{URL: url, HTTP: client}, TLS: a.TLS}, a.body}
}

// newBare is a TLS server for like's client that decodes a request and answers with
// body.
func newBare(b *testing.B, like *asked, body []byte) *asked {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: bare.Handler(body)}
	go func() { _ = server.Serve(tls.NewListener(listener, like.TLS)) }()
	b.Cleanup(func() { _ = server.Close() })
	return like.at("https://"+listener.Addr().String(), like.HTTP)
}

// BenchmarkHTTPSWarm asks the whole provider, and the bare handler, with the same
// client, the same request and answers of the same size.
func BenchmarkHTTPSWarm(b *testing.B) {
	e := newEnvironment(b, warm(), 1)
	real := &asked{edge.Start(b, e, provider.Options{}), request(b, "[team-0]"+e.image.String())}
	answer := real.ask(b)
	require.Contains(b, string(answer), `"isSuccess":true`)
	bare := newBare(b, real, answer)
	for name, server := range map[string]*asked{"provider": real, "bare": bare} {
		b.Run(name+"/one at a time", func(b *testing.B) {
			server.ask(b)
			for b.Loop() {
				server.ask(b)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.SetParallelism(5) // of two processors: 10 connections, as Gatekeeper pools
			var mu sync.Mutex
			var took []time.Duration
			b.RunParallel(func(pb *testing.PB) {
				own := make([]time.Duration, 0, 1<<16)
				for pb.Next() {
					began := time.Now()
					server.ask(b)
					own = append(own, time.Since(began))
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, own...)
			})
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
		b.Run(name+"/handshake each", func(b *testing.B) {
			transport := server.HTTP.Transport.(*http.Transport).Clone()
			transport.DisableKeepAlives = true
			each := server.at(server.URL, &http.Client{Transport: transport})
			for b.Loop() {
				each.ask(b)
			}
		})
	}
}
