package live

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

func TestATokenArrivesAtAnotherVaultOnlyIfTheChangeIsTrusted(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		var seen atomic.Int32
		vault := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Vault-Token") != "" {
				seen.Add(1)
			}
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(vault.Close)
		store := vaulted(vault.URL)
		store.Spec.Source.Vault.CABundle = &v1beta1.CABundle{Inline: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: vault.Certificate().Raw}))}
		login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "login"}, Data: map[string][]byte{"token": []byte("t")}}
		change := Change{SendSecrets: trusted}
		require.NoError(t, change.Objects.Add(store))
		before, after, err := reader(t, login).Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
		require.NoError(t, err)
		s, _, err := service.Open(t.Context(), before.Objects, service.Options{})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		_, problems := s.Rehearse(t.Context(), after.Objects)
		require.Equal(t, trusted, seen.Load() > 0, "%v", problems)
	}
}

// attacker answers as a registry, plain and with TLS, and as a proxy that leads every
// connection to itself. It counts the credentials that arrive.
type attacker struct {
	plain, tls *httptest.Server
	seen       atomic.Int32
}

func newAttacker(t *testing.T) *attacker {
	a := &attacker{}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Proxy-Authorization") != "" {
			a.seen.Add(1)
		}
		switch r.Method {
		case http.MethodConnect:
			a.tunnel(w)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	a.tls, a.plain = httptest.NewTLSServer(answer), httptest.NewServer(answer)
	t.Cleanup(a.plain.Close)
	t.Cleanup(a.tls.Close)
	return a
}

// tunnel connects whoever asked with the attacker's own registry.
func (a *attacker) tunnel(w http.ResponseWriter) {
	server, err := net.Dial("tcp", a.tls.Listener.Addr().String())
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n") // the client sees an error
	go func() {
		defer conn.Close()
		_, _ = io.Copy(conn, server) // ends with either side
	}()
	_, _ = io.Copy(server, conn) // as well
}

func TestALoginArrivesAtAnotherServerOnlyIfTheChangeIsTrusted(t *testing.T) {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	indented := func(pem []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(pem)), "\n", "\n        ") }
	rules := "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterTrustStore\nmetadata: {name: keys}\nspec:\n  type: PublicKeys\n  source:\n    inline: |\n        " +
		indented(key.PEM) + `
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerifier, metadata: {name: v}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: p}, spec: {rules: [{images: ["**"], require: [{anyOf: [v]}]}]}}
---
`
	store := func(registry, rest string) string {
		return "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterStore\nmetadata: {name: registry}\nspec:\n  registries: [\"" + registry + "\"]\n" + rest
	}
	pulls := "  imagePullSecrets: [{name: pull}]\n"
	for name, way := range map[string]func(*attacker) (registry, spec string){
		"the login of a proxy": func(a *attacker) (string, string) {
			return "example.com", "  proxy: {url: \"" + a.plain.URL + "\", secretRef: {name: login}}\n"
		},
		"a pull secret through a proxy that answers for the registry": func(a *attacker) (string, string) {
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.tls.Certificate().Raw})
			return "example.com", pulls + "  proxy: {url: \"" + a.plain.URL + "\"}\n  caBundle:\n    inline: |\n        " + indented(ca) + "\n"
		},
		"a pull secret over plain HTTP": func(a *attacker) (string, string) {
			return a.plain.Listener.Addr().String(), pulls + "  insecurePlainHTTP: true\n"
		},
	} {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, trusted %t", name, trusted), func(t *testing.T) {
				a := newAttacker(t)
				registry, spec := way(a)
				login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "login"}, Type: corev1.SecretTypeBasicAuth,
					Data: map[string][]byte{"username": []byte("u"), "password": []byte("p")}}
				pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
					Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + registry + `":{"username":"u","password":"p"}}}`)}}
				change, _, err := readChange(t, strings.NewReader(rules+store(registry, spec)), team)
				require.NoError(t, err)
				change.SendSecrets = trusted
				before, after, err := reader(t, login, pull).Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
				require.NoError(t, err)
				s, _, err := service.Open(t.Context(), before.Objects, service.Options{})
				require.NoError(t, err)
				t.Cleanup(s.Close)
				next, _ := s.Rehearse(t.Context(), after.Objects)
				ref, err := image.Parse(registry + "/app:v1")
				require.NoError(t, err)
				got := next.Verify(t.Context(), team, ref).Verdict
				require.NotEqual(t, policy.Allowed, got.Outcome())
				require.Equal(t, trusted, a.seen.Load() > 0, got.Reason)
				if !trusted {
					require.Equal(t, policy.Undecided, got.Outcome(), got.Reason)
					require.Contains(t, got.Reason, "--send-secrets")
				}
			})
		}
	}
}

// clusterStore returns a ClusterStore of a registry.
func clusterStore(name, host string, plain bool, secrets ...string) *v1beta1.ClusterStore {
	store := &v1beta1.ClusterStore{ObjectMeta: metav1.ObjectMeta{Name: name}}
	store.Spec.Registries, store.Spec.InsecurePlainHTTP = []string{host}, plain
	for _, secret := range secrets {
		store.Spec.ImagePullSecrets = append(store.Spec.ImagePullSecrets, v1beta1.Reference{Name: secret})
	}
	return store
}

func TestOnlyLoginsForTheHostsOfAChangedWayAreHeldBack(t *testing.T) {
	pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"a.example.com:5000":{"username":"u","password":"p"}}}`)}}
	mirrored := clusterStore("pulls", "b.example.com:5000", false, "pull")
	mirrored.Spec.Mirrors = []v1beta1.Mirror{{Host: "a.example.com:5000"}}
	for name, c := range map[string]struct {
		is     *v1beta1.ClusterStore
		change *v1beta1.ClusterStore
		why    string
	}{
		"plain HTTP to another host": {clusterStore("pulls", "a.example.com:5000", false, "pull"), clusterStore("plain", "c.example.com:5000", true), ""},
		"plain HTTP to the host": {clusterStore("pulls", "a.example.com:5000", false, "pull"), clusterStore("plain", "A.example.com:5000", true),
			"ClusterStore plain send Secret home/pull"},
		"plain HTTP to a mirror of the host": {mirrored, clusterStore("plain", "a.example.com:5000", true), "ClusterStore plain send Secret home/pull"},
		"a pattern that may be for the host": {clusterStore("pulls", "*.example.com", false, "pull"), clusterStore("plain", "a.example.com", true),
			"ClusterStore plain send Secret home/pull"},
		"its own Secret": {clusterStore("other", "x.example.com", false), clusterStore("plain", "c.example.com:5000", true, "pull"),
			"ClusterStore plain send Secret home/pull"},
		"its own Secret, which does not exist": {clusterStore("other", "x.example.com", false), clusterStore("plain", "c.example.com:5000", true, "missing"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			change := Change{}
			require.NoError(t, change.Objects.Add(c.change))
			_, after, err := reader(t, pull, c.is).Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
			require.NoError(t, err)
			if c.why == "" {
				require.Empty(t, after.Objects.Unreadable)
				return
			}
			require.Len(t, after.Objects.Unreadable, 1)
			require.Contains(t, after.Objects.Unreadable[0].Why, c.why)
		})
	}
}

func TestALoginThatIsHeldBackBlamesNoServer(t *testing.T) {
	change := Change{}
	require.NoError(t, change.Objects.Add(clusterStore("too", "a.example.com:5000", true)))
	pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	verifier := &v1beta1.ClusterVerifier{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	verifier.Spec.Type, verifier.Spec.Cosign = v1beta1.VerifierTypeCosign, &v1beta1.CosignVerifier{}
	verifier.Spec.Cosign.Keys = &v1beta1.Keys{Inline: string(key.PEM), TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}
	before, after, err := reader(t, pull, verifier, clusterStore("pulls", "a.example.com:5000", false, "pull")).
		Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
	require.NoError(t, err)
	s, _, err := service.Open(t.Context(), before.Objects, service.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	next, _ := s.Rehearse(t.Context(), after.Objects)
	ref, err := image.Parse("a.example.com:5000/app:v1")
	require.NoError(t, err)
	verdict := next.Verify(t.Context(), team, ref).Verdict
	require.Equal(t, policy.Undecided, verdict.Outcome())
	require.Contains(t, verdict.Reason, "use landwaiter preview --send-secrets")
	require.NotContains(t, verdict.Text(), "tries again by itself")
}
