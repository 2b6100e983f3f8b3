package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/image"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

const someDigest = digest.Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

// verifierFunc and resolverFunc are the fakes of everything below the edge.
type verifierFunc func(context.Context, verify.Namespace, image.Reference) verify.Result

func (f verifierFunc) Verify(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
	return f(ctx, ns, ref)
}

// Recall knows nothing: everything is verified.
func (f verifierFunc) Recall(verify.Namespace, image.Reference) (verify.Result, bool) {
	return verify.Result{}, false
}

// knowing is a Verifier that recalls what recall does.
type knowing struct {
	Verifier
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
var byRepository = verifierFunc(func(_ context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
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

func (c *calls) verifier(next Verifier) Verifier {
	return verifierFunc(func(ctx context.Context, ns verify.Namespace, ref image.Reference) verify.Result {
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

func testHandler(verifier Verifier, resolver Resolver, change func(*Options)) *handler {
	options := Options{}.withDefaults()
	options.VerifyTimeout, options.MutateTimeout = 10*time.Second, 10*time.Second
	if change != nil {
		change(&options)
	}
	return newHandler(verifier, resolver, quiet(), options)
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

// world is a running server with its authority and one client.
type world struct {
	server    *Server
	authority *fixture.Authority
	files     Files
	client    *fixture.Certificate
	stop      func() error
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

func (w *world) writeServer(t testing.TB, authority *fixture.Authority) {
	t.Helper()
	certificate, err := authority.IssueServer("127.0.0.1")
	require.NoError(t, err)
	replace(t, w.files.Key, certificate.KeyPEM)
	replace(t, w.files.Certificate, certificate.CertificatePEM)
}

func replace(t testing.TB, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name+".new", content, 0o600))
	require.NoError(t, os.Rename(name+".new", name))
}

// prepare makes certificates and a server that does not run yet.
func prepare(t testing.TB, verifier Verifier, change func(*Options)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		authority: newAuthority(t, "authority"),
		files: Files{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
			ClientCAs: []string{filepath.Join(dir, "ca.crt")}},
	}
	w.client = issueClient(t, w.authority, gatekeeperName)
	w.writeServer(t, w.authority)
	replace(t, w.files.ClientCAs[0], w.authority.CertificatePEM)
	options := Options{
		Address: "127.0.0.1:0", HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		Files: w.files, ClientNames: []string{gatekeeperName},
		VerifyTimeout: 10 * time.Second, MutateTimeout: 10 * time.Second, ReloadInterval: time.Hour,
		Metrics: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&options)
	}
	server, err := New(verifier, pinning, quiet(), options)
	require.NoError(t, err)
	w.server = server
	return w
}

// run starts the server; the test's end stops it.
func (w *world) run(t testing.TB) *world {
	t.Helper()
	require.NoError(t, w.server.Listen(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, w.stop()) })
	require.Eventually(t, w.server.serving.Load, 10*time.Second, time.Millisecond)
	return w
}

func serve(t testing.TB, verifier Verifier, change func(*Options)) *world {
	t.Helper()
	return prepare(t, verifier, change).run(t)
}

// caller returns an HTTP client as Gatekeeper's, with a client certificate or
// none, that trusts the server's authorities.
func (w *world) caller(t testing.TB, client *fixture.Certificate, trusted ...*fixture.Authority) *http.Client {
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
func (w *world) send(t testing.TB, client *http.Client, path string, keys ...string) (externaldata.Response, error) {
	t.Helper()
	asking := &gatekeeper.Client{HTTP: client, URL: "https://" + w.server.Address()}
	answer, _, err := asking.Send(context.Background(), path, requestBody(t, keys...))
	if err != nil {
		return externaldata.Response{}, err
	}
	return parseAnswer(t, answer).Response, nil
}

func contentOf(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return content
}
