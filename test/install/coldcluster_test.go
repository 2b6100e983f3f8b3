//go:build nightly

package install

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const (
	nodeName = "node"
	// team is a namespace in which images must be signed.
	team = "team-a"
)

// coldCluster can lose its power: Landwaiter, Gatekeeper, Redis and the control plane end
// at once, and come back in any order. Controllers, API server and all programs are real;
// only scheduler, kubelet and kube-proxy are stood in for. Gatekeeper's webhooks are those
// of its own chart.
type coldCluster struct {
	*stack.Stack
	node             *node
	signed, unsigned string   // images
	request          []byte   // of a node for its certificate
	front            *service // Gatekeeper's
	webhooks         []*unstructured.Unstructured
}

// powered starts a stack and hands its parts over to the stand-ins.
var powered = suite.Once(parts, func(starting context.Context, e *suite.Env) (*coldCluster, error) {
	s, err := e.Stack(starting, cluster.Options{Workloads: true,
		// As in a cluster, but a dead holder of its lease is replaced after 4 s instead of 15.
		ManagerArgs: []string{"--controllers=endpointslice-controller", "--leader-elect=true", "--leader-elect-lease-duration=4s",
			"--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms"},
	}, map[string]any{
		"redis":    map[string]any{"install": true, "existingSecret": map[string]any{"name": "landwaiter-redis"}},
		"mutation": map[string]any{"enabled": true},
	})
	if err != nil {
		return nil, err
	}
	w := &coldCluster{Stack: s}
	w.node = &node{w: w, returned: map[string]bool{}, running: map[types.UID]*podProcess{}}
	if err := w.furnish(starting); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.OnStop(func() {
		cancel()
		w.node.working.Wait()
		w.node.kill()
	})
	return w, w.handOver(ctx, starting)
})

// furnish makes images, what must be signed, and the objects of a cluster with nodes.
func (w *coldCluster) furnish(ctx context.Context) error {
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	if err != nil {
		return err
	}
	for name, keys := range map[string][]*fixture.CosignKey{"signed": {key}, "unsigned": nil} {
		image, err := w.Registry.PushImage(ctx, name, "v1")
		for _, key := range keys {
			if err == nil {
				_, err = w.Registry.SignCosign(ctx, image, key, fixture.CosignOptions{})
			}
		}
		if err != nil {
			return err
		}
	}
	w.signed, w.unsigned = w.Registry.Host()+"/signed:v1", w.Registry.Host()+"/unsigned:v1"
	if w.request, err = certificateRequest(); err != nil {
		return err
	}
	return w.Apply(ctx, suite.Namespace(team), suite.Object("{apiVersion: v1, kind: Node, metadata: {name: %s}}", nodeName),
		suite.Resource("ClusterTrustStore", "", "keys", fmt.Sprintf("{type: PublicKeys, source: {inline: %q}}", key.PEM)),
		suite.Resource("ClusterVerifier", "", "signature", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}"),
		suite.Resource("ClusterVerificationPolicy", "", "signed", `{rules: [{images: ["**"], require: [{anyOf: [signature]}]}]}`))
}

// certificateRequest is what a new node asks for.
func certificateRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:another-node", Organization: []string{"system:nodes"}}}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// handOver ends what the stack started, so that pods are all that runs anything, and puts
// Services in front.
func (w *coldCluster) handOver(ctx, starting context.Context) error {
	deployment, err := w.Deployment("gatekeeper-controller-manager")
	if err != nil {
		return err
	}
	if err := w.Apply(starting, deployment); err != nil {
		return err
	}
	w.Current().Kill()
	w.Kill("gatekeeper")
	w.Redis.Kill()
	if _, err := w.listen(ctx, suite.System, "landwaiter", w.Port()); err != nil {
		return err
	}
	if _, err := w.listen(ctx, suite.System, "landwaiter-redis", w.Redis.Port()); err != nil {
		return err
	}
	w.front, err = w.listen(ctx, cluster.GatekeeperNamespace, "gatekeeper-webhook-service", 0)
	if err != nil {
		return err
	}
	if w.webhooks, err = gatekeeperWebhooks(starting, "--values", root+"/config/gatekeeper/values.yaml"); err != nil {
		return err
	}
	if err := w.UseWebhooks(starting, w.webhooks, w.front.port()); err != nil {
		return err
	}
	w.node.manager = true
	w.node.working.Go(func() { w.node.run(ctx) })
	for _, part := range []string{landwaiterPods, gatekeeperPods, redisPods} {
		w.node.giveBack(part)
	}
	return cluster.Until(starting, w.works)
}

// gatekeeperWebhooks renders the webhook configurations of Gatekeeper's chart.
func gatekeeperWebhooks(ctx context.Context, args ...string) (webhooks []*unstructured.Unstructured, err error) {
	folder, err := suite.GatekeeperChart(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := suite.Render(ctx, folder, append([]string{"--namespace", cluster.GatekeeperNamespace}, args...)...)
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			webhooks = append(webhooks, object)
		}
	}
	if len(webhooks) != 2 {
		return nil, errors.Join(fmt.Errorf("Gatekeeper's chart has %d webhook configurations", len(webhooks)), err)
	}
	return webhooks, err
}

// works returns nil if a signed image is admitted, pinned, and an unsigned one is denied
// by the constraint.
func (w *coldCluster) works(ctx context.Context) error {
	err := w.try(ctx, w.unsigned)
	if err == nil {
		return errors.New("the unsigned image is admitted")
	}
	if !strings.Contains(err.Error(), "[verified-images]") || !strings.Contains(err.Error(), "no signature was found") {
		return fmt.Errorf("the unsigned image is not denied by the constraint: %w", err)
	}
	return w.try(ctx, w.signed)
}

// try asks whether a pod with an image could be made.
func (w *coldCluster) try(ctx context.Context, image string) error {
	return w.Client.Create(ctx, suite.Pod(team, "probe", image), client.DryRunAll)
}

// await waits until is returns nil, and logs how long that took.
func await(t *testing.T, what string, is func(context.Context) error) {
	t.Helper()
	began := time.Now()
	var last error // the one before the deadline says more
	err := cluster.Until(suite.Within(t), func(ctx context.Context) error {
		err := is(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err
	})
	require.NoError(t, err, "%s: %v", what, last)
	t.Logf("%s after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// lease returns the content of a Lease.
func (w *coldCluster) lease(ctx context.Context, namespace, name string) (coordinationv1.LeaseSpec, error) {
	var found coordinationv1.Lease
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
	return found.Spec, err
}

// recreated returns nil if the controllers have made the pods of a part again.
func (w *coldCluster) recreated(part string, want int) func(context.Context) error {
	return func(ctx context.Context) error {
		found := 0
		for _, ns := range []string{suite.System, cluster.GatekeeperNamespace} {
			var pods corev1.PodList
			if err := w.Client.List(ctx, &pods, client.InNamespace(ns)); err != nil {
				return err
			}
			for i := range pods.Items {
				if partOf(&pods.Items[i]) == part {
					found++
				}
			}
		}
		if found != want {
			return fmt.Errorf("%d of %d pods of %s are there", found, want, part)
		}
		return nil
	}
}
