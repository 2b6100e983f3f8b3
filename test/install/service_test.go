//go:build nightly

package install

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service stands in for kube-proxy: it passes connections on to the pods that the
// EndpointSlices of one Service call ready, and ends the others at once. The real
// controller writes the EndpointSlices.
type service struct {
	w               *coldCluster
	namespace, name string
	listener        net.Listener
	pods            atomic.Pointer[[]types.UID]
	next            atomic.Int64
}

// listen makes a Service answer at a port of 127.0.0.1; 0 takes any.
func (w *coldCluster) listen(ctx context.Context, namespace, name string, port int) (*service, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	s := &service{w: w, namespace: namespace, name: name, listener: listener}
	s.pods.Store(&[]types.UID{})
	go s.accept()
	go every(ctx, period, func() { s.refresh(ctx) })
	return s, nil
}

func (s *service) port() int {
	return s.listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
}

func (s *service) refresh(ctx context.Context) {
	var slices discoveryv1.EndpointSliceList
	err := s.w.Client.List(ctx, &slices, client.InNamespace(s.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.name})
	if err != nil {
		return // the API server is away; a proxy goes on with what it knows
	}
	pods := []types.UID{}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready && endpoint.TargetRef != nil {
				pods = append(pods, endpoint.TargetRef.UID)
			}
		}
	}
	s.pods.Store(&pods)
}

func (s *service) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return // it was closed
		}
		go s.pass(connection)
	}
}

func (s *service) pass(front net.Conn) {
	defer func() { _ = front.Close() }()
	pods := *s.pods.Load()
	if len(pods) == 0 {
		return
	}
	port, ok := s.w.node.port(pods[int(s.next.Add(1))%len(pods)])
	if !ok {
		return
	}
	back, err := (&net.Dialer{}).Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer func() { _ = back.Close() }()
	var once sync.WaitGroup
	once.Go(func() {
		_, _ = io.Copy(back, front)
		_ = back.Close()
	})
	_, _ = io.Copy(front, back)
	_ = front.Close()
	once.Wait()
}
