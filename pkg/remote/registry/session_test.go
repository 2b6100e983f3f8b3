package registry_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
	"github.com/landwaiter/landwaiter/test/kit/memory"
)

func parse(t *testing.T, s string) image.Reference {
	t.Helper()
	ref, err := image.Parse(s)
	require.NoError(t, err)
	return ref
}

// plain opens hosts that are on loopback addresses and speak plain HTTP.
func plain(hosts ...string) map[string]registry.HostRule {
	rules := map[string]registry.HostRule{}
	for _, host := range hosts {
		rules[host] = registry.HostRule{PlainHTTP: true, Private: true}
	}
	return rules
}

func session(t *testing.T, options registry.Options, access registry.Access) first {
	t.Helper()
	client := registry.NewClient(options)
	t.Cleanup(client.Close)
	return of(client, access)
}

// reason returns the reason of a permanent error, "transient" for any other.
func reason(t *testing.T, err error) policy.Reason {
	t.Helper()
	require.Error(t, err)
	var permanent *verify.PermanentError
	if !verify.IsPermanent(err) {
		return "transient"
	}
	require.ErrorAs(t, err, &permanent)
	return permanent.Reason
}

var someDigest = digest.FromString("content")

func descriptor(size int64) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: someDigest, Size: size}
}

// Whatever a registry does, the answer is an error of the right class, in
// bounded time and memory.
func TestHostileAnswersAreErrorsInBoundedTimeAndMemory(t *testing.T) {
	const octets = "application/octet-stream"
	manifest := `{"schemaVersion":2}`
	cases := map[string]struct {
		part    string
		handler http.HandlerFunc
		call    func(ctx context.Context, s first, ref image.Reference) error
		reason  policy.Reason
		text    string
	}{
		"endless pages":                  {"/referrers/", hostile.EndlessPages(1), list, policy.ReasonLimitExceeded, "more than 64 referrers or 8 pages"},
		"too many referrers on a page":   {"/referrers/", hostile.EndlessPages(1000), list, policy.ReasonLimitExceeded, "more than 64 referrers"},
		"a list past the size limit":     {"/referrers/", hostile.LongList(20_000), list, policy.ReasonLimitExceeded, ""},
		"10 GB of list":                  {"/referrers/", hostile.Stream(ocispec.MediaTypeImageIndex, 10<<30), list, policy.ReasonLimitExceeded, ""},
		"10 GB of .sig manifest":         {".sig", hostile.Stream(ocispec.MediaTypeImageManifest, 10<<30), list, policy.ReasonLimitExceeded, ""},
		"a list that hangs":              {"/referrers/", hostile.Hang, list, "transient", "did not answer in time"},
		"a list that is no JSON":         {"/referrers/", hostile.Stream(ocispec.MediaTypeImageIndex, 10), list, "transient", ""},
		"10 GB of blob":                  {"/blobs/", hostile.Stream(octets, 10<<30), fetch(7), policy.ReasonContentMismatch, ""},
		"10 GB of blob, said so":         {"/blobs/", hostile.Stream(octets, 10<<30), fetch(10 << 30), policy.ReasonLimitExceeded, "the limit is 1024"},
		"a blob of negative size":        {"/blobs/", hostile.Stream(octets, 7), fetch(-1), policy.ReasonLimitExceeded, ""},
		"a blob of other content":        {"/blobs/", hostile.Stream(octets, 7), fetch(7), policy.ReasonContentMismatch, ""},
		"a shorter blob":                 {"/blobs/", hostile.Stream(octets, 3), fetch(7), policy.ReasonContentMismatch, ""},
		"a blob in drips":                {"/blobs/", hostile.Drip(octets, 1000, 50*time.Millisecond), fetch(1000), "transient", "did not answer in time"},
		"a blob that hangs":              {"/blobs/", hostile.Hang, fetch(7), "transient", "did not answer in time"},
		"a connection that drops":        {"/blobs/", hostile.Drop, fetch(7), "transient", "connection"},
		"another protocol":               {"/blobs/", hostile.Upgrade(""), fetch(7), "transient", "the connection to"},
		"a manifest by another protocol": {".sig", hostile.Upgrade("x"), list, "transient", "the connection to"},
		"a list by another protocol":     {"/referrers/", hostile.Upgrade("x"), list, "transient", "the connection to"},
		"a tag by another protocol":      {"/manifests/v1", hostile.Upgrade(""), resolve, "transient", "the connection to"},
		"status 500":                     {"/blobs/", hostile.Status(500), fetch(7), "transient", "status 500"},
		"status 429 with Retry-After":    {"/blobs/", hostile.Status(429, "Retry-After: 3600"), fetch(7), "transient", "status 429"},
		"status 503 with Retry-After":    {"/blobs/", hostile.Status(503, "Retry-After: 3600"), fetch(7), "transient", "asked for a pause"},
		"status 404":                     {"/blobs/", hostile.Status(404), fetch(7), policy.ReasonNotFound, "no such image"},
		"status 403":                     {"/blobs/", hostile.Status(403), fetch(7), policy.ReasonAccessDenied, "refuses access"},
		"status 418":                     {"/blobs/", hostile.Status(418), fetch(7), "transient", ""},
		"redirects in a circle": {"/blobs/", hostile.Status(307, "Location: /v2/app/blobs/"+someDigest.String()), fetch(7), policy.ReasonLimitExceeded,
			"redirects more than 3 times"},
		"a redirect to metadata": {"/blobs/", hostile.Status(307, "Location: http://169.254.169.254/latest/meta-data/"), fetch(7),
			policy.ReasonForbidden, "without TLS"},
		"a redirect to private HTTPS": {"/blobs/", hostile.Status(307, "Location: https://127.0.0.1:1/x"), fetch(7), policy.ReasonForbidden, "private"},
		"a redirect to a file":        {"/blobs/", hostile.Status(307, "Location: file:///etc/passwd"), fetch(7), policy.ReasonForbidden, ""},
		"an unknown tag":              {"/manifests/v2", hostile.Status(404), resolve, policy.ReasonNotFound, "no such image"},
		"a manifest with a lying digest": {"/manifests/", hostile.ManifestAs(manifest, digest.FromString("other")),
			func(ctx context.Context, s first, ref image.Reference) error {
				_, err := s.Resolve(ctx, ref.WithDigest(digest.FromString(manifest)))
				return err
			}, policy.ReasonContentMismatch, "not what its digest says"},
		"a .sig manifest with a lying digest": {".sig", hostile.ManifestAs(manifest, digest.FromString("other")), list, policy.ReasonContentMismatch,
			"not what its digest says"},
		"a resolution that hangs": {"/manifests/", hostile.Hang, resolve, "transient", "did not answer in time"},
		"a header without end":    {"/blobs/", hostile.Status(200, "X-Long: "+strings.Repeat("x", 200<<10)), fetch(7), "transient", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", c.part, c.handler)
			var timeout time.Duration // the default
			if strings.Contains(c.text, "in time") {
				timeout = 200 * time.Millisecond
			}
			s := session(t, registry.Options{RequestTimeout: timeout}, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var err error
			took := memory.Allocated(func() { err = c.call(ctx, s, parse(t, h.Host()+"/app:v1")) })
			require.NoError(t, ctx.Err(), "the client gives up by itself")
			require.Equal(t, c.reason, reason(t, err), err)
			require.Contains(t, err.Error(), c.text)
			require.Less(t, took, 64<<20)
		})
	}
}

func list(ctx context.Context, s first, ref image.Reference) error {
	_, err := s.Referrers(ctx, ref.WithDigest(someDigest))
	return err
}

func resolve(ctx context.Context, s first, ref image.Reference) error {
	_, err := s.Resolve(ctx, ref)
	return err
}

func fetch(size int64) func(context.Context, first, image.Reference) error {
	return func(ctx context.Context, s first, ref image.Reference) error {
		_, err := s.Fetch(ctx, ref, descriptor(size), 1024)
		return err
	}
}

func TestAnIncompleteListComesWithItsError(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", ".sig", hostile.Manifest(`{"schemaVersion":2}`))
	h.Handle("", "/referrers/", hostile.Status(500))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	found, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.EqualValues(t, "transient", reason(t, err))
	require.Len(t, found, 1)
	require.Equal(t, `{"schemaVersion":2}`, string(found[0].Data))
}

func TestContentInAListIsNotTrusted(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/referrers/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"%s","size":4,"data":"ZXZpbA==","urls":["http://169.254.169.254/"]}]}`, someDigest)
	})
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	found, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Empty(t, found[0].Data)
	require.Empty(t, found[0].URLs)
}

func TestTransientFailuresAreRetriedOnce(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	var asked atomic.Int32
	h.Handle("", "/blobs/", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte("content"))
	})
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	content, err := s.Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	h.Handle("", "/blobs/", hostile.Status(http.StatusBadGateway))
	before := len(h.Requests())
	_, err = s.Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
	require.EqualValues(t, "transient", reason(t, err))
	require.Equal(t, 2, len(h.Requests())-before)
}

func TestAnAccountHasItsOwnPace(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/blobs/", hostile.Status(404))
	client := registry.NewClient(registry.Options{PerSecond: 100})
	t.Cleanup(client.Close)
	fetch := func(ctx context.Context, ns verify.Namespace, perSecond int) error {
		_, err := of(client, registry.Access{Namespace: ns, Hosts: plain(h.Host()), PerSecond: perSecond}).
			Fetch(ctx, parse(t, h.Host()+"/"+string(ns)), descriptor(7), 100)
		return err
	}
	sent := func(ns verify.Namespace) (n int) {
		for _, request := range h.Requests() {
			if strings.Contains(request.URL.Path, "/"+string(ns)+"/") {
				n++
			}
		}
		return n
	}
	ten := func(why string) {
		before := sent("usual")
		for range 10 {
			require.Equal(t, policy.ReasonNotFound, reason(t, fetch(t.Context(), "usual", 0)), why)
		}
		require.Equal(t, 10, sent("usual")-before, why)
	}
	// A burst of twice the rate, and then one each second.
	slow := func(ns verify.Namespace, why string) {
		before, began := sent(ns), time.Now()
		require.Error(t, flood(t, func(ctx context.Context) error { return fetch(ctx, ns, 1) }), why)
		require.LessOrEqual(t, sent(ns)-before, 2+int(time.Since(began).Seconds()), why)
	}
	ten("its pace is not used up")
	slow("slow", "its own limit")
	ten("other accounts have their own")
	slow("usual", "a new limit applies at once")
}

func TestHostsOnPrivateAddressesAndWithoutTLSNeedAClusterAdmin(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	for name, c := range map[string]struct {
		rule registry.HostRule
		text string
	}{
		"nothing allowed":      {registry.HostRule{}, "ClusterStore"},
		"only private allowed": {registry.HostRule{Private: true}, ""}, // HTTPS to a plain port
		"only plain allowed":   {registry.HostRule{PlainHTTP: true}, "private"},
	} {
		t.Run(name, func(t *testing.T) {
			s := session(t, registry.Options{}, registry.Access{Hosts: map[string]registry.HostRule{h.Host(): c.rule}})
			_, err := s.Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
			require.ErrorContains(t, err, c.text)
			if c.text != "" {
				require.Equal(t, policy.ReasonForbidden, reason(t, err))
			}
			require.Empty(t, h.Requests())
		})
	}
	s := session(t, registry.Options{DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("9.9.9.0/24")}, DialTimeout: time.Second}, registry.Access{})
	for _, address := range []string{"10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "9.9.9.9"} {
		_, err := s.Resolve(t.Context(), parse(t, address+":5000/app:v1"))
		require.Equal(t, policy.ReasonForbidden, reason(t, err), address)
	}
}

func TestCredentialsAreSentToTheirHostOnly(t *testing.T) {
	for form, keys := range map[string][]string{
		"host": {"HOST"}, "path": {"HOST/app"}, "scheme": {"https://HOST/v2/"}, "wildcard": {"127.*.*.1:PORT"}, "two logins": {"HOST/app", "HOST"},
	} {
		t.Run(form, func(t *testing.T) { requireCredentialsForTheirHostOnly(t, keys) })
	}
}

// requireCredentialsForTheirHostOnly logs in at one of two registries, with keys of a pull secret.
func requireCredentialsForTheirHostOnly(t *testing.T, keys []string) {
	t.Helper()
	trusted, other := hostile.New(), hostile.New()
	t.Cleanup(trusted.Close)
	t.Cleanup(other.Close)
	_, port, _ := strings.Cut(trusted.Host(), ":")
	var logins registry.Logins
	for _, key := range keys {
		logins, _ = logins.Add(loginFor(strings.NewReplacer("HOST", trusted.Host(), "PORT", port).Replace(key),
			registry.Credential{Username: "user", Password: "secret"}))
		if len(keys) > 1 { // the wrong one is tried first
			logins[0].Credential.Password = "wrong"
		}
	}
	basics := []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:secret"))}
	if len(keys) > 1 {
		basics = append([]string{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:wrong"))}, basics...)
	}
	access := func(registries ...string) registry.Access {
		return registry.Access{Namespace: "team-a", Hosts: plain(trusted.Host(), other.Host()), Stores: []registry.Store{{
			Source: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "own"}, Registries: append(registries, trusted.Host()),
			Logins: logins}}}
	}
	basic := basics[len(basics)-1]
	login := func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != basic {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, req, "http://"+other.Host()+"/elsewhere", http.StatusTemporaryRedirect)
	}
	t.Run("a redirect does not carry them", func(t *testing.T) {
		trusted.Handle("", "/blobs/", login)
		other.Handle("", "/elsewhere", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) })
		content, err := session(t, registry.Options{}, access()).Fetch(t.Context(), parse(t, trusted.Host()+"/app"), descriptor(7), 100)
		require.NoError(t, err)
		require.Equal(t, "content", string(content))
		require.Contains(t, trusted.Authorizations(), basic)
		require.Empty(t, other.Authorizations())
	})
	t.Run("an image of another host does not get them", func(t *testing.T) {
		other.Handle("", "/manifests/", hostile.Status(401, `WWW-Authenticate: Basic realm="x"`))
		_, err := session(t, registry.Options{}, access(other.Host())).Resolve(t.Context(), parse(t, other.Host()+"/app:v1"))
		require.Equal(t, policy.ReasonAccessDenied, reason(t, err))
		require.Empty(t, other.Authorizations())
	})
	t.Run("a token server elsewhere does not get them", func(t *testing.T) {
		trusted.Handle("", "/manifests/", hostile.Status(401, `WWW-Authenticate: Bearer realm="http://`+other.Host()+`/token",service="x"`))
		before := len(other.Requests())
		_, err := session(t, registry.Options{}, access()).Resolve(t.Context(), parse(t, trusted.Host()+"/app:v1"))
		require.Equal(t, policy.ReasonUntrustedTokenServer, reason(t, err))
		require.Contains(t, err.Error(), other.Host())
		require.Len(t, other.Requests(), before)
	})
	t.Run("unless the same store lists it", func(t *testing.T) {
		other.Handle("", "/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"t"}`) })
		_, err := session(t, registry.Options{}, access(other.Host())).Resolve(t.Context(), parse(t, trusted.Host()+"/app:v1"))
		require.Equal(t, policy.ReasonAccessDenied, reason(t, err))
		require.Equal(t, basics, other.Authorizations())
	})
	t.Run("another tenant has none", func(t *testing.T) {
		before := len(trusted.Authorizations())
		_, err := session(t, registry.Options{}, registry.Access{Namespace: "team-b", Hosts: plain(trusted.Host())}).
			Fetch(t.Context(), parse(t, trusted.Host()+"/app"), descriptor(7), 100)
		require.Equal(t, policy.ReasonAccessDenied, reason(t, err))
		require.Len(t, trusted.Authorizations(), before)
	})
}

func TestTokensAreNotSharedBetweenTenants(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/token", func(w http.ResponseWriter, req *http.Request) {
		user, _, _ := req.BasicAuth()
		fmt.Fprintf(w, `{"token":"token-of-%s"}`, user)
	})
	h.Handle("", "/blobs/", func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer token-of-a" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+h.Host()+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("content"))
	})
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	fetch := func(ns verify.Namespace, user string) error {
		store := registry.Store{Registries: []string{h.Host()}, Logins: loginFor(h.Host(), registry.Credential{Username: user, Password: "p"})}
		_, err := of(client, registry.Access{Namespace: ns, Hosts: plain(h.Host()), Stores: []registry.Store{store}}).
			Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
		return err
	}
	require.NoError(t, fetch("team-a", "a"))
	require.Equal(t, policy.ReasonAccessDenied, reason(t, fetch("team-b", "b")))
	before := len(h.Requests())
	require.NoError(t, fetch("team-a", "a"))
	require.Equal(t, 1, len(h.Requests())-before, "a token is used again")
	require.Equal(t, policy.ReasonAccessDenied, reason(t, fetch("team-a", "b")), "a changed credential has no token yet")

	client.Forget("team-b")
	before = len(h.Requests())
	require.NoError(t, fetch("team-a", "a"))
	require.Equal(t, 1, len(h.Requests())-before, "another namespace's end takes no token away")
	client.Forget("team-a")
	before = len(h.Requests())
	require.NoError(t, fetch("team-a", "a"))
	require.Equal(t, 3, len(h.Requests())-before, "the tokens of a namespace end with it")
}

func TestABrokenStoreFailsForItsRegistriesOnly(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/manifests/v1", hostile.Manifest(`{}`))
	broken := registry.Store{Registries: []string{"other.example.com"}, Broken: registry.Unusable("Store team-a/own cannot be used", "")}
	access := registry.Access{Hosts: plain(h.Host()), Stores: []registry.Store{broken}}
	s := session(t, registry.Options{}, access)
	require.NoError(t, resolve(t.Context(), s, parse(t, h.Host()+"/app:v1")))
	require.Equal(t, policy.ReasonBrokenResource, reason(t, resolve(t.Context(), s, parse(t, "other.example.com/app:v1"))))
	require.Contains(t, verify.FindingOf(resolve(t.Context(), s, parse(t, "other.example.com/app:v1"))).Remediation, "correct the Store")
	access.Stores[0].Registries, access.Stores[0].Broken = nil, registry.Unusable("Store team-a/own cannot be used", "kubectl create rolebinding r")
	require.Equal(t, "kubectl create rolebinding r",
		verify.FindingOf(resolve(t.Context(), session(t, registry.Options{}, access), parse(t, h.Host()+"/app:v1"))).Remediation)
	require.Equal(t, policy.ReasonBrokenResource, reason(t, resolve(t.Context(), session(t, registry.Options{}, access), parse(t, h.Host()+"/app:v1"))))
}

func TestACertificateNeedsTheStoresCABundle(t *testing.T) {
	r, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	img, err := r.PushImage(t.Context(), "app", "v1")
	require.NoError(t, err)
	private := map[string]registry.HostRule{r.Host(): {Private: true}}
	_, err = session(t, registry.Options{}, registry.Access{Hosts: private}).Resolve(t.Context(), img.Reference)
	require.EqualValues(t, "transient", reason(t, err), "certificates are renewed, and an attacker in between must not cause a denial")
	require.Equal(t, policy.RemedyTrustCA.At(r.Host()), verify.FindingOf(err).Remediation)
	store := registry.Store{Registries: []string{r.Host()}, RootCAs: r.CertificatePEM()}
	got, err := session(t, registry.Options{}, registry.Access{Hosts: private, Stores: []registry.Store{store}}).Resolve(t.Context(), img.Reference)
	require.NoError(t, err)
	require.Equal(t, img.Descriptor.Digest, got.Digest)
	require.Equal(t, img.Descriptor.Size, got.Size)
}

func TestResolveFallsBackToGetAndHashes(t *testing.T) {
	content := `{"schemaVersion":2}`
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle(http.MethodGet, "/manifests/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		fmt.Fprint(w, content)
	})
	h.Handle(http.MethodHead, "/manifests/v1", hostile.Status(http.StatusMethodNotAllowed))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	got, err := s.Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
	require.NoError(t, err)
	require.Equal(t, digest.FromString(content), got.Digest)
}

func TestErrorsNameTheImageAndNoSecret(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/blobs/", hostile.Status(307, "Location: http://"+h.Host()+"/x?token=s3cr3t"))
	h.Handle("", "/x", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"errors":[{"code":"DENIED","message":"attacker text s3cr3t"}]}`)
	})
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	_, err := s.Fetch(t.Context(), parse(t, h.Host()+"/app"), descriptor(7), 100)
	require.Equal(t, policy.ReasonAccessDenied, reason(t, err))
	require.ErrorContains(t, err, h.Host()+"/app")
	require.NotContains(t, err.Error(), "s3cr3t")
}

// A request that never ends would block a host for everybody, one lost answer at a time.
func TestEveryKindOfAnswerEndsItsRequest(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"t"}`) })
	challenge := hostile.Status(401, `WWW-Authenticate: Bearer realm="http://`+h.Host()+`/token"`)
	answers := map[string]http.HandlerFunc{
		"content":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) },
		"other content": hostile.Stream("application/octet-stream", 7), "too much": hostile.Stream("application/octet-stream", 1<<30),
		"manifest": hostile.Manifest(`{}`), "pages": hostile.EndlessPages(100), "404": hostile.Status(404), "500": hostile.Status(500),
		"502": hostile.Status(502), "redirect": hostile.Status(307, "Location: /x"), "bad redirect": hostile.Status(307, "Location: ftp://x/"),
		"challenge": challenge, "foreign challenge": hostile.Status(401, `WWW-Authenticate: Bearer realm="https://evil.example/token"`),
		"basic": hostile.Status(401, `WWW-Authenticate: Basic realm="x"`), "dropped": hostile.Drop,
	}
	s := session(t, registry.Options{PerHost: 1, RequestTimeout: 20 * time.Second}, registry.Access{Hosts: plain(h.Host())})
	ref := parse(t, h.Host()+"/app:v1")
	for name, answer := range answers {
		h.Handle("", "/v2/", answer)
		for range 2 {
			_ = resolve(t.Context(), s, ref)
			_ = list(t.Context(), s, ref)
			_ = fetch(7)(t.Context(), s, ref)
		}
		h.Handle("", "/v2/", answers["content"])
		require.NoError(t, fetch(7)(t.Context(), s, ref), "after %s", name)
	}
}
