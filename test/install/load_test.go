//go:build e2e || nightly

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// load is pods that are made all the time, each with an image that nobody was asked about before, and what went
// wrong for them.
type load struct {
	end   context.CancelFunc
	ended sync.WaitGroup
	mu    sync.Mutex
	asked int
	wrong []string
}

// loaded has Gatekeeper ask Landwaiter about pods until the test ends.
func (a *admin) loaded(t *testing.T) *load {
	t.Helper()
	file := filepath.Join(root, "library", "verified-images", "template.yaml")
	a.kubectl(t).Must(t, "apply", "--filename", file)
	namespace := suite.Fresh("loaded")
	suite.Eventually(t, func(context.Context) error {
		result := a.kubectl(t).Run(t, fmt.Sprintf(`{"apiVersion":"constraints.gatekeeper.sh/v1beta1","kind":"VerifiedImages","metadata":{"name":"loaded"},
			"spec":{"match":{"kinds":[{"apiGroups":[""],"kinds":["Pod"]}],"namespaces":[%q]},"parameters":{"provider":"landwaiter-verdict"}}}`, namespace), "apply",
			"--filename", "-")
		if result.Code != 0 {
			return fmt.Errorf("%s", result.Stderr)
		}
		return nil
	})
	t.Cleanup(func() { a.kubectl(t).Must(t, "delete", "verifiedimages", "loaded", "--ignore-not-found") })
	require.NoError(t, a.Client.Create(suite.Within(t), suite.Namespace(namespace)))
	ask := func(ctx context.Context, n int) error {
		image := fmt.Sprintf("registry.example.com/app:%d-%d", time.Now().UnixNano(), n)
		err := a.Client.Create(ctx, suite.Pod(namespace, "app", image), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "there is no policy, and no Verifier applies") {
			return fmt.Errorf("%s: %w", image, err)
		}
		return nil
	}
	suite.Eventually(t, func(ctx context.Context) error { return ask(ctx, 0) })
	ctx, end := context.WithCancel(t.Context())
	l := &load{end: end}
	for n := range 4 {
		l.ended.Go(func() {
			for ctx.Err() == nil {
				err := ask(context.WithoutCancel(ctx), n)
				l.mu.Lock()
				l.asked++
				if err != nil {
					l.wrong = append(l.wrong, time.Now().Format(time.TimeOnly)+" "+err.Error())
				}
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { end(); l.ended.Wait() })
	return l
}

// none ends the load, and checks that every pod got the answer of Landwaiter.
func (l *load) none(t *testing.T) {
	t.Helper()
	l.end()
	l.ended.Wait()
	t.Logf("%d pods were asked about", l.asked)
	require.Greater(t, l.asked, 100)
	require.Empty(t, l.wrong)
}

// lasting notes Providers that are deleted, and returns what checks that there were none.
func (a *admin) lasting(t *testing.T) (none func()) {
	t.Helper()
	list, err := a.providers(t).List(suite.Within(t), metav1.ListOptions{})
	require.NoError(t, err)
	events, err := a.providers(t).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	t.Cleanup(events.Stop)
	done, deleted := make(chan struct{}), []string(nil)
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			object, _ := event.Object.(*unstructured.Unstructured)
			switch {
			case object == nil:
				deleted = append(deleted, fmt.Sprint("the watch failed: ", event.Object))
				return
			case object.GetAnnotations()[last] != "":
				return
			case event.Type == watch.Deleted:
				deleted = append(deleted, object.GetName())
			}
		}
	}()
	return func() {
		a.kubectl(t).Must(t, "annotate", "provider.externaldata.gatekeeper.sh", "landwaiter-verdict", last+"=true")
		<-done
		require.Empty(t, deleted)
	}
}

// given makes a Secret with a certificate of somebody else's CA, and returns the values that name it.
func (a *admin) given(t *testing.T, name string) []string {
	t.Helper()
	authority, err := fixture.NewAuthority(name)
	require.NoError(t, err)
	certificate, err := authority.IssueServer("127.0.0.1", "::1", "localhost")
	require.NoError(t, err)
	require.NoError(t,
		a.Client.Create(suite.Within(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: name}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"tls.crt": certificate.CertificatePEM, "tls.key": certificate.KeyPEM}}))
	t.Cleanup(func() {
		require.NoError(t, a.Client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: name}}))
	})
	values, err := json.Marshal(map[string]any{"tls": map[string]any{"rotate": false, "secretName": name, "caBundle": string(authority.CertificatePEM)}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "given.yaml")
	require.NoError(t, os.WriteFile(file, values, 0o600))
	return []string{"--values", file}
}

// certificates counts those that are issued from now on.
func (a *admin) certificates(t *testing.T) (issued func() int) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(a.Config)
	require.NoError(t, err)
	secrets, err := clients.CoreV1().Secrets(suite.System).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	seen := map[string]bool{}
	var mu sync.Mutex
	go func() {
		for event := range secrets.ResultChan() {
			if secret, ok := event.Object.(*corev1.Secret); ok && secret.Name == "landwaiter-tls" && event.Type != watch.Deleted {
				mu.Lock()
				seen[string(secret.Data["tls.crt"])] = true
				mu.Unlock()
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(seen)
	}
}
