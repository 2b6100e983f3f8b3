//go:build e2e

package e2e

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
)

func TestTagIsPinnedToItsDigestWhenThePodIsMade(t *testing.T) {
	for name, ns := range map[string]string{"with the cluster's Stores": "pinned-cluster", "with the namespace's own Stores": "pinned-tenant"} {
		t.Run(name, func(t *testing.T) {
			makeNamespace(t, ns)
			admitted(t, ns, w.signed)
			made := pod(ns, "pinned", w.signed)
			made.Spec.InitContainers = []corev1.Container{{Name: "init", Image: w.signed}}
			require.NoError(t, w.Client.Create(within(t), made))
			for _, container := range append(made.Spec.Containers, made.Spec.InitContainers...) {
				require.Regexp(t, "^"+w.signed+"@sha256:[0-9a-f]{64}$", container.Image)
			}
			missing := w.Registry.Host() + "/nothing/here:v1"
			require.ErrorContains(t, create(t, ns, missing), missing, "what cannot be pinned is not admitted as it is")
		})
	}
}

func TestAuditFindsAPodThatWasThereBefore(t *testing.T) {
	ns := namespace(t)
	apply(t, own(ns, w.teamA))
	admitted(t, ns, w.byTeamA)
	require.NoError(t, w.Client.Create(within(t), pod(ns, "earlier", w.byTeamA)))
	apply(t, trustStore(ns, "keys", w.teamB))
	denied(t, ns, w.byTeamA)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		constraint := &unstructured.Unstructured{}
		constraint.SetAPIVersion("constraints.gatekeeper.sh/v1beta1")
		constraint.SetKind("VerifiedImages")
		if err := w.Client.Get(ctx, client.ObjectKey{Name: "verified-images"}, constraint); err != nil {
			return err
		}
		violations, _, err := unstructured.NestedSlice(constraint.Object, "status", "violations")
		for _, entry := range violations {
			violation, _ := entry.(map[string]any)
			if violation["namespace"] == ns && violation["name"] == "earlier" && strings.Contains(fmt.Sprint(violation["message"]), w.byTeamA) {
				return nil
			}
		}
		return errors.Join(fmt.Errorf("no violation of %s/earlier among %v", ns, violations), err)
	}))
}

// load creates pods, without making them stay, until it is stopped. Every one of
// them must be admitted.
type load struct {
	stop     context.CancelFunc
	done     chan struct{}
	requests atomic.Int64
	failure  atomic.Pointer[error]
}

func underLoad(t *testing.T, namespace, image string) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for ctx.Err() == nil {
			if err := try(ctx, namespace, image); err != nil && ctx.Err() == nil {
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
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if got := l.requests.Load(); got < target {
			return fmt.Errorf("%d of %d requests", got, target)
		}
		return nil
	}))
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
	ns := namespace(t)
	admitted(t, ns, w.signed)
	before := servedCertificate(t)
	l := underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	// Without tls.crt the rotation issues a new one from the same CA.
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: stack.Namespace, Name: "landwaiter-tls"}
	require.NoError(t, w.Client.Get(within(t), key, secret))
	delete(secret.Data, "tls.crt")
	require.NoError(t, w.Client.Update(within(t), secret))
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if served := servedCertificate(t); served.Equal(before) {
			return errors.New("the old certificate is still served")
		}
		return nil
	}))
	l.settleFor(t, 50)
	l.end(t)
}

// Who deletes the certificate's Secret gets another authority and another
// certificate, and no request that fails.
func TestProvidersAuthorityIsReplacedUnderLoad(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	before := servedCertificate(t)
	l := underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stack.Namespace, Name: "landwaiter-tls"}}
	require.NoError(t, w.Client.Delete(within(t), secret))
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		served := servedCertificate(t)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		block, _ := pem.Decode(secret.Data["ca.crt"])
		if block == nil {
			return errors.New("there is no new authority")
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if served.Equal(before) {
			return errors.New("the old certificate is still served")
		}
		return served.CheckSignatureFrom(authority)
	}))
	l.settleFor(t, 100)
	l.end(t)
}

// servedCertificate is what the provider shows to whoever connects.
func servedCertificate(t *testing.T) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(within(t), "tcp", fmt.Sprintf("127.0.0.1:%d", w.Port()))
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	secured, ok := connection.(*tls.Conn)
	require.True(t, ok)
	return secured.ConnectionState().PeerCertificates[0]
}

func TestGatekeepersCAIsRotatedUnderLoad(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	l := underLoad(t, ns, w.signed)
	l.settleFor(t, 20)
	require.NoError(t, w.RotateGatekeeperCA(within(t)))
	block, _ := pem.Decode(w.GatekeeperCA())
	authority, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { return w.GatekeeperServes(ctx, authority) }))
	l.settleFor(t, 200)
	l.end(t)
}

func TestKilledProviderDeniesAndARestartedOneAdmits(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	w.Current().Kill()
	err := create(t, ns, w.signed)
	require.NoError(t, deniedFor(err, w.signed))
	began := time.Now()
	_, err = w.StartReplica(within(t), w.Port())
	require.NoError(t, err)
	t.Logf("ready %s after its start", time.Since(began).Round(time.Millisecond))
	admitted(t, ns, w.signed)
	require.NoError(t, create(t, ns, w.signed))
}

func TestDeletedNamespaceLeavesNoMetricsAndInheritsNothing(t *testing.T) {
	name := fmt.Sprintf("e2e-gone-%d", w.names.Add(1))
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, w.Client.Create(within(t), object))
	apply(t, own(name, w.teamA))
	admitted(t, name, w.byTeamA)
	label := `namespace="` + name + `"`
	metrics, err := stack.Get(within(t), w.Current().MetricsURL+"/metrics")
	require.NoError(t, err)
	require.Contains(t, metrics, label)

	require.NoError(t, w.Client.Delete(within(t), object))
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		metrics, err := stack.Get(ctx, w.Current().MetricsURL+"/metrics")
		if err == nil && strings.Contains(metrics, label) {
			err = errors.New("its series are still there")
		}
		return err
	}))
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error { return w.Client.Create(ctx, again) }))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(context.Background(), again)) })
	denied(t, name, w.byTeamA, "ClusterVerificationPolicy signed")
}

func TestConstraintWhoseProviderIsMissingDenies(t *testing.T) {
	ns := namespace(t)
	admitted(t, ns, w.signed)
	constraint(t, "nobody", `match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [`+ns+`]}, parameters: {provider: nobody}`)
	require.NoError(t, cluster.Until(within(t), func(ctx context.Context) error {
		err := try(ctx, ns, w.signed)
		if err == nil || !strings.Contains(err.Error(), "[nobody]") {
			return fmt.Errorf("not denied: %w", err)
		}
		return nil
	}))
}
