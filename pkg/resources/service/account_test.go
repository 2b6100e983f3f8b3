package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// members is how many namespaces the Tenant iris has.
const members = 50

// asked is a registry that counts requests by the first part of the repository, and holds
// them if held is not nil.
type asked struct {
	host string
	held chan struct{}
	mu   sync.Mutex
	by   map[string]int
}

func newAsked(t *testing.T, held chan struct{}) *asked {
	t.Helper()
	a := &asked{held: held, by: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.by[strings.Split(r.URL.Path, "/")[2]]++
		a.mu.Unlock()
		if a.held != nil {
			<-a.held
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	a.host = strings.TrimPrefix(server.URL, "http://")
	return a
}

func (a *asked) requests(owner string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by[owner]
}

// ofTwoTenants are iris with fifty namespaces and lily with one, which all need a
// signature that the cluster asks for.
func ofTwoTenants(t *testing.T, host string, more ...v1beta1.Object) resource.Objects {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	store := &v1beta1.ClusterStore{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	store.Spec.Registries, store.Spec.InsecurePlainHTTP = []string{host}, true
	keys := &v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}
	keys.Spec.Type, keys.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, string(key.PEM)
	signed := &v1beta1.ClusterVerifier{ObjectMeta: metav1.ObjectMeta{Name: "signed"}}
	signed.Spec.Type = v1beta1.VerifierTypeCosign
	signed.Spec.Cosign = &v1beta1.CosignVerifier{
		Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: []v1beta1.TrustStoreRef{{Name: "keys"}},
			TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris-0", NamespacePrefix: "iris-"}}
	lily := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "lily"}, Spec: v1beta1.TenantSpec{HomeNamespace: "lily"}}
	o := resource.Objects{Resources: append([]v1beta1.Object{store, keys, signed, iris, lily}, more...)}
	for i := range members {
		o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("iris-%d", i), UID: types.UID(fmt.Sprint(i))}})
	}
	o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lily", UID: "lily"}})
	return o
}

func applied(t *testing.T, options service.Options, o resource.Objects) *service.Service {
	t.Helper()
	s, err := service.New(options, service.AnyNamespace{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.Empty(t, s.Apply(t.Context(), o))
	return s
}

// ask verifies an image of its own in each namespace at once, and returns the results as they come. Those that hang end
// with leave.
func ask(t *testing.T, s *service.Service, host string, namespaces ...string) (results <-chan verify.Result, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan verify.Result, len(namespaces))
	var all sync.WaitGroup
	for _, namespace := range namespaces {
		owner, _, _ := strings.Cut(namespace, "-")
		ref, err := image.Parse(fmt.Sprintf("%s/%s/%s:v1", host, owner, namespace))
		require.NoError(t, err)
		all.Go(func() { answered <- s.Verify(ctx, verify.Namespace(namespace), ref) })
	}
	return answered, func() { cancel(); all.Wait() }
}

func ofIris() []string {
	var names []string
	for i := range members {
		names = append(names, fmt.Sprintf("iris-%d", i))
	}
	return names
}

// paced requires that the namespaces of iris together ask so often: a burst of twice the
// rate, and then the rate. Fifty accounts would ask fifty times at once.
func (a *asked) paced(t *testing.T, s *service.Service, perSecond int) {
	t.Helper()
	began := time.Now()
	_, leave := ask(t, s, a.host, ofIris()...)
	defer leave()
	require.Eventually(t, func() bool { return a.requests("iris") >= 2*perSecond }, time.Minute, time.Millisecond)
	requests := a.requests("iris")
	require.LessOrEqual(t, requests, 2*perSecond+int(float64(perSecond)*time.Since(began).Seconds())+1)
}

func TestNamespacesOfATenantShareOneAccountWhetherOrNotTheyExistYet(t *testing.T) {
	own := &v1beta1.ClusterQuota{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1beta1.ClusterQuotaSpec{Namespaces: []string{"iris-7"}, MaxInFlight: 32}}
	s := applied(t, service.Options{}, ofTwoTenants(t, "registry.example.com", own))
	for _, namespace := range append(ofIris(), "iris-not-yet") {
		want := verify.TenantAccount("iris")
		if namespace == "iris-7" {
			want = "namespace/iris-7" // a quota of its own is an account of its own
		}
		require.Equal(t, want, s.Account(verify.Namespace(namespace)), namespace)
		config, err := s.Set().For(verify.Namespace(namespace))
		require.NoError(t, err)
		require.Equal(t, want, config.Account, namespace)
		require.Equal(t, "iris", s.Tenant(verify.Namespace(namespace)), namespace)
	}
	require.Equal(t, verify.TenantAccount("lily"), s.Account("lily"))
	require.EqualValues(t, "namespace/team-a", s.Account("team-a"))
	require.Empty(t, s.Tenant("team-a"))
}

func TestFiftyNamespacesOfATenantHaveOneShareOfTheImagesInFlight(t *testing.T) {
	held := make(chan struct{})
	r := newAsked(t, held)
	s := applied(t, service.Options{Engine: verify.Options{InFlight: 256, InFlightPerAccount: verify.MinInFlight}}, ofTwoTenants(t, r.host))
	t.Cleanup(func() { close(held) })
	results, leave := ask(t, s, r.host, ofIris()...)
	for range members - verify.MinInFlight { // the others hang
		result := <-results
		require.True(t, result.Overloaded, result.Verdict.Reason)
		require.Contains(t, result.Verdict.Reason, "tenant iris")
	}
	ofLily, leaveLily := ask(t, s, r.host, "lily")
	require.Eventually(t, func() bool { return r.requests("lily") == 1 }, time.Minute, time.Millisecond, "another Tenant has a share of its own")
	leaveLily()
	require.False(t, (<-ofLily).Overloaded)
	leave()
	for range verify.MinInFlight {
		result := <-results
		require.Equal(t, policy.Undecided, result.Verdict.Outcome())
		require.False(t, result.Overloaded, result.Verdict.Reason)
	}
}

func TestFiftyNamespacesOfATenantHaveOnePaceAtRegistries(t *testing.T) {
	r := newAsked(t, nil)
	s := applied(t, service.Options{Registry: registry.Options{PerSecond: 1}}, ofTwoTenants(t, r.host))
	r.paced(t, s, 1)
	_, leave := ask(t, s, r.host, "lily")
	defer leave()
	require.Eventually(t, func() bool { return r.requests("lily") > 0 }, time.Minute, time.Millisecond, "another Tenant has a pace of its own")
}

func TestAQuotaOfATenantIsOneForAllOfItsNamespaces(t *testing.T) {
	quota := &v1beta1.ClusterQuota{ObjectMeta: metav1.ObjectMeta{Name: "iris"},
		Spec: v1beta1.ClusterQuotaSpec{Tenants: []string{"iris"}, RegistryRequestsPerSecond: 3}}
	r := newAsked(t, nil)
	s := applied(t, service.Options{Registry: registry.Options{PerSecond: 1000}}, ofTwoTenants(t, r.host, quota))
	r.paced(t, s, 3)
}
