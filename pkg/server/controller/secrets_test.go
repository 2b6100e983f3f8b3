package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func secretSource(namespace, name string) policy.ObjectRef {
	return policy.ObjectRef{Kind: "Secret", Namespace: namespace, Name: name}
}

func secret(namespace, name, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version},
		Data: map[string][]byte{"key": []byte("value " + version)}}
}

// settled is how long a test waits for another goroutine.
const settled = 10 * time.Second

// watching runs secretWatches over a fake API server.
func watching(t *testing.T, clients *fake.Clientset) *secretWatches {
	t.Helper()
	w := newSecretWatches(clients, func(verify.Namespace) {})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.set.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// filled waits until the objects are as ok wants them.
func filled(t *testing.T, w *secretWatches, sources []policy.ObjectRef, ok func(resource.Objects) bool) resource.Objects {
	t.Helper()
	var o resource.Objects
	require.Eventually(t, func() bool {
		o = resource.Objects{}
		w.fill(&o, sources)
		return ok(o)
	}, settled, time.Millisecond)
	return o
}

func TestWatchesReferencedObjectsForAsLongAsTheyAreReferenced(t *testing.T) {
	clients := fake.NewClientset(secret("team-a", "pull", "1"))
	answer := make(chan struct{})
	clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-answer
		return false, nil, nil
	})
	w := watching(t, clients)
	sources := []policy.ObjectRef{secretSource("team-a", "pull"), secretSource("team-a", "absent")}
	require.Positive(t, w.set.Want("team-a", sources), "the first reading is waited for")
	close(answer)
	o := filled(t, w, sources, func(o resource.Objects) bool { return len(o.Secrets) == 1 && len(o.Broken) == 0 })
	require.Equal(t, "pull", o.Secrets[0].Name)
	require.Zero(t, w.set.Want("team-a", sources), "an absent object is known too")

	require.NoError(t, clients.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, secret("team-a", "pull", "2"), "team-a"))
	filled(t, w, sources, func(o resource.Objects) bool { return len(o.Secrets) == 1 && o.Secrets[0].ResourceVersion == "2" })

	require.Zero(t, w.set.Want("team-a", sources[:1]))
	require.Len(t, w.set.Keys(), 1)
	w.set.KeepOnly(map[verify.Namespace][]policy.ObjectRef{"team-b": nil})
	require.Empty(t, w.set.Keys())
}

func TestAnObjectIsWatchedOnceForAllNamespacesThatNeedIt(t *testing.T) {
	w := watching(t, fake.NewClientset(secret("team-a", "key", "1")))
	sources := []policy.ObjectRef{secretSource("team-a", "key")}
	w.set.Want("team-a", sources)
	w.set.Want(verify.Cluster, sources)
	require.Len(t, w.set.Keys(), 1)
	w.set.Want("team-a", nil)
	require.Len(t, w.set.Keys(), 1, "the cluster's resources still need it")
	w.set.Want(verify.Cluster, nil)
	require.Empty(t, w.set.Keys())
}

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, errors.New("no"))
}

func TestAMissingRightIsBrokenAndSaysHowToGrantIt(t *testing.T) {
	clients := fake.NewClientset()
	clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden("key") })
	w := watching(t, clients)
	w.grant = func(source policy.ObjectRef) string { return "kubectl grant in " + source.Namespace }
	sources := []policy.ObjectRef{secretSource("team-a", "key")}
	w.set.Want("team-a", sources)
	o := filled(t, w, sources, func(o resource.Objects) bool {
		return len(o.Broken) == 1 && o.Broken[0].Reason == policy.ReasonAccessDenied
	})
	require.ErrorContains(t, o.Broken[0].Err, "landwaiter has no permission to read it; grant it with: kubectl grant in team-a")
	require.Empty(t, o.Secrets)
}

func TestUnreadableObjectsAreBrokenAndNeverAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(secret("team-a", "key", "1"))
		var down atomic.Bool
		down.Store(true)
		clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("the API server is down")
		})
		w := watching(t, clients)
		sources := []policy.ObjectRef{secretSource("team-a", "key")}
		require.Positive(t, w.set.Want("team-a", sources))
		o := filled(t, w, sources, func(o resource.Objects) bool {
			return len(o.Broken) == 1 && o.Broken[0].Err.Error() != "the API server has not answered yet"
		})
		require.Equal(t, policy.ReasonUnreadable, o.Broken[0].Reason)
		require.ErrorContains(t, o.Broken[0].Err, "the API server is down")
		require.Positive(t, w.set.Want("team-a", sources), "a failure is no answer: what is in force stays")
		time.Sleep(firstRead)
		require.Zero(t, w.set.Want("team-a", sources), "for a while")
		down.Store(false)
		filled(t, w, sources, func(o resource.Objects) bool { return len(o.Secrets) == 1 && len(o.Broken) == 0 })
	})
}

func TestReferencesPastTheLimitAreBroken(t *testing.T) {
	w := watching(t, fake.NewClientset())
	var sources []policy.ObjectRef
	for i := range maxReferences + 1 {
		sources = append(sources, secretSource("team-a", fmt.Sprintf("s%03d", i)))
	}
	w.set.Want("team-a", sources)
	require.Len(t, w.set.Keys(), maxReferences)
	var o resource.Objects
	w.fill(&o, sources[maxReferences:])
	require.Len(t, o.Broken, 1)
	require.ErrorContains(t, o.Broken[0].Err, "more than 64")
}

func TestThePullSecretsOfAServiceAccountAreReferencedOnceItIsKnown(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "builder", ResourceVersion: "1"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
	w := watching(t, fake.NewClientset(account, secret("team-a", "pull", "1"), secret("team-a", "other", "1")))
	from := &v1beta1.ImagePullSecretsFrom{ServiceAccount: v1beta1.Reference{Name: "builder"}}
	o := resource.Objects{
		Resources: []v1beta1.Object{&v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "own"},
			Spec: v1beta1.StoreSpec{ImagePullSecretsFrom: from}}}}
	ref := policy.ObjectRef{Kind: "ServiceAccount", Namespace: "team-a", Name: "builder"}
	require.Equal(t, []policy.ObjectRef{ref}, w.references(o)["team-a"])
	w.set.Want("team-a", w.references(o)["team-a"])
	want := []policy.ObjectRef{secretSource("team-a", "pull"), ref}
	require.Eventually(t, func() bool {
		found := w.references(o)["team-a"]
		w.set.Want("team-a", found)
		return slices.Equal(want, found)
	}, settled, time.Millisecond)
	filled(t, w, want, func(o resource.Objects) bool {
		return len(o.ServiceAccounts) == 1 && len(o.Secrets) == 1 && o.Secrets[0].Name == "pull" && len(o.Broken) == 0
	})
	require.Empty(t, o.ServiceAccounts, "what was asked about is not changed")
}
