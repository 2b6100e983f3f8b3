//go:build e2e

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestTagIsPinnedToItsDigestWhenThePodIsMade(t *testing.T) {
	w := installed(t)
	for name, ns := range map[string]string{"with the cluster's Stores": "pinned-cluster", "with the namespace's own Stores": "pinned-tenant"} {
		t.Run(name, func(t *testing.T) {
			w.makeNamespace(t, ns)
			w.admitted(t, ns, w.signed)
			made := suite.Pod(ns, "pinned", w.signed)
			made.Spec.InitContainers = []corev1.Container{{Name: "init", Image: w.signed}}
			require.NoError(t, w.Client.Create(suite.Within(t), made))
			for _, container := range append(made.Spec.Containers, made.Spec.InitContainers...) {
				require.Regexp(t, "^"+w.signed+"@sha256:[0-9a-f]{64}$", container.Image)
			}
			missing := w.Registry.Host() + "/nothing/here:v1"
			require.ErrorContains(t, w.create(t, ns, missing), missing, "what cannot be pinned is not admitted as it is")
		})
	}
}

// load creates pods, without making them stay, until it is stopped. Every one of
// them must be admitted.
type load struct {
	stop     context.CancelFunc
	done     chan struct{}
	requests atomic.Int64
	failure  atomic.Pointer[error]
}

func (w *world) underLoad(t *testing.T, namespace, image string) *load {
	t.Helper()
	return w.underLoadOf(t, namespace, func(int64) string { return image })
}

// underLoadOf does the same with an image for each request.
func (w *world) underLoadOf(t *testing.T, namespace string, image func(int64) string) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for ctx.Err() == nil {
			if err := w.try(ctx, namespace, image(l.requests.Load())); err != nil && ctx.Err() == nil {
				l.failure.CompareAndSwap(nil, &err)
			}
			l.requests.Add(1)
		}
	}()
	return l
}

// settleFor waits until n more requests have been answered.
func (l *load) settleFor(t *testing.T, n int64) {
	t.Helper()
	target := l.requests.Load() + n
	suite.Eventually(t, func(context.Context) error {
		if got := l.requests.Load(); got < target {
			return fmt.Errorf("%d of %d requests", got, target)
		}
		return nil
	})
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	<-l.done
	if failure := l.failure.Load(); failure != nil {
		t.Fatalf("a request failed during the change: %v", *failure)
	}
	t.Logf("%d requests, none failed", l.requests.Load())
}

func TestProviderCertificateIsRotatedUnderLoad(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	before := w.servedCertificate(t)
	l := w.underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	// Without tls.crt the rotation issues a new one from the same CA.
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: suite.System, Name: "landwaiter-tls"}
	require.NoError(t, w.Client.Get(suite.Within(t), key, secret))
	delete(secret.Data, "tls.crt")
	require.NoError(t, w.Client.Update(suite.Within(t), secret))
	suite.Eventually(t, func(context.Context) error {
		if served := w.servedCertificate(t); served.Equal(before) {
			return errors.New("the old certificate is still served")
		}
		return nil
	})
	l.settleFor(t, 50)
	l.end(t)
}

// Who deletes the certificate's Secret gets another CA and another
// certificate, and no request that fails.
func TestProvidersAuthorityIsReplacedUnderLoad(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	before := w.servedCertificate(t)
	l := w.underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter-tls"}}
	require.NoError(t, w.Client.Delete(suite.Within(t), secret))
	suite.Eventually(t, func(ctx context.Context) error {
		served := w.servedCertificate(t)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data["ca.crt"])
		if block == nil {
			return errors.New("there is no new CA")
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if served.Equal(before) {
			return errors.New("the old certificate is still served")
		}
		return served.CheckSignatureFrom(authority)
	})
	l.settleFor(t, 100)
	l.end(t)
}

// servedCertificate is what the provider shows to whoever connects.
func (w *world) servedCertificate(t *testing.T) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(suite.Within(t), "tcp", fmt.Sprintf("127.0.0.1:%d", w.Port()))
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	secured, ok := connection.(*tls.Conn)
	require.True(t, ok)
	return secured.ConnectionState().PeerCertificates[0]
}

func TestGatekeepersCAIsRotatedUnderLoad(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	l := w.underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	require.NoError(t, w.RotateGatekeeperCA(suite.Within(t)))
	block, _ := pem.Decode(w.GatekeeperCA())
	authority, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error { return w.GatekeeperServes(ctx, authority) })
	l.settleFor(t, 200)
	l.end(t)
}

// restart replaces the replica as a rolling update does: it gives back the lease, for which
// one that replaces a killed one waits before it writes statuses.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.Current().Terminate(suite.Patience)
	_, err := w.StartReplica(suite.Within(t), w.Port())
	require.NoError(t, err)
}

func TestKilledProviderDeniesAndARestartedOneAdmits(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.Current().Kill()
	err := w.create(t, ns, w.signed)
	require.NoError(t, deniedFor(err, w.signed))
	began := time.Now()
	_, err = w.StartReplica(suite.Within(t), w.Port())
	require.NoError(t, err)
	t.Logf("ready %s after its start", time.Since(began).Round(time.Millisecond))
	w.admitted(t, ns, w.signed)
	require.NoError(t, w.create(t, ns, w.signed))
}

func TestDeletedNamespaceLeavesNoMetricsAndInheritsNothing(t *testing.T) {
	w := installed(t)
	name := fmt.Sprintf("e2e-gone-%d", w.names.Add(1))
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, w.Client.Create(suite.Within(t), object))
	w.apply(t, own(name, w.teamA))
	w.admitted(t, name, w.byTeamA)
	label := `namespace="` + name + `"`
	metrics, err := stack.Get(suite.Within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, label)

	require.NoError(t, w.Client.Delete(suite.Within(t), object))
	suite.Eventually(t, func(ctx context.Context) error {
		metrics, err := stack.Get(ctx, w.Current().MetricsURL+"/metrics")
		if err == nil && strings.Contains(metrics, label) {
			err = errors.New("its series are still there")
		}
		return err
	})
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	suite.Eventually(t, func(ctx context.Context) error { return w.Client.Create(ctx, again) })
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), again)) })
	w.denied(t, name, w.byTeamA, "ClusterVerificationPolicy signed")
}

func TestConstraintWhoseProviderIsMissingDenies(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.constraint(t, "nobody", `match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [`+ns+`]}, parameters: {provider: nobody}`)
	suite.Eventually(t, func(ctx context.Context) error { return deniedBy(w.try(ctx, ns, w.signed), "nobody") })
}
