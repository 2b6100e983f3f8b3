package controller

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestWhatIsKeptOfTheSecretsOfANamespaceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(secret("team-b", "key", "1"))
		var sources []policy.ObjectRef
		for i := range maxReferences {
			large := secret("team-a", fmt.Sprintf("s%03d", i), "1")
			large.Data["key"] = bytes.Repeat([]byte("x"), 1_000_000)
			_, err := clients.CoreV1().Secrets("team-a").Create(t.Context(), large, metav1.CreateOptions{})
			require.NoError(t, err)
			sources = append(sources, secretSource("team-a", large.Name))
		}
		w := watching(t, clients)
		other := []policy.ObjectRef{secretSource("team-b", "key")}
		w.set.Want("team-a", sources)
		w.set.Want("team-b", other)
		kept := func(sources []policy.ObjectRef) (o resource.Objects, size int) {
			synctest.Wait()
			w.fill(&o, sources)
			require.Len(t, o.Secrets, len(sources)-len(o.Broken), "none counts as missing")
			for i := range o.Secrets {
				size += len(o.Secrets[i].Data["key"])
			}
			return o, size
		}
		o, size := kept(sources)
		require.LessOrEqual(t, size, 4<<20)
		require.Len(t, o.Secrets, 4)
		require.Equal(t, policy.ReasonLimitExceeded, o.Broken[0].Reason)
		require.ErrorContains(t, o.Broken[0].Err, "it has 976 KiB, and the Secrets, ConfigMaps and ServiceAccounts of namespace team-a that resources name may "+
			"take 4096 KiB together")
		refused := []policy.ObjectRef{o.Broken[0].Source, o.Broken[1].Source}
		o, _ = kept(other)
		require.Len(t, o.Secrets, 1)

		w.set.Want("team-a", refused)
		time.Sleep(2 * time.Minute)
		o, _ = kept(refused)
		require.Len(t, o.Secrets, 2, "they are read again, and there is room for them now")
		w.set.Want("team-a", nil)
		w.set.Want("team-b", nil)
		synctest.Wait()
		require.True(t, free(w, "team-a", "team-b"))
	})
}

func TestWhatIsKeptOfTheSecretsOfATenantIsBounded(t *testing.T) {
	var objects []client.Object
	wanted := map[verify.Namespace][]policy.ObjectRef{}
	for i := range 7 {
		namespace := []string{"iris", "iris-a", "iris-b", "iris-c", "iris-d", "iris-e", "quiet"}[i]
		for j := range 4 {
			large := secret(namespace, fmt.Sprint("s", j), "1")
			large.Data["key"] = bytes.Repeat([]byte("x"), 1_000_000)
			objects = append(objects, large)
			wanted[verify.Namespace(namespace)] = append(wanted[verify.Namespace(namespace)], secretSource(namespace, large.Name))
		}
	}
	b := newBench(t, interceptor.Funcs{}, objects...)
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}}
	b.hold(resource.NewTenants([]*v1beta1.Tenant{iris}))
	for namespace, sources := range wanted {
		b.secrets.set.Want(namespace, sources)
	}
	var o resource.Objects
	require.Eventually(t, func() bool {
		o = resource.Objects{}
		for _, sources := range wanted {
			b.secrets.fill(&o, sources)
		}
		return !slices.ContainsFunc(o.Broken, func(b resource.Broken) bool { return resource.ReasonOf(b.Err) != policy.ReasonLimitExceeded })
	}, settled, time.Millisecond)
	kept := map[bool]int{}
	for i := range o.Secrets {
		kept[o.Secrets[i].Namespace == "quiet"]++
	}
	require.Equal(t, map[bool]int{false: 16, true: 4}, kept, "of 24 MB of the Tenant: all 4 of its home, and 12 others")
	require.Len(t, o.Broken, 8)
	require.ErrorContains(t, o.Broken[0].Err, "it has 976 KiB, and the Secrets, ConfigMaps and ServiceAccounts of Tenant iris that resources name may take "+
		"12288 KiB together")

	for namespace := range wanted {
		b.secrets.set.Want(namespace, nil)
	}
	require.Eventually(t, func() bool { return free(b.secrets, "iris", "iris-a", "iris-b", "iris-c") }, settled, time.Millisecond)
}

// free reports whether some namespaces can take all the room for references that a namespace has.
func free(w *secretWatches, namespaces ...string) bool {
	limit, _ := resource.References.Limits()
	free := true
	for _, namespace := range namespaces {
		full, _ := w.room.Take(resource.References, namespace, "all", limit)
		free = free && full == ""
	}
	for _, namespace := range namespaces {
		w.room.Take(resource.References, namespace, "all", 0)
	}
	return free
}

// A map takes ten times the memory of what it has if that is thousands of short keys.
func TestAnObjectOfManyKeysIsNotKept(t *testing.T) {
	keys := func(n int) map[string][]byte {
		made := map[string][]byte{"key": []byte("x")}
		for i := 1; i < n; i++ {
			made[fmt.Sprintf("%04x", i)] = nil
		}
		return made
	}
	texts := map[string]string{}
	for key := range keys(600) {
		texts[key] = ""
	}
	for name, c := range map[string]struct {
		object runtime.Object
		says   string // "" if it is kept
	}{
		"Secret":          {&corev1.Secret{Data: keys(1024)}, ""},
		"Secret, more":    {&corev1.Secret{Data: keys(1025)}, "it has 1025 keys, the limit is 1024: keep what is needed in an object of its own"},
		"ConfigMap":       {&corev1.ConfigMap{Data: texts, BinaryData: keys(424)}, ""},
		"ConfigMap, more": {&corev1.ConfigMap{Data: texts, BinaryData: keys(425)}, "it has 1025 keys"},
		"account":         {&corev1.ServiceAccount{ImagePullSecrets: make([]corev1.LocalObjectReference, 1024)}, ""},
		"account, too many": {&corev1.ServiceAccount{ImagePullSecrets: make([]corev1.LocalObjectReference, 90_000)},
			"it has 90000 imagePullSecrets, the limit is 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSecretWatches(fake.NewClientset(), func(verify.Namespace) {})
			key := secretSource("team-a", "key")
			err := w.take(&key, c.object)
			require.Equal(t, c.says != "", free(w, "team-a"))
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.Equal(t, policy.ReasonLimitExceeded, resource.ReasonOf(err))
				return
			}
			require.NoError(t, err)
			size, err := sizeOf(c.object)
			require.NoError(t, err)
			require.Greater(t, size, 1024*16, "each entry has a head")
		})
	}
}
