//go:build nightly

package install

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// probe asks again and again, by dry run, until it is ended: pods that must not be
// admitted at any moment, and what must be admitted at every moment.
type probe struct {
	w       *coldCluster
	client  client.Client
	stop    context.CancelFunc
	done    chan struct{}
	failure atomic.Pointer[error]
	// unsigned counts unsigned pods that were refused, vital what was admitted.
	unsigned, vital atomic.Int64
}

// watch begins to probe. vital is what must be admitted at every moment.
func (w *coldCluster) watch(t *testing.T, vital func() []client.Object) *probe {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	own, err := w.NewClient(rest.CopyConfig(w.Config)) // with a rate of its own
	require.NoError(t, err)
	p := &probe{w: w, client: own, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		every(ctx, 4*period, func() {
			p.keep(p.refuses(ctx))
			for _, object := range vital() {
				p.keep(p.admits(ctx, object))
			}
		})
	}()
	return p
}

func (p *probe) keep(err error) {
	if err != nil {
		p.failure.CompareAndSwap(nil, &err)
	}
}

// refuses returns an error if an unsigned pod is admitted, or a signed one as a tag.
func (p *probe) refuses(ctx context.Context) error {
	if err := p.client.Create(ctx, suite.Pod(team, "unsigned", p.w.unsigned), client.DryRunAll); err == nil {
		return fmt.Errorf("a pod with the unsigned image was admitted")
	}
	p.unsigned.Add(1)
	signed := suite.Pod(team, "signed", p.w.signed)
	if err := p.client.Create(ctx, signed, client.DryRunAll); err == nil && !strings.Contains(signed.Spec.Containers[0].Image, "@sha256:") {
		return fmt.Errorf("a pod was admitted with the tag %s, which was not pinned", signed.Spec.Containers[0].Image)
	}
	return nil
}

// admits returns an error if a webhook denies what must always be admitted.
func (p *probe) admits(ctx context.Context, object client.Object) error {
	err := p.client.Create(ctx, object, client.DryRunAll)
	if err != nil && strings.Contains(err.Error(), "webhook") {
		return fmt.Errorf("%T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	if err == nil {
		p.vital.Add(1)
	}
	return nil // the API server is away
}

// end stops it, and fails the test if anything was ever as it must not be.
func (p *probe) end(t *testing.T) {
	t.Helper()
	p.stop()
	<-p.done
	if failure := p.failure.Load(); failure != nil {
		t.Errorf("while parts were down: %v", *failure)
	}
	require.Positive(t, p.unsigned.Load(), "nothing was probed")
	t.Logf("unsigned images refused: %d times; what parts need to start admitted: %d times", p.unsigned.Load(), p.vital.Load())
}

// vital lists what nodes, the control plane, Gatekeeper and Landwaiter write while they
// start.
func (w *coldCluster) vital() []client.Object {
	var objects []client.Object
	for _, ns := range []string{"kube-system", "kube-node-lease", suite.System, cluster.GatekeeperNamespace} {
		meta := metav1.ObjectMeta{Namespace: ns, Name: "cold-start-probe"}
		objects = append(objects, suite.Restricted(suite.Pod(ns, meta.Name, "registry.example.com/unsigned:v1")),
			&coordinationv1.Lease{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta},
			&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4})
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another-node"}}
	return append(objects, node,
		// The addresses of the API server itself.
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cold-start-probe"}, AddressType: discoveryv1.AddressTypeIPv4},
		&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "another-node"}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: w.request, SignerName: "kubernetes.io/kube-apiserver-client-kubelet", Usages: []certificatesv1.KeyUsage{"client auth"}}})
}
