//go:build nightly

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// pods is how many there are of each part.
var pods = map[string]int{landwaiterPods: 2, gatekeeperPods: 1, redisPods: 1}

// cut ends everything at once. What comes back finds etcd's data and leases of dead
// holders; the machines of the pods are replaced, so that all pods are made again.
func (w *coldCluster) cut(t *testing.T) {
	t.Helper()
	w.node.kill()
	w.node.killControlPlane()
	require.NoError(t, w.node.controlPlane(suite.Within(t), "etcd", "kube-apiserver"))
	for _, ns := range []string{suite.System, cluster.GatekeeperNamespace} {
		require.NoError(t, w.Client.DeleteAllOf(suite.Within(t), &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0)))
	}
}

// loseCertificate deletes the Secret with Landwaiter's CA and certificate.
func (w *coldCluster) loseCertificate(t *testing.T) {
	t.Helper()
	require.NoError(t, w.Client.Delete(suite.Within(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter-tls"}}))
}

func TestClusterComesUpByItselfInEveryOrder(t *testing.T) {
	w := powered(t)
	for _, c := range []struct {
		order []string
		// controlPlane cuts the control plane again once the first part is back.
		controlPlane bool
		// lost runs while everything is down.
		lost func(t *testing.T)
	}{
		{order: []string{gatekeeperPods, landwaiterPods, redisPods}},
		{order: []string{landwaiterPods, gatekeeperPods, redisPods}, lost: w.loseCertificate},
		{order: []string{redisPods, landwaiterPods, gatekeeperPods}, controlPlane: true},
		{order: []string{redisPods, gatekeeperPods, landwaiterPods}, lost: func(t *testing.T) {
			t.Helper()
			require.NoError(t, w.ReplaceGatekeeperCA(suite.Within(t)))
		}},
		{order: []string{gatekeeperPods, redisPods, landwaiterPods}, controlPlane: true},
		{order: []string{landwaiterPods, redisPods, gatekeeperPods}, lost: func(t *testing.T) {
			t.Helper()
			w.loseCertificate(t)
			require.NoError(t, w.ReplaceGatekeeperCA(suite.Within(t)))
		}},
	} {
		t.Run(strings.Join(c.order, " then "), func(t *testing.T) {
			w.cut(t)
			probing := w.watch(t, w.vital)
			defer probing.end(t)
			if c.lost != nil {
				c.lost(t)
			}
			require.NoError(t, w.node.controlPlane(suite.Within(t), manager))
			for part, want := range pods {
				await(t, "pods of "+part+" made", w.recreated(part, want))
			}
			for i, part := range c.order {
				w.node.giveBack(part)
				// A new CA goes into Provider objects, which Gatekeeper's webhooks are asked about: without Gatekeeper, nobody
				// would trust a replica that called itself ready.
				if part == landwaiterPods && c.lost != nil && slices.Contains(c.order[i:], gatekeeperPods) {
					continue
				}
				await(t, part+" ready", func(context.Context) error { return w.node.isReady(part, pods[part]) })
				if i == 0 && c.controlPlane {
					w.node.killControlPlane()
					require.NoError(t, w.node.controlPlane(suite.Within(t), "etcd", "kube-apiserver", manager))
				}
			}
			await(t, landwaiterPods+" ready", func(context.Context) error { return w.node.isReady(landwaiterPods, pods[landwaiterPods]) })
			await(t, "signed admitted and unsigned denied", w.works)
			w.leaders(t)
		})
	}
}

// leaders waits until the leases that dead processes held have new holders, and logs how
// long that took.
func (w *coldCluster) leaders(t *testing.T) {
	t.Helper()
	await(t, "Landwaiter's lease renewed", func(ctx context.Context) error {
		lease, err := w.lease(ctx, suite.System, "landwaiter")
		if err != nil {
			return err
		}
		if lease.RenewTime == nil || lease.LeaseDurationSeconds == nil {
			return errors.New("nobody holds it")
		}
		if age := time.Since(lease.RenewTime.Time); age > time.Duration(*lease.LeaseDurationSeconds)*time.Second {
			return fmt.Errorf("its holder died %s ago", age)
		}
		return nil
	})
}
