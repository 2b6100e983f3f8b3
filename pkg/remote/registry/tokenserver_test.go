package registry_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

func TestARefreshTokenDoesNotFollowARedirect(t *testing.T) {
	trusted, other := hostile.New(), hostile.New()
	t.Cleanup(trusted.Close)
	t.Cleanup(other.Close)
	trusted.Handle("", "/manifests/", hostile.Status(401, `WWW-Authenticate: Bearer realm="http://`+trusted.Host()+`/token",service="x"`))
	trusted.Handle("", "/token", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+other.Host()+"/token", http.StatusTemporaryRedirect) // 307 sends the body again
	})
	var sent []string
	other.Handle("", "/token", func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		sent = append(sent, string(body))
		fmt.Fprint(w, `{"access_token":"t"}`)
	})
	access := registry.Access{Namespace: "team-a", Hosts: plain(trusted.Host(), other.Host()), Stores: []registry.Store{{
		Registries: []string{trusted.Host()},
		Logins:     loginFor(trusted.Host(), registry.Credential{IdentityToken: "long-lived"})}}}
	err := resolve(t.Context(), session(t, registry.Options{}, access), parse(t, trusted.Host()+"/app:v1"))
	require.Error(t, err)
	require.Empty(t, sent)
	require.Empty(t, other.Requests())
}

func TestARedirectLeadsToNoPrivateAddress(t *testing.T) {
	target, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true}) // on loopback, and no ClusterStore lists it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, target.Close()) })
	images := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "https://"+target.Host()+"/v2/", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(images.Close)
	host := images.Listener.Addr().String()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw})
	access := registry.Access{Hosts: map[string]registry.HostRule{host: {Private: true}}, Stores: []registry.Store{{
		Registries: []string{host}, RootCAs: append(bundle, target.CertificatePEM()...)}}}
	_, err = session(t, registry.Options{}, access).Fetch(t.Context(), parse(t, host+"/app"), descriptor(7), 100)
	require.Equal(t, policy.ReasonForbidden, reason(t, err))
	require.Empty(t, target.Requests())
}

func TestATokenServerMustProveWhoItIs(t *testing.T) {
	tokens, err := fixture.StartRegistry(fixture.RegistryOptions{TLS: true}) // its certificate is not in the bundle
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tokens.Close()) })
	images := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+tokens.Host()+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(images.Close)
	host := images.Listener.Addr().String()
	access := registry.Access{Hosts: map[string]registry.HostRule{host: {Private: true}, tokens.Host(): {Private: true}}, Stores: []registry.Store{{
		Registries: []string{host, tokens.Host()},
		RootCAs:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: images.Certificate().Raw}),
		Logins:     loginFor(host, registry.Credential{Username: "user", Password: "secret"})}}}
	err = resolve(t.Context(), session(t, registry.Options{}, access), parse(t, host+"/app:v1"))
	require.ErrorContains(t, err, "certificate")
	require.Empty(t, tokens.Requests())
}
