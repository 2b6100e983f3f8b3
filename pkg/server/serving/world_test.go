package serving

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

const own = "landwaiter-system"

func tlsSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: own, Name: "landwaiter-tls"}
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// kube is a fake API server. Unlike the library's it gives every state of a Secret
// a version, as watches need, and refuses updates of an older one.
type kube struct {
	*fake.Clientset
	providers *dynamicfake.FakeDynamicClient
	versions  atomic.Int64
	down      atomic.Pointer[error]             // what reading Secrets fails with
	written   atomic.Int64                      // Secrets created or updated
	applied   atomic.Int64                      // Provider objects
	stranger  atomic.Pointer[map[string][]byte] // what somebody else writes after each update of a Secret, may be nil
}

func newKube() *kube {
	k := &kube{Clientset: fake.NewClientset(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mutate-provider", UID: "role"}}),
		providers: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{providerResource(): "ProviderList"})}
	k.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
		made.UID = types.UID("uid-" + k.next())
		made.ResourceVersion = k.next()
		k.written.Add(1)
		return false, nil, nil
	})
	k.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		changed := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret)
		before, err := k.Tracker().Get(action.GetResource(), changed.Namespace, changed.Name)
		if err == nil && before.(*corev1.Secret).ResourceVersion != changed.ResourceVersion {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, changed.Name, errors.New("changed"))
		}
		changed.ResourceVersion = k.next()
		k.written.Add(1)
		if stranger := k.stranger.Load(); stranger != nil && !maps.EqualFunc(*stranger, changed.Data, bytes.Equal) {
			theirs := changed.DeepCopy() // now, because the tracker writes to changed once this reactor returns
			theirs.Data = *stranger
			go func() {
				time.Sleep(time.Second)
				_, _ = k.CoreV1().Secrets(own).Update(context.Background(), theirs, metav1.UpdateOptions{FieldManager: "cert-manager"})
			}()
		}
		return false, nil, nil
	})
	k.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := k.down.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	k.providers.PrependReactor("patch", "providers", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if patch.PatchType != types.ApplyPatchType {
			return false, nil, nil
		}
		k.applied.Add(1)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(patch.Patch); err != nil {
			return true, nil, err
		}
		if !*patch.PatchOptions.Force || patch.PatchOptions.FieldManager != fieldManager {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "providers"}, patch.Name, errors.New("others own its fields"))
		}
		if _, err := k.providers.Tracker().Get(providerResource(), "", patch.Name); err != nil {
			return true, object, k.providers.Tracker().Create(providerResource(), object, "")
		}
		return true, object, k.providers.Tracker().Update(providerResource(), object, "") // it has every field that there is
	})
	return k
}

func (k *kube) next() string { return strconv.FormatInt(k.versions.Add(1), 10) }

func (k *kube) secret(t testing.TB) *corev1.Secret {
	t.Helper()
	found, err := k.CoreV1().Secrets(own).Get(t.Context(), "landwaiter-tls", metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

// put creates or replaces a Secret.
func (k *kube) put(t testing.TB, name types.NamespacedName, data map[string][]byte) {
	t.Helper()
	secrets := k.CoreV1().Secrets(name.Namespace)
	found, err := secrets.Get(t.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name.Name}, Data: data}, metav1.CreateOptions{})
		require.NoError(t, err)
		return
	}
	found.Data = data
	_, err = secrets.Update(t.Context(), found, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func (k *kube) remove(t testing.TB, name types.NamespacedName) {
	t.Helper()
	require.NoError(t, k.CoreV1().Secrets(name.Namespace).Delete(t.Context(), name.Name, metav1.DeleteOptions{}))
}

func (k *kube) makeProvider(t testing.TB, name string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "externaldata.gatekeeper.sh/v1beta1", "kind": "Provider",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"url": "https://landwaiter", "caBundle": "cGxhY2Vob2xkZXI="}}}
	_, err := k.providers.Resource(providerResource()).Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
}

// provider returns the spec of a Provider.
func (k *kube) provider(t testing.TB, name string) map[string]any {
	t.Helper()
	object, err := k.providers.Resource(providerResource()).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	require.NoError(t, err)
	return spec
}

// bundle returns the certificates of a Provider's caBundle.
func (k *kube) bundle(t testing.TB, name string) []*x509.Certificate {
	t.Helper()
	encoded, ok := k.provider(t, name)["caBundle"].(string)
	require.True(t, ok)
	text, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	return certificatesOf(t, text)
}

func certificatesOf(t testing.TB, text []byte) []*x509.Certificate {
	t.Helper()
	var found []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		found = append(found, certificate)
	}
	return found
}

func certificateOf(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	found := certificatesOf(t, text)
	require.Len(t, found, 1)
	return found[0]
}

// inBubble runs a test in time that only passes while everything waits.
func inBubble(t *testing.T, test func(t *testing.T, k *kube)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newKube()) })
}

// background runs something until the returned function is called, or to the end
// of the test.
func background(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func newAuthorityOf(t testing.TB, name string) *fixture.Authority {
	t.Helper()
	made, err := fixture.NewAuthority(name)
	require.NoError(t, err)
	return made
}

// issuedBy is the data of a Secret with a new certificate of a CA.
func issuedBy(t testing.TB, a *fixture.Authority) map[string][]byte {
	t.Helper()
	certificate, err := a.IssueServer("127.0.0.1")
	require.NoError(t, err)
	return map[string][]byte{"ca.crt": a.CertificatePEM, "tls.crt": certificate.CertificatePEM, "tls.key": certificate.KeyPEM}
}

func replace(t testing.TB, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name+".new", content, 0o600))
	require.NoError(t, os.Rename(name+".new", name))
}

func contentOf(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return content
}
