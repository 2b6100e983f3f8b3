package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// place returns a ClusterStore whose pull secret is home/login, with one thing changed.
func place(change func(*v1beta1.StoreSpec)) *v1beta1.ClusterStore {
	store := &v1beta1.ClusterStore{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}
	store.Spec.Registries = []string{"registry.example.com"}
	store.Spec.ImagePullSecrets = []v1beta1.Reference{{Name: "login"}}
	if change != nil {
		change(&store.Spec)
	}
	return store
}

// vaulted returns a ClusterTrustStore with a key in a Vault.
func vaulted(address string) *v1beta1.ClusterTrustStore {
	store := &v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}
	store.Spec.Type = v1beta1.TrustStoreTypePublicKeys
	store.Spec.Source.Vault = &v1beta1.VaultSource{TokenSecretKeyRef: &v1beta1.KeyReference{Name: "login", Key: "token"}}
	store.Spec.Source.Vault.Address, store.Spec.Source.Vault.Path = address, "transit/keys/x"
	return store
}

func TestAChangeSendsNoSecretToServersThatDoNotGetItNow(t *testing.T) {
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "login"}, Data: map[string][]byte{"token": []byte("t")}}
	pulls := &v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "team"}}
	pulls.Spec.Registries, pulls.Spec.ImagePullSecrets = []string{"registry.example.com"}, []v1beta1.Reference{{Name: "pull"}}
	pull := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "pull"}}
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "ca"}, Data: map[string]string{"ca.crt": "other"}}
	withCA := place(func(s *v1beta1.StoreSpec) {
		s.CABundle = &v1beta1.CABundle{ConfigMapKeyRef: &v1beta1.KeyReference{Name: "ca", Key: "ca.crt"}}
	})
	inline := place(func(s *v1beta1.StoreSpec) { s.CABundle = &v1beta1.CABundle{Inline: "x"} })
	plainHTTP := place(func(s *v1beta1.StoreSpec) { s.InsecurePlainHTTP = true })
	noLogin := place(func(s *v1beta1.StoreSpec) { s.InsecurePlainHTTP, s.ImagePullSecrets = true, nil })
	proxied := place(func(s *v1beta1.StoreSpec) {
		s.ImagePullSecrets = nil
		s.Proxy = &v1beta1.Proxy{URL: "https://attacker.example:8443", SecretRef: &v1beta1.Reference{Name: "login"}}
	})
	renamed := plainHTTP.DeepCopy()
	renamed.Spec.Registries = append(renamed.Spec.Registries, "other.example.com")
	for name, c := range map[string]struct {
		before []client.Object
		after  []client.Object
		unread int
	}{
		"a new Vault":                     {nil, []client.Object{vaulted("https://attacker.example")}, 1},
		"another Vault":                   {[]client.Object{vaulted("https://vault.example")}, []client.Object{vaulted("https://attacker.example")}, 1},
		"the same Vault":                  {[]client.Object{vaulted("https://vault.example")}, []client.Object{vaulted("https://vault.example")}, 0},
		"a login for another proxy":       {[]client.Object{place(nil)}, []client.Object{proxied}, 1},
		"the same proxy":                  {[]client.Object{proxied}, []client.Object{proxied}, 0},
		"a registry with a pull secret":   {nil, []client.Object{place(nil)}, 0},
		"another CA":                      {[]client.Object{place(nil)}, []client.Object{inline}, 1},
		"another CA in a ConfigMap":       {[]client.Object{withCA, authority}, []client.Object{authority}, 1},
		"plain HTTP":                      {[]client.Object{place(nil)}, []client.Object{plainHTTP}, 1},
		"plain HTTP as before":            {[]client.Object{plainHTTP}, []client.Object{plainHTTP}, 0},
		"plain HTTP for more registries":  {[]client.Object{plainHTTP}, []client.Object{renamed}, 1},
		"plain HTTP for a team's login":   {[]client.Object{pulls}, []client.Object{noLogin}, 1},
		"a Secret that the change brings": {nil, []client.Object{vaulted("https://vault.example"), login}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := reader(t, append([]client.Object{login, pull}, c.before...)...)
			change := Change{}
			for _, o := range c.after {
				require.NoError(t, change.Objects.Add(o))
			}
			before, after, err := p.Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
			require.NoError(t, err)
			require.Empty(t, before.Objects.Unreadable)
			require.Len(t, after.Objects.Unreadable, c.unread)
			for _, u := range after.Objects.Unreadable {
				require.Contains(t, u.Why, "--send-secrets")
				for _, s := range after.Objects.Secrets {
					require.NotEqual(t, u.Source, policy.ObjectRef{Kind: "Secret", Namespace: s.Namespace, Name: s.Name})
				}
			}
			change.SendSecrets = true
			_, after, err = p.Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}, ClusterResourceNamespace: home}, change)
			require.NoError(t, err)
			require.Empty(t, after.Objects.Unreadable)
		})
	}
}
