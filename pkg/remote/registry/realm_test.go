package registry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// byName is another name of a host on loopback.
func byName(host string) string { return strings.Replace(host, "127.0.0.1", "localhost", 1) }

// accessWith is access to hosts without TLS, all of which have a private address, with a login for the first.
func accessWith(credential registry.Credential, listed []string, hosts ...string) registry.Access {
	return registry.Access{Namespace: "team-a", Hosts: plain(hosts...), Stores: []registry.Store{{
		Source: policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "own"}, Registries: listed, Logins: loginFor(hosts[0], credential)}}}
}

var user = registry.Credential{Username: "user", Password: "secret"}

// forToken answers with content, for the token of a server without TLS.
func forToken(server string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer T" {
			_, _ = w.Write([]byte("content"))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+server+`",service="s"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// oras-project/oras-go#1246, mkuchin/docker-registry-web#95, containerd/containerd#6339: registries in a company.
func TestATokenServerWithAPrivateAddressOfItsOwnIsAskedIfItIsListed(t *testing.T) {
	images, tokens := hostile.New(), hostile.New()
	t.Cleanup(images.Close)
	t.Cleanup(tokens.Close)
	images.Handle("", "/blobs/", forToken(byName(tokens.Host())+"/jwt/auth?client=x"))
	tokens.Handle("", "/jwt/auth", func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		if r.Host != byName(tokens.Host()) || name != "user" || password != "secret" || r.FormValue("client") != "x" || r.FormValue("service") != "s" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		http.Redirect(w, r, "/jwt/token?client=x", http.StatusTemporaryRedirect)
	})
	tokens.Handle("", "/jwt/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"access_token":"T"}`) })
	all := []string{images.Host(), byName(tokens.Host())}
	content, err := session(t, registry.Options{}, accessWith(user, all, all...)).Fetch(t.Context(), parse(t, images.Host()+"/app"), descriptor(7), 100)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))

	before := len(tokens.Requests())
	_, err = session(t, registry.Options{}, accessWith(user, all[:1], all...)).Fetch(t.Context(), parse(t, images.Host()+"/app"), descriptor(7), 100)
	require.Equal(t, policy.ReasonUntrustedTokenServer, reason(t, err))
	require.Len(t, tokens.Requests(), before)
}

// hashicorp/terraform-provider-docker#243.
func TestWhoeverHasNoLoginMayAskAnyTokenServer(t *testing.T) {
	images, tokens := hostile.New(), hostile.New()
	t.Cleanup(images.Close)
	t.Cleanup(tokens.Close)
	images.Handle("", "/blobs/", forToken(tokens.Host()+"/auth"))
	tokens.Handle("", "/auth", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"access_token":"T"}`) })
	access := accessWith(registry.Credential{}, []string{images.Host()}, images.Host(), tokens.Host())
	content, err := session(t, registry.Options{}, access).Fetch(t.Context(), parse(t, images.Host()+"/app"), descriptor(7), 100)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	require.Empty(t, tokens.Authorizations())
}

func TestWhatIsWrongWithATokenServerIsSaid(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	for name, c := range map[string]struct {
		challenge  string
		credential registry.Credential
		reason     policy.Reason
		says       string
	}{
		// sonatype/nexus-public#651, distribution/distribution#1458.
		"a realm with two ports":  {`Bearer realm="https://nexus.example.com:5002:5002/v2/token"`, user, policy.ReasonUntrustedTokenServer, "which is no URL"},
		"a realm without a host":  {`Bearer realm="/token"`, user, policy.ReasonUntrustedTokenServer, "which is no URL"},
		"a realm of another kind": {`Bearer realm="ftp://HOST/token"`, user, policy.ReasonUntrustedTokenServer, "without TLS"},
		"a realm without TLS": {`Bearer realm="http://other.example.com/token"`, user, policy.ReasonUntrustedTokenServer,
			"names its token server at \"other.example.com\" without TLS"},
		"Basic beside it": {`Bearer realm="http://other.example.com/token", Basic realm="x"`, user, policy.ReasonAccessDenied, "refuses access"},
		// microsoft/vscode-docker-extensibility#201
		"Basic, and half a login":  {`Basic realm="x"`, registry.Credential{Username: "user"}, policy.ReasonAccessDenied, "the login does not have both"},
		"Basic, and the other one": {`Basic realm="x"`, registry.Credential{Password: "secret"}, policy.ReasonAccessDenied, "the login does not have both"},
		"Basic, and a token":       {`Basic realm="x"`, registry.Credential{IdentityToken: "t"}, policy.ReasonAccessDenied, "the login does not have both"},
		"a token server's 400": {`Bearer realm="http://HOST/token"`, registry.Credential{IdentityToken: "t"}, policy.ReasonAccessDenied,
			"the token server of HOST refuses the request"},
	} {
		t.Run(name, func(t *testing.T) {
			h.Handle("", "/manifests/", hostile.Status(401, "WWW-Authenticate: "+strings.ReplaceAll(c.challenge, "HOST", h.Host())))
			h.Handle("", "/token", hostile.Status(400))
			_, err := session(t, registry.Options{}, accessWith(c.credential, []string{h.Host()}, h.Host())).Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
			require.Equal(t, c.reason, reason(t, err))
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "HOST", h.Host()))
		})
	}
}

// docker/for-mac#7658, containerd/containerd#5503: a facade for GHCR or ECR.
func TestARedirectToARegistryThatWantsALoginIsSaid(t *testing.T) {
	facade, behind := hostile.New(), hostile.New()
	t.Cleanup(facade.Close)
	t.Cleanup(behind.Close)
	facade.Handle("", "/manifests/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+behind.Host()+r.URL.Path, http.StatusTemporaryRedirect)
	})
	for _, challenge := range []string{`Basic realm="x"`, `Bearer realm="http://` + behind.Host() + `/token"`} {
		behind.Handle("", "/manifests/", hostile.Status(401, "WWW-Authenticate: "+challenge))
		_, err := session(t, registry.Options{}, accessWith(user, []string{facade.Host(), behind.Host()}, facade.Host(), behind.Host())).
			Resolve(t.Context(), parse(t, facade.Host()+"/app:v1"))
		require.Equal(t, policy.ReasonAccessDenied, reason(t, err))
		require.ErrorContains(t, err, facade.Host()+" redirects to "+behind.Host()+", which asks for a login of its own")
	}
	require.Empty(t, behind.Authorizations())
}

// containers/image#58, pulp/pulp_container#579, moby/moby#50065: manifests from a content network.
func TestARedirectedManifestIsReadAsIfItWereNot(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
	at := "/storage/blobs/x"
	h.Handle("", "/manifests/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, at, http.StatusTemporaryRedirect) })
	serve := func(body string, headers ...string) error {
		h.Handle("", at, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte(body))
			}
		})
		found, err := session(t, registry.Options{}, accessWith(user, []string{h.Host()}, h.Host())).Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
		if err == nil {
			require.Equal(t, ocispec.MediaTypeImageIndex, found.MediaType)
			require.Equal(t, digest.FromString(body), found.Digest)
		}
		return err
	}
	require.NoError(t, serve(manifest))
	for name, headers := range map[string][]string{"with a digest": {"Docker-Content-Digest", digest.FromString("x").String()}, "without": nil} {
		err := serve(manifest+strings.Repeat(" ", 3<<20), headers...)
		require.Equal(t, policy.ReasonLimitExceeded, reason(t, err), name)
	}
}

// goharbor/harbor#20187.
func TestAListedSizeThatIsTooLargeIsNoChange(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/blobs/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("content")) })
	access := accessWith(user, []string{h.Host()}, h.Host())
	listed := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromString("content"), Size: 70}
	content, err := session(t, registry.Options{}, access).Fetch(t.Context(), parse(t, h.Host()+"/app"), listed, 100)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
	listed.Size = 6
	_, err = session(t, registry.Options{}, access).Fetch(t.Context(), parse(t, h.Host()+"/app"), listed, 100)
	require.Equal(t, policy.ReasonContentMismatch, reason(t, err))
	listed.Size, listed.Digest = 70, digest.FromString("other")
	_, err = session(t, registry.Options{}, access).Fetch(t.Context(), parse(t, h.Host()+"/app"), listed, 100)
	require.Equal(t, policy.ReasonContentMismatch, reason(t, err))
}

// yusing/godoxy#169, containerd/containerd#5154.
func TestAHeadWithoutALengthIsFollowedByGet(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
	h.Handle("", "/manifests/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Docker-Content-Digest", digest.FromString(manifest).String())
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "0")
			return
		}
		_, _ = w.Write([]byte(manifest))
	})
	found, err := session(t, registry.Options{}, accessWith(user, []string{h.Host()}, h.Host())).Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
	require.NoError(t, err)
	require.EqualValues(t, len(manifest), found.Size)
}
