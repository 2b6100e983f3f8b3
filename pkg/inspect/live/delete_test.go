package live

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// reader returns somebody with all permissions in a world.
func reader(t *testing.T, objects ...client.Object) *Person {
	t.Helper()
	l := &lab{scheme: runtime.NewScheme(), schemas: schema.Embedded()}
	require.NoError(t, clientgoscheme.AddToScheme(l.scheme))
	require.NoError(t, v1beta1.AddToScheme(l.scheme))
	w := world{}
	for _, o := range objects {
		w.add(o)
	}
	return l.person(w)
}

func TestWhatAChangeDeletesIsNotReadFromTheClusterAgain(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: team, Name: name} }
	inSecret, inMap := &v1beta1.TrustStore{ObjectMeta: meta("secret")}, &v1beta1.TrustStore{ObjectMeta: meta("map")}
	inSecret.Spec.Type, inMap.Spec.Type = v1beta1.TrustStoreTypePublicKeys, v1beta1.TrustStoreTypePublicKeys
	inSecret.Spec.Source.SecretKeyRef = &v1beta1.KeyReference{Name: "s", Key: "key"}
	inMap.Spec.Source.ConfigMapKeyRef = &v1beta1.KeyReference{Name: "m", Key: "key"}
	store := &v1beta1.Store{ObjectMeta: meta("store")}
	store.Spec.Registries = []string{"registry.example.com"}
	store.Spec.ImagePullSecretsFrom = &v1beta1.ImagePullSecretsFrom{ServiceAccount: v1beta1.Reference{Name: "a"}}
	account := &corev1.ServiceAccount{ObjectMeta: meta("a"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
	p := reader(t, inSecret, inMap, store, account, &corev1.Secret{ObjectMeta: meta("s")}, &corev1.ConfigMap{ObjectMeta: meta("m")},
		&corev1.Secret{ObjectMeta: meta("pull")})
	count := func(o resource.Objects) [3]int {
		require.Empty(t, o.Unreadable)
		return [3]int{len(o.Secrets), len(o.ConfigMaps), len(o.ServiceAccounts)}
	}
	for ref, want := range map[policy.ObjectRef][3]int{
		{Kind: "Secret", Namespace: team, Name: "s"}:         {1, 1, 1},
		{Kind: "ConfigMap", Namespace: team, Name: "m"}:      {2, 0, 1},
		{Kind: "ServiceAccount", Namespace: team, Name: "a"}: {1, 1, 0},
	} {
		before, after, err := p.Rehearse(t.Context(), Scope{Namespaces: []verify.Namespace{team}}, Change{Delete: []policy.ObjectRef{ref}})
		require.NoError(t, err)
		require.Equal(t, [3]int{2, 1, 1}, count(before.Objects), ref)
		require.Equal(t, want, count(after.Objects), "without %s, and what only it names", ref)
	}
}

func TestAServiceAccountWithoutPullSecretsReplacesOneThatHasSome(t *testing.T) {
	change, others, err := readChange(t, strings.NewReader("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"), "team-a")
	require.NoError(t, err)
	require.Zero(t, others)
	require.Len(t, change.Objects.ServiceAccounts, 1)
	require.Equal(t, "team-a", change.Objects.ServiceAccounts[0].Namespace)
}

// readChange reads a change as preview does.
func readChange(t *testing.T, text io.Reader, namespace verify.Namespace) (Change, int, error) {
	t.Helper()
	objects, others, err := lint.ReadSound(t.Context(), string(namespace), []string{"-"}, text)
	return Change{Objects: objects, At: time.Now()}, others, err
}
