package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const someDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

// deciderFunc and resolverFunc are the fakes of everything below the edge.
type deciderFunc func(context.Context, verify.Namespace, image.Reference) verify.Result

func (f deciderFunc) Verify(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
	return f(ctx, ns, ref)
}

// Recall knows nothing: everything is verified.
func (f deciderFunc) Recall(verify.Namespace, image.Reference) (verify.Result, bool) {
	return verify.Result{}, false
}

// Account makes every namespace pay for itself.
func (f deciderFunc) Account(ns verify.Namespace) verify.Account { return ns.Account() }

// knowing is a Decider that recalls what recall does.
type knowing struct {
	Decider
	recall func(verify.Namespace, image.Reference) (verify.Result, bool)
}

func (k knowing) Recall(ns verify.Namespace, ref image.Reference) (verify.Result, bool) {
	return k.recall(ns, ref)
}

type resolverFunc func(context.Context, verify.Namespace, image.Reference) (image.Reference, error)

func (f resolverFunc) Resolve(ctx context.Context, ns verify.Namespace, ref image.Reference) (image.Reference, error) {
	return f(ctx, ns, ref)
}

func verdict(outcome policy.Outcome, ns verify.Namespace, ref image.Reference) verify.Result {
	return verify.Result{
		Namespace: ns, Reference: ref.WithDigest(someDigest), Digest: someDigest,
		Verdict: policy.Verdict{Outcome: outcome, Reason: "because of " + outcome.String(),
			Policy: policy.ObjectRef{Kind: "VerificationPolicy", Namespace: string(ns), Name: "main"}},
	}
}

// byRepository allows, denies or does not decide as the first letter of the
// repository's last part says.
var byRepository = deciderFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
	switch filepath.Base(ref.Repository)[0] {
	case 'a':
		return verdict(policy.Allowed, ns, ref)
	case 'u':
		return verdict(policy.Undecided, ns, ref)
	case 'p':
		panic("the verifier is broken")
	}
	return verdict(policy.Denied, ns, ref)
})

var pinning = resolverFunc(func(_ context.Context, _ verify.Namespace, ref image.Reference) (image.Reference, error) {
	switch filepath.Base(ref.Repository)[0] {
	case 'a':
		return ref.WithDigest(someDigest), nil
	case 'u':
		return image.Reference{}, fmt.Errorf("resolve %s: 503 from the registry", ref)
	case 'p':
		panic("the resolver is broken")
	}
	return image.Reference{}, verify.Permanent(policy.ReasonNotFound, fmt.Errorf("resolve %s: no such image", ref))
})

// calls counts what was asked of a fake.
type calls struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *calls) decider(next Decider) Decider {
	return deciderFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
		c.add(string(ns) + "|" + ref.String())
		return next.Verify(ctx, ns, ref)
	})
}

func (c *calls) resolver(next Resolver) Resolver {
	return resolverFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) (image.Reference, error) {
		c.add(string(ns) + "|" + ref.String())
		return next.Resolve(ctx, ns, ref)
	})
}

func (c *calls) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[call]++
}

func (c *calls) get() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

func quiet() *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logger
}

func testHandler(decider Decider, resolver Resolver, change func(*Options)) *handler {
	options := Options{}.withDefaults()
	options.VerifyTimeout, options.MutateTimeout = 10*time.Second, 10*time.Second
	if change != nil {
		change(&options)
	}
	return newHandler(decider, resolver, quiet(), options, insecureAnyone)
}

func requestBody(t testing.TB, keys ...string) []byte {
	t.Helper()
	body, err := gatekeeper.Encode(keys...)
	require.NoError(t, err)
	return body
}

// post sends a body to a handler, and parses the answer as Gatekeeper does.
func post(t testing.TB, h http.Handler, path string, body []byte) (externaldata.ProviderResponse, int) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.URL.Path = path
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return parseAnswer(t, w.Body.Bytes()), w.Code
}

func ask(t testing.TB, h http.Handler, path string, keys ...string) externaldata.Response {
	t.Helper()
	response, _ := post(t, h, path, requestBody(t, keys...))
	return response.Response
}

// parseAnswer checks what holds for every answer there is.
func parseAnswer(t testing.TB, body []byte) externaldata.ProviderResponse {
	t.Helper()
	response, err := gatekeeper.Decode(body)
	require.NoError(t, err, "%s", body)
	require.LessOrEqual(t, len(response.SystemError), maxSystemErrorBytes+64)
	return externaldata.ProviderResponse{Response: response}
}

func items(response externaldata.Response) map[string]externaldata.Item {
	return gatekeeper.Items(response)
}

func succeeded(item externaldata.Item) bool {
	verdict, _ := gatekeeper.Judge(item)
	return verdict == gatekeeper.Allowed
}

// testServer is a running server with its CA and one client.
type testServer struct {
	server    *Server
	authority *fixture.Authority
	tls       *fakeTLS
	client    *fixture.Certificate
	stop      func() error
}

// fakeTLS is a TLSSource whose content a test replaces.
type fakeTLS struct {
	certificate atomic.Pointer[tls.Certificate]
	clientCAs   atomic.Pointer[x509.CertPool]
	none        atomic.Bool // clients need no certificate
}

var errNotRead = errors.New("it has not been read yet")

func (f *fakeTLS) Certificate() (*tls.Certificate, error) {
	if certificate := f.certificate.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errNotRead
}

func (f *fakeTLS) ClientCAs() (*x509.CertPool, error) {
	if pool := f.clientCAs.Load(); pool != nil || f.none.Load() {
		return pool, nil
	}
	return nil, errNotRead
}

func withoutClientCA() *fakeTLS {
	f := &fakeTLS{}
	f.none.Store(true)
	return f
}

func (f *fakeTLS) trust(authorities ...*fixture.Authority) {
	f.clientCAs.Store(poolOf(authorities...))
}

func poolOf(authorities ...*fixture.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority.Chain[0])
	}
	return pool
}

const gatekeeperName = gatekeeper.ClientName

func newAuthority(t testing.TB, name string) *fixture.Authority {
	t.Helper()
	authority, err := fixture.NewAuthority(name)
	require.NoError(t, err)
	return authority
}

func issueClient(t testing.TB, authority *fixture.Authority, names ...string) *fixture.Certificate {
	t.Helper()
	client, err := authority.IssueClient("gatekeeper", names...)
	require.NoError(t, err)
	return client
}

// issueServer makes the server show a new certificate of a CA.
func (w *testServer) issueServer(t testing.TB, authority *fixture.Authority) {
	t.Helper()
	issued, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	certificate, err := tls.X509KeyPair(issued.CertificatePEM, issued.KeyPEM)
	require.NoError(t, err)
	w.tls.certificate.Store(&certificate)
}

// prepare makes certificates and a server that does not run yet.
func prepare(t testing.TB, decider Decider, change func(*Options)) *testServer {
	t.Helper()
	w := &testServer{authority: newAuthority(t, "authority"), tls: &fakeTLS{}}
	w.client = issueClient(t, w.authority, gatekeeperName)
	w.issueServer(t, w.authority)
	w.tls.trust(w.authority)
	options := Options{
		Address: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		TLS: w.tls, ClientNames: []string{gatekeeperName},
		VerifyTimeout: 10 * time.Second, MutateTimeout: 10 * time.Second,
		Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&options)
	}
	server, err := New(decider, pinning, quiet(), options)
	require.NoError(t, err)
	w.server = server
	return w
}

// run starts the server; the test's end stops it.
func (w *testServer) run(t testing.TB) *testServer {
	t.Helper()
	require.NoError(t, w.server.Listen(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, w.stop()) })
	require.Eventually(t, w.server.serving.Load, time.Minute, time.Millisecond)
	return w
}

func serve(t testing.TB, decider Decider, change func(*Options)) *testServer {
	t.Helper()
	return prepare(t, decider, change).run(t)
}

// caller returns an HTTP client as Gatekeeper's, with a client certificate or
// none, that trusts the server's CAs.
func (w *testServer) caller(t testing.TB, client *fixture.Certificate, trusted ...*fixture.Authority) *http.Client {
	t.Helper()
	options := gatekeeper.Options{Connections: 64, Timeout: 20 * time.Second}
	for _, authority := range append(trusted, w.authority) {
		options.RootCAs = append(options.RootCAs, authority.CertificatePEM...)
	}
	if client != nil {
		options.Certificate = &client.TLS
	}
	made := gatekeeper.New(options)
	t.Cleanup(made.Close)
	return made.HTTP
}

// send asks a running server.
func (w *testServer) send(t testing.TB, client *http.Client, path string, keys ...string) (externaldata.Response, error) {
	t.Helper()
	asking := &gatekeeper.Client{HTTP: client, URL: "https://" + w.server.Address()}
	answer, _, err := asking.Send(context.Background(), path, requestBody(t, keys...))
	if err != nil {
		return externaldata.Response{}, err
	}
	return parseAnswer(t, answer).Response, nil
}
