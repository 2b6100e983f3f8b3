package registry

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func pattern(t *testing.T, text string) image.HostPattern {
	t.Helper()
	p, err := image.ParseHostPattern(text)
	require.NoError(t, err)
	return p
}

func TestOnlyListedHostsAndThoseThatTheirStoreAddsUseAProxy(t *testing.T) {
	environment := &egress.Environment{Proxy: &egress.Proxy{Address: "environment:3128"}, Bypass: egress.NewBypass(".direct.example")}
	own := &Proxy{Own: &egress.Proxy{Address: "own:3128"}, Bypass: egress.NewBypass("near.example.com"),
		AdditionalHosts: []image.HostPattern{pattern(t, "*.cdn.example.net")}}
	access := Access{Hosts: map[string]HostRule{
		"plain.example.com": {Private: true}, "own.example.com": {Private: true, Proxy: own}, "near.example.com": {Proxy: own}, "a.direct.example": {},
		"http.example.com":   {PlainHTTP: true},
		"broken.example.com": {Proxy: &Proxy{Broken: verify.Permanent(policy.ReasonBrokenResource, errors.New("ClusterStore corp cannot be used"))}},
		"more.example.com":   {Proxy: &Proxy{AdditionalHosts: []image.HostPattern{pattern(t, "tokens.example.net")}}}, "docker.io": {}},
		Patterns: []PatternRule{{Hosts: pattern(t, "*.corp.example.com"), Rule: HostRule{Private: true, Proxy: own}}}}
	for _, c := range []struct{ origin, host, want string }{
		{"plain.example.com", "plain.example.com", "environment:3128"},
		{"docker.io", "docker.io", "environment:3128"},
		{"own.example.com", "own.example.com", "own:3128"},
		{"a.corp.example.com", "a.corp.example.com", "own:3128"},
		{"near.example.com", "near.example.com", ""},
		{"a.direct.example", "a.direct.example", ""},
		{"http.example.com", "http.example.com", ""},
		{"team.example.org", "team.example.org", ""},
		{"own.example.com", "x.cdn.example.net", "own:3128"},
		{"x.cdn.example.net", "x.cdn.example.net", ""},
		{"team.example.org", "x.cdn.example.net", ""},
		{"plain.example.com", "x.cdn.example.net", ""},
		{"more.example.com", "tokens.example.net", "environment:3128"},
		{"own.example.com", "tokens.example.net", ""},
		{"team.example.org", "own.example.com", "own:3128"},
	} {
		got, err := NewClient(Options{Proxy: environment}).proxy(access, c.origin, c.host, c.host)
		require.NoError(t, err)
		address := ""
		if got != nil {
			address = got.Address
		}
		require.Equal(t, c.want, address, "%s for an image of %s", c.host, c.origin)
	}
	_, err := NewClient(Options{Proxy: environment}).proxy(access, "broken.example.com", "broken.example.com", "broken.example.com")
	require.True(t, verify.HasReason(err, policy.ReasonBrokenResource), "it is not gone around")
	none, err := NewClient(Options{}).proxy(access, "plain.example.com", "plain.example.com", "plain.example.com")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestConnectionsAreNotSharedPastTheirCertificateOrProxy(t *testing.T) {
	authority, err := fixture.NewAuthority("corp")
	require.NoError(t, err)
	certificate := func() *tls.Certificate {
		made, err := authority.IssueClient("team")
		require.NoError(t, err)
		return &made.TLS
	}
	client := NewClient(Options{})
	t.Cleanup(client.Close)
	pools := []egress.Pool{{}, {Reach: egress.Private}, {Certificate: certificate()}, {Certificate: certificate()}, {Roots: authority.CertificatePEM},
		{Proxy: &egress.Proxy{Address: "a:1"}}, {Proxy: &egress.Proxy{Address: "b:1"}}, {Proxy: &egress.Proxy{Address: "a:1", TLS: true}},
		{Proxy: &egress.Proxy{Address: "a:1", Username: "x"}}, {Proxy: &egress.Proxy{Address: "a:1", Username: "x", Password: "y"}},
		{Proxy: &egress.Proxy{Address: "a:1", Roots: authority.CertificatePEM}}}
	seen := map[*http.Transport]int{}
	for i, pool := range pools {
		transport, err := client.transport(pool)
		require.NoError(t, err)
		require.NotContains(t, seen, transport, "pool %d", i)
		seen[transport] = i
		again, err := client.transport(pool)
		require.NoError(t, err)
		require.Same(t, transport, again)
	}
}

func TestClientCertificatesArePresentedToListedHostsOnly(t *testing.T) {
	store := Store{Registries: []string{"registry.example.com", "tokens.example.com"}, Patterns: []image.HostPattern{pattern(t, "*.corp.example.com")}}
	for _, c := range []struct {
		origin, host string
		want         bool
	}{
		{"registry.example.com", "registry.example.com", true},
		{"registry.example.com", "tokens.example.com", true},
		{"a.corp.example.com", "a.corp.example.com", true},
		{"a.corp.example.com", "b.corp.example.com", false},
		{"registry.example.com", "b.corp.example.com", false},
		{"registry.example.com", "cdn.example.net", false},
		{"cdn.example.net", "cdn.example.net", false},
	} {
		g := &guard{session: &session{client: NewClient(Options{})}, origin: c.origin, store: store}
		require.Equal(t, c.want, g.presents(c.host), "%s for an image of %s", c.host, c.origin)
	}
}

func TestAnExpiredClientCertificateIsSaidToBe(t *testing.T) {
	authority, err := fixture.NewAuthority("corp")
	require.NoError(t, err)
	issued, err := authority.IssueClient("team")
	require.NoError(t, err)
	certificate, err := ParseClientCertificate(issued.CertificatePEM, issued.KeyPEM)
	require.NoError(t, err)
	require.False(t, expired(certificate, certificate.Leaf.NotAfter))
	require.True(t, expired(certificate, certificate.Leaf.NotAfter.Add(time.Second)))
	require.False(t, expired(nil, time.Now()))
	certificate.Leaf.NotAfter = time.Now().Add(-time.Hour)
	store := Store{Registries: []string{"registry.example.com"}, ClientCertificate: certificate}
	g := &guard{session: &session{client: NewClient(Options{})}, origin: "registry.example.com", store: store}
	request := &http.Request{URL: &url.URL{Scheme: "https", Host: "registry.example.com"}}
	_, err = g.transport(request, "registry.example.com")
	require.True(t, verify.HasReason(err, policy.ReasonBrokenResource))
	require.ErrorContains(t, err, "the client certificate for registry.example.com expired at ")
	_, err = g.transport(request, "cdn.example.com")
	require.NoError(t, err, "it is not presented there")
}

func TestHostsOfAPatternAreNoTokenServersAndTeachNothingToOthers(t *testing.T) {
	a, err := NewLogin("a.corp.example.com", Credential{Username: "u", Password: "p"})
	require.NoError(t, err)
	store := Store{Patterns: []image.HostPattern{pattern(t, "*.corp.example.com")}, Logins: Logins{a,
		{Serves: func(host string) bool { return host == "b.corp.example.com" }, Credential: Credential{Username: "v"}}}}
	access := Access{Namespace: "team-a", Stores: []Store{store}, Patterns: []PatternRule{{Hosts: store.Patterns[0], Rule: HostRule{Private: true}}}}
	s := &session{client: NewClient(Options{}), access: access}
	g := &guard{session: s, origin: "a.corp.example.com", store: store, credential: Credential{Username: "u", Password: "p"}}
	require.True(t, g.trusted("a.corp.example.com"))
	require.False(t, g.trusted("b.corp.example.com"), "credentials for one host of a pattern are not sent to another")
	userFor := func(host string) string {
		credentials, _ := store.Logins.For(host, "app", false)
		return credentials[0].Username
	}
	require.Equal(t, "u", userFor("a.corp.example.com"))
	require.Equal(t, "v", userFor("b.corp.example.com"))
	require.Empty(t, userFor("c.corp.example.com"))
	require.NotEqual(t, apiKey{host: "a.corp.example.com"}, (&location{session: s, at: image.Reference{Host: "a.corp.example.com", Repository: "app"}}).apiKey(),
		"whoever names an image chooses the host")
	realm := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {`Bearer realm="https://b.corp.example.com/token"`}}}
	require.Error(t, g.checkChallenge("a.corp.example.com", realm))
	require.NoError(t, g.permit(&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "b.corp.example.com"}}, "b.corp.example.com"))
}
