package watch

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

var key = types.NamespacedName{Namespace: "team-a", Name: "key"}

func secret(name, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, ResourceVersion: version}}
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key", errors.New("no"))
}

func TestContentStaysThroughFailuresButNotWithoutTheRight(t *testing.T) {
	var changes int
	w := NewObject("Secret", key, func() { changes++ })
	s := store{w}
	_, answered, err := w.Content()
	require.False(t, answered)
	require.NoError(t, err)

	require.NoError(t, s.Replace([]any{secret("key", "1")}, ""))
	require.NoError(t, s.Update(secret("key", "1")))
	require.Equal(t, 1, changes, "the same version is no change")
	w.fail(errors.New("connection refused"))
	object, _, err := w.Content()
	require.NoError(t, err)
	require.NotNil(t, object, "a failure says nothing about the object")

	w.fail(forbidden())
	object, answered, err = w.Content()
	require.Error(t, err)
	require.True(t, answered)
	require.Nil(t, object, "a permission that is withdrawn takes the content with it")
	require.Equal(t, 2, changes)
	require.NoError(t, s.Add(secret("key", "1")))
	require.Equal(t, 3, changes)
	require.NoError(t, s.Delete(nil))
	object, answered, err = w.Content()
	require.NoError(t, err)
	require.True(t, answered)
	require.Nil(t, object)
	require.NoError(t, s.Add(secret("another", "1")), "an error would be logged with the object")
	object, _, _ = w.Content()
	require.Nil(t, object, "only the named object is taken")
	require.NoError(t, s.Add(secret("key", "2")))
	require.NoError(t, s.Delete(secret("another", "1")))
	object, _, _ = w.Content()
	require.NotNil(t, object, "only the end of the named object is its end")
}

func TestOnlyWhatIsReadIsKeptOfAnObject(t *testing.T) {
	crowded := func(annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team-a", Name: "key", UID: "1", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Annotations: annotations,
			Finalizers:      []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	}
	identity := metav1.ObjectMeta{Namespace: "team-a", Name: "key", UID: "1", ResourceVersion: "7"}
	roles := map[string]string{v1beta1.AnnotationTUFRoles: "root"}
	withRoles := identity
	withRoles.Annotations = roles
	for name, c := range map[string]struct{ object, want runtime.Object }{
		"Secret": {&corev1.Secret{ObjectMeta: crowded(map[string]string{"a": "b"}), Data: map[string][]byte{"key": []byte("x")}},
			&corev1.Secret{ObjectMeta: identity, Data: map[string][]byte{"key": []byte("x")}}},
		"ConfigMap": {&corev1.ConfigMap{ObjectMeta: crowded(map[string]string{"a": "b", v1beta1.AnnotationTUFRoles: "root"})},
			&corev1.ConfigMap{ObjectMeta: withRoles}},
		"ServiceAccount": {&corev1.ServiceAccount{ObjectMeta: crowded(nil), Secrets: make([]corev1.ObjectReference, 90_000),
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
			&corev1.ServiceAccount{ObjectMeta: identity, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}},
	} {
		w := NewObject("Secret", key, func() {})
		require.NoError(t, store{w}.Replace([]any{c.object}, ""))
		kept, _, err := w.Content()
		require.NoError(t, err)
		require.Equal(t, c.want, kept, name)
	}
}

// client-go's tracker sends the object that it keeps, so reducing it in place is a data race.
func TestTheObjectOfAnEventIsNotChanged(t *testing.T) {
	given := secret("key", "1")
	given.Labels, given.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	before := given.DeepCopy()
	w := NewObject("Secret", key, func() {})
	require.NoError(t, store{w}.Add(given))
	require.Equal(t, before, given)
	kept, _, _ := w.Content()
	require.Empty(t, kept.(*corev1.Secret).Labels, "what is kept is reduced")
}

func TestWatchesNothingButSecretsAndConfigMaps(t *testing.T) {
	w := NewObject("Pod", key, func() {})
	w.Run(t.Context(), fake.NewClientset())
	_, answered, err := w.Content()
	require.False(t, answered)
	require.ErrorContains(t, err, "only Secrets, ConfigMaps and ServiceAccounts")
}

// run runs a watch in the bubble of a test until the test ends.
func run(t *testing.T, w *Object, clients *fake.Clientset) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx, clients) }()
	t.Cleanup(func() { stop(); <-ended })
}

func TestChangesAreSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int64
		w := NewObject("Secret", key, func() { changes.Add(1) })
		clients := fake.NewClientset()
		began := time.Now()
		run(t, w, clients)
		synctest.Wait()
		object, answered, err := w.Content()
		require.NoError(t, err)
		require.True(t, answered)
		require.Nil(t, object, "an object that does not exist is an answer too")

		secrets := clients.CoreV1().Secrets("team-a")
		made, err := secrets.Create(t.Context(), secret("key", "1"), metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		object, _, _ = w.Content()
		require.Equal(t, "1", object.(*corev1.Secret).ResourceVersion)
		made.ResourceVersion = "2"
		_, err = secrets.Update(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		object, _, _ = w.Content()
		require.Equal(t, "2", object.(*corev1.Secret).ResourceVersion)
		require.NoError(t, secrets.Delete(t.Context(), "key", metav1.DeleteOptions{}))
		synctest.Wait()
		object, _, _ = w.Content()
		require.Nil(t, object)
		require.Equal(t, int64(4), changes.Load())
		require.Equal(t, began, time.Now(), "nothing waited for a timer")
	})
}

func TestARightThatIsGrantedTakesEffectWithinTheLongestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(secret("key", "1"))
		var granted atomic.Bool
		clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !granted.Load(), nil, forbidden()
		})
		w := NewObject("Secret", key, func() {})
		run(t, w, clients)
		time.Sleep(time.Hour)
		_, answered, err := w.Content()
		require.True(t, answered)
		require.True(t, apierrors.IsForbidden(err))
		granted.Store(true)
		time.Sleep(maxPause + maxPause/2)
		synctest.Wait()
		object, _, err := w.Content()
		require.NoError(t, err)
		require.NotNil(t, object)
	})
}

func TestAnObjectThatCannotBeReadIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset(secret("key", "1"))
		clients.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("the API server is down")
		})
		w := NewObject("Secret", key, func() {})
		run(t, w, clients)
		time.Sleep(time.Minute)
		object, answered, err := w.Content()
		require.ErrorContains(t, err, "is down")
		require.False(t, answered)
		require.Nil(t, object)
	})
}
