//go:build e2e

package admission

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// gatekeepers are two processes of Gatekeeper with its default cache behind one address, as two pods
// behind its Service. Each gets its certificate when [cluster.Gatekeeper.Mount] is called.
type gatekeepers struct {
	*world
	front *service
	all   [2]*cluster.Gatekeeper
}

func severalGatekeepers(t *testing.T) *gatekeepers {
	t.Helper()
	s, err := suite.ForTest(t).Stack(suite.Within(t), cluster.Options{CacheTTL: 3 * time.Minute}, nil)
	require.NoError(t, err)
	w := &gatekeepers{world: &world{Stack: s}, front: newService(t)}
	w.Kill("gatekeeper")
	address, ok := w.front.Addr().(*net.TCPAddr)
	require.True(t, ok)
	require.NoError(t, w.UseWebhooks(suite.Within(t), nil, address.Port))
	pod := &corev1.Pod{}
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Namespace: cluster.GatekeeperNamespace, Name: "gatekeeper-0"}, pod))
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "gatekeeper-1"}, Spec: pod.Spec}
	for i := range w.all {
		w.all[i], err = w.LaunchGatekeeper(fmt.Sprintf("gatekeeper-%d", i))
		require.NoError(t, err)
		require.NoError(t, w.all[i].Await(suite.Within(t), w.all[i].Ready))
		w.through(t, i)
		if i == 0 {
			require.NoError(t, w.Client.Create(suite.Within(t), second))
		}
	}
	w.through(t, 0)
	require.NoError(t, w.resources(suite.Within(t)))
	// A denial from before the rules are in force would be repeated for three minutes.
	suite.Eventually(t, func(ctx context.Context) error {
		rules := &v1beta1.ClusterVerificationPolicy{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: "signed"}, rules); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(rules.CommonStatus().Conditions, v1beta1.ConditionReady) {
			return errors.New("the rules are not in force")
		}
		return nil
	})
	require.NoError(t, w.inForce(suite.Within(t)))
	return w
}

// through makes the API server ask one of them. It may use the connection that has ended once more.
func (w *gatekeepers) through(t *testing.T, i int) {
	t.Helper()
	w.front.lead(w.all[i].Port)
	suite.Eventually(t, func(ctx context.Context) error {
		return w.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "asked-of-both-webhooks"}}, client.DryRunAll)
	})
}

// The default of Gatekeeper repeats an answer for three minutes, each pod its own: what docs/howto/hardening.md says of it.
func TestEachGatekeeperRepeatsItsOwnAnswers(t *testing.T) {
	w := severalGatekeepers(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	w.denied(t, ns, w.unsigned, "no signature was found")

	t.Run("an image that is signed after a denial", func(t *testing.T) {
		image, err := w.Registry.PushImage(suite.Within(t), "later/app", "v1")
		require.NoError(t, err)
		name := w.Registry.Host() + "/later/app:v1"
		w.denied(t, ns, name, "no signature was found")
		_, err = w.Registry.SignCosign(suite.Within(t), image, w.platform, fixture.CosignOptions{})
		require.NoError(t, err)
		w.through(t, 1)
		w.freshly(t, name, func(ctx context.Context, image string) error { return w.try(ctx, ns, image) }) // Landwaiter's own denial lasts ten seconds
		w.through(t, 0)
		require.NoError(t, deniedFor(w.try(suite.Within(t), ns, name), "no signature was found"), "it repeats its answer")
		w.through(t, 1)
		require.NoError(t, w.try(suite.Within(t), ns, name), "it repeats its answer")
		require.NoError(t, w.try(suite.Within(t), ns, strings.TrimSuffix(name, ":v1")+":v1@"+image.Descriptor.Digest.String()))
		w.through(t, 0)
		require.NoError(t, w.try(suite.Within(t), ns, strings.TrimSuffix(name, ":v1")+":v1@"+image.Descriptor.Digest.String()), "another spelling has no answer yet")
	})

	t.Run("an image that a policy denies from now on", func(t *testing.T) {
		w.apply(t, policy(ns, "nothing", `{rules: [{images: ["**"], action: Deny}]}`))
		w.through(t, 1)
		w.freshly(t, w.signed, func(ctx context.Context, image string) error {
			return deniedFor(w.try(ctx, ns, image), "VerificationPolicy "+ns+"/nothing")
		})
		w.through(t, 0)
		require.NoError(t, w.try(suite.Within(t), ns, w.signed), "it repeats its answer")
		other := w.namespace(t)
		w.apply(t, policy(other, "nothing", `{rules: [{images: ["**"], action: Deny}]}`))
		w.freshly(t, w.signed, func(ctx context.Context, image string) error {
			return deniedFor(w.try(ctx, other, image), "VerificationPolicy "+other+"/nothing")
		})
		require.NoError(t, w.try(suite.Within(t), ns, w.signed), "answers are of a namespace")
	})

	t.Run("an outage", func(t *testing.T) {
		w.Current().Kill()
		require.NoError(t, w.try(suite.Within(t), ns, w.signed), "it repeats its answer")
		require.NoError(t, deniedFor(w.try(suite.Within(t), ns, w.Registry.Host()+"/new/app:v1"), "undecided: "))
		_, err := w.StartReplica(suite.Within(t), w.Port())
		require.NoError(t, err)
		suite.Eventually(t, func(ctx context.Context) error {
			return deniedFor(w.try(ctx, ns, w.Registry.Host()+"/new/app:v1"), "VerificationPolicy "+ns+"/nothing") // an outage is not repeated
		})
	})
}

// freshly waits until something holds of an image, each time under another spelling, which no
// Gatekeeper has an answer for, and then of the image itself: an answer from before a change would
// be repeated.
func (w *gatekeepers) freshly(t *testing.T, name string, holds func(ctx context.Context, image string) error) {
	t.Helper()
	digest := w.digestOf(t, name)
	i := 0
	suite.Eventually(t, func(ctx context.Context) error {
		i++
		return holds(ctx, fmt.Sprintf("%s-%d@%s", name, i, digest))
	})
	require.NoError(t, holds(suite.Within(t), name))
}

// Pods get a renewed certificate one after the other, up to minutes apart. It is what they show to Landwaiter, too.
func TestSeveralGatekeepersRotateTheirCertificatesAndLandwaiterItsOwn(t *testing.T) {
	w := severalGatekeepers(t)
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)
	name, digest := strings.TrimSuffix(w.signed, ":v1"), w.digestOf(t, w.signed)
	spellings := 0
	load := func(t *testing.T, i int, change func()) {
		t.Helper()
		w.through(t, i)
		spellings++
		l := w.underLoadOf(t, ns, func(n int64) string { return fmt.Sprintf("%s:v%d-%d@%s", name, spellings, n, digest) })
		l.settleFor(t, 20)
		change()
		l.settleFor(t, 100)
		l.end(t)
	}
	authority := func() *x509.Certificate {
		block, _ := pem.Decode(w.GatekeeperCA())
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		return certificate
	}
	mount := func(i int) func() {
		return func() {
			require.NoError(t, w.all[i].Mount())
			suite.Eventually(t, func(ctx context.Context) error { return w.all[i].Serves(ctx, authority()) })
		}
	}
	for round := range 2 {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			old := authority()
			load(t, 1, func() { require.NoError(t, w.RotateGatekeeperCA(suite.Within(t))) })
			require.False(t, authority().Equal(old))
			load(t, 0, mount(0))
			require.NoError(t, w.all[1].Serves(suite.Within(t), old))
			load(t, 1, func() {}) // it shows the certificate of the old CA
			load(t, 0, func() { w.replaceAuthority(t) })
			load(t, 1, mount(1))
			load(t, 0, func() {})
		})
	}
	require.NoError(t, w.try(suite.Within(t), ns, w.signed))
	w.denied(t, ns, w.unsigned, "no signature was found")
}

// replaceAuthority makes Landwaiter make another CA and certificate.
func (w *gatekeepers) replaceAuthority(t *testing.T) {
	t.Helper()
	before := w.servedCertificate(t)
	require.NoError(t, w.Client.Delete(suite.Within(t), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: suite.System, Name: "landwaiter-tls"}}))
	suite.Eventually(t, func(context.Context) error {
		if w.servedCertificate(t).Equal(before) {
			return errors.New("the old certificate is still served")
		}
		return nil
	})
}
