//go:build e2e

package evidence

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

func secret(namespace, name, kind string, data map[string]string) string {
	text := fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ntype: %s\ndata:\n", name, namespace, kind)
	for key, value := range data {
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	return text
}

// pullSecret is a Secret with a login for one host.
func pullSecret(namespace, name, host, user, password string) string {
	return secret(namespace, name, "kubernetes.io/dockerconfigjson", map[string]string{
		".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, host, user, password)})
}

func TestOnlyHostsThatAClusterStoreListsGoThroughTheProxy(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil, "registry.corp.example", "team.example.net", "direct.corp.example")
	p := startProxy(t, map[string]string{"registry.corp.example:443": r.host, "team.example.net:443": r.host, "direct.corp.example:443": r.host})
	s := serve(t, map[string]string{
		"cluster": store("", "corp", []string{"registry.corp.example", "direct.corp.example"}, authority),
		"team-a":  rules("team-a", key) + store("team-a", "own", []string{"team.example.net"}, authority),
		"team-b":  rules("team-b", key) + store("team-b", "own", []string{"registry.corp.example"}, authority),
	}, "HTTPS_PROXY="+p.url(), "no_proxy=direct.corp.example")

	s.requireVerdict(t, gatekeeper.Allowed, "team-a", "registry.corp.example"+r.image)
	s.requireVerdict(t, gatekeeper.Allowed, "team-b", "registry.corp.example"+r.image)
	s.requireVerdict(t, undecided, "team-a", "team.example.net"+r.image)
	s.requireVerdict(t, undecided, "team-a", "direct.corp.example"+r.image)
	s.requireVerdict(t, undecided, "team-a", "stranger.example.net"+r.image)
	p.requireOnly(t, "registry.corp.example:443")

	s.write(t, "team-a", rules("team-a", key)+store("team-a", "own", []string{"team.example.net"}, authority, `proxy: {url: "`+p.url()+`"}`))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", "team.example.net"+r.image, "Store team-a/own cannot be used", "proxy")
	p.requireOnly(t, "registry.corp.example:443")
}

func TestAProxyThatDoesNotConnectLeavesImagesUndecided(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil, "registry.corp.example")
	p := startProxy(t, map[string]string{"registry.corp.example:443": r.host})
	through := func(url string) string {
		return store("", "corp", []string{"registry.corp.example"}, authority, `proxy: {url: "`+url+`", secretRef: {name: proxy}}`)
	}
	login := func(password string) string {
		return secret("landwaiter-system", "proxy", "kubernetes.io/basic-auth", map[string]string{"username": "landwaiter", "password": password})
	}
	p.want("landwaiter:pass-right", 0)
	s := serve(t, map[string]string{"cluster": through(p.url()), "login": login("pass-wrong"), "team-a": rules("team-a", key)})
	image := "registry.corp.example" + r.image
	name := strings.TrimPrefix(p.url(), "http://")

	s.requireVerdict(t, undecided, "team-a", image, "the proxy "+name+" asks for other credentials (status 407)")
	s.write(t, "login", login("pass-right"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", image)
	for _, request := range r.Requests() {
		require.Empty(t, request.Header.Get("Proxy-Authorization"), "the proxy's credentials are for the proxy")
	}
	r.Reset()

	// Connections that are open stay so, so this is another proxy.
	other := startProxy(t, map[string]string{"registry.corp.example:443": r.host})
	other.want("landwaiter:pass-right", http.StatusForbidden)
	s.write(t, "cluster", through(other.url()))
	s.write(t, "team-b", rules("team-b", key))
	s.requireVerdict(t, undecided, "team-b", image, "does not let this host through (status 403)")
	s.write(t, "cluster", through("http://"+closed(t)))
	s.requireVerdict(t, undecided, "team-b", image, "the proxy 127.0.0.1:", "cannot be reached")
	s.write(t, "login", "")
	s.requireVerdict(t, gatekeeper.Denied, "team-b", image, "ClusterStore corp cannot be used")
	require.NotContains(t, s.Tail(1000), "pass-")
	require.Zero(t, r.Count(), "nothing was asked for without a tunnel")
}

func TestRedirectsGoThroughTheProxyOnlyToHostsThatTheClusterStoreAdds(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil, "registry.corp.example", "cdn.example.net")
	r.SetIntercept(func(w http.ResponseWriter, request *http.Request) bool {
		if request.Host == "registry.corp.example" && strings.Contains(request.URL.Path, "/blobs/") {
			http.Redirect(w, request, "https://cdn.example.net"+request.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	p := startProxy(t, map[string]string{"registry.corp.example:443": r.host, "cdn.example.net:443": r.host})
	s := serve(t, map[string]string{"cluster": store("", "corp", []string{"registry.corp.example"}, authority), "team-a": rules("team-a", key)},
		"https_proxy="+p.url())
	s.requireVerdict(t, undecided, "team-a", "registry.corp.example"+r.image, "cannot fetch")
	p.requireOnly(t, "registry.corp.example:443")
	s.write(t, "cluster", store("", "corp", []string{"registry.corp.example"}, authority, `proxy: {additionalHosts: ["*.example.net"]}`))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", "registry.corp.example"+r.image)
	s.requireVerdict(t, undecided, "team-a", "cdn.example.net"+r.image) // no Store lists that host
	p.requireOnly(t, "registry.corp.example:443", "cdn.example.net:443")
}

func TestHostsByPatternAreReachedThroughTheProxyWithTheirOwnLogin(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "clouds")
	const ours, theirs = "123456789012.dkr.ecr.eu-west-1.amazonaws.com", "999999999999.dkr.ecr.eu-west-1.amazonaws.com"
	r := startRegistry(t, key, authority, nil, ours, theirs)
	login(r.Registry, "AWS", "token")
	p := startProxy(t, map[string]string{ours + ":443": r.host, theirs + ":443": r.host})
	clouds := store("", "clouds", []string{"*.dkr.ecr.*.amazonaws.com"}, authority, `imagePullSecrets: [{name: pull}]`, `proxy: {url: "`+p.url()+`"}`)
	s := serve(t, map[string]string{"cluster": clouds, "pull": pullSecret("landwaiter-system", "pull", ours, "AWS", "token"), "team-a": rules("team-a", key),
		"team-b": rules("team-b", key)})
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", ours+r.image)
	s.requireVerdict(t, gatekeeper.Denied, "team-a", theirs+r.image, "no Store gives any")
	s.requireVerdict(t, undecided, "team-a", "evil.example.com.dkr.ecr.eu-west-1.amazonaws.com"+r.image)
	p.requireOnly(t, ours+":443", theirs+":443")

	s.write(t, "team-b", rules("team-b", key)+store("team-b", "wide", []string{"*.dkr.ecr.*.amazonaws.com"}, authority))
	s.requireVerdict(t, gatekeeper.Denied, "team-b", ours+r.image, "only a ClusterStore can list registries by pattern")

	// A name comes before a pattern, whatever the stores are called.
	s.write(t, "named", store("", "named", []string{ours}, authority, `proxy: {url: "`+p.url()+`"}`))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", ours+r.image, "no Store gives any")
}

func TestARegistryThatAsksForAClientCertificate(t *testing.T) {
	key, authority, clients, strangers := newKey(t), newAuthority(t, "corp"), newAuthority(t, "clients"), newAuthority(t, "strangers")
	r := startRegistry(t, key, authority, clients)
	certificate := func(namespace string, by *fixture.Authority) string {
		issued, err := by.IssueClient(namespace)
		require.NoError(t, err)
		return secret(namespace, "certificate", "kubernetes.io/tls", map[string]string{"tls.crt": string(issued.CertificatePEM), "tls.key": string(issued.KeyPEM)})
	}
	const presented = "clientCertificate: {secretRef: {name: certificate}}"
	own := func(namespace string, lines ...string) string {
		return rules(namespace, key) + store(namespace, "own", []string{r.host}, authority, lines...)
	}
	s := serve(t, map[string]string{
		"cluster": store("", "corp", []string{r.host}, authority),
		"with":    own("with", presented), "with-secret": certificate("with", clients),
		"without": own("without"),
		"strange": own("strange", presented), "strange-secret": certificate("strange", strangers),
		"thief": own("thief", presented),
	})
	image := r.host + r.image
	s.requireVerdict(t, gatekeeper.Allowed, "with", image)
	s.requireVerdict(t, undecided, "without", image, "clientCertificate")
	s.requireVerdict(t, undecided, "strange", image)
	s.requireVerdict(t, gatekeeper.Denied, "thief", image, "spec.clientCertificate.secretRef: Secret thief/certificate does not exist")

	s.write(t, "strange-secret", certificate("strange", clients)) // rotation takes effect at once
	s.requireVerdict(t, gatekeeper.Allowed, "strange", image)
	s.write(t, "with-secret", certificate("with", strangers))
	s.requireVerdict(t, undecided, "with", image)
	s.write(t, "with-secret", secret("with", "certificate", "kubernetes.io/tls", map[string]string{"tls.crt": "x", "tls.key": "y"}))
	s.requireVerdict(t, gatekeeper.Denied, "with", image, "Secret with/certificate: tls.crt and tls.key are not")
}

func TestSeveralAuthoritiesAreTrusted(t *testing.T) {
	key, old, now := newKey(t), newAuthority(t, "old"), newAuthority(t, "new")
	first, second := startRegistry(t, key, old, nil), startRegistry(t, key, now, nil)
	more := "additionalCABundles:\n  - inline: |\n" + indent(6, now.CertificatePEM)
	s := serve(t, map[string]string{"cluster": store("", "corp", []string{first.host, second.host}, old, more), "team-a": rules("team-a", key)})
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", first.host+first.image)
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", second.host+second.image)
	s.write(t, "cluster", store("", "corp", []string{first.host, second.host}, old))
	s.requireVerdict(t, undecided, "team-a", second.host+second.image, "certificate that is not trusted")
}

func TestPullSecretsOfAServiceAccountInFiles(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "corp")
	r := startRegistry(t, key, authority, nil)
	login(r.Registry, "builder", "pass-a")
	account := func(namespace, pulls string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder, namespace: %s}\nimagePullSecrets: [%s]\n", namespace, pulls)
	}
	own := func(namespace string) string {
		return rules(namespace, key) + store(namespace, "own", []string{r.host}, authority, "imagePullSecretsFrom: {serviceAccount: {name: builder}}")
	}
	s := serve(t, map[string]string{
		"cluster": store("", "corp", []string{r.host}, authority),
		"team-a":  own("team-a"), "account": account("team-a", "{name: other}, {name: pull}"),
		"pull":   pullSecret("team-a", "pull", r.host, "builder", "pass-a") + pullSecret("team-a", "other", "elsewhere.example.com", "x", "y"),
		"team-b": own("team-b"),
	})
	image := r.host + r.image
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", image)
	s.requireVerdict(t, gatekeeper.Denied, "team-b", image, "ServiceAccount team-b/builder does not exist")
	s.write(t, "account", account("team-a", ""))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", image, "ServiceAccount team-a/builder has no imagePullSecrets")
	s.write(t, "account", account("team-a", "{name: gone}"))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", image, "Secret team-a/gone does not exist")
}
