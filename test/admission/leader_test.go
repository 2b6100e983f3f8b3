//go:build e2e

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/stack"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// service is an address that leads to the replica that is chosen, as a Service does.
type service struct {
	net.Listener
	port atomic.Int64

	mu   sync.Mutex
	open []net.Conn
}

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &service{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() }) // it serves until then
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open = append(s.open, from)
			s.mu.Unlock()
			go s.forward(from)
		}
	}()
	return s
}

// lead makes all connections lead to another replica. Nobody may be asking.
func (s *service) lead(port int) {
	s.port.Store(int64(port))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, connection := range s.open {
		_ = connection.Close() // it may have ended
	}
	s.open = nil
}

func (s *service) forward(from net.Conn) {
	to, err := (&net.Dialer{}).Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port.Load()))
	if err != nil {
		_ = from.Close() // it has said nothing yet
		return
	}
	half := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // whichever side ends, both do
		_, _ = to.Close(), from.Close()
	}
	go half(to, from)
	half(from, to)
}

// The leader that makes a new CA ends before its Providers have been read again, or before it has done anything: the
// next one knows which CA other replicas still serve.
func TestTheProvidersAuthorityIsReplacedWhileTheLeaderChanges(t *testing.T) {
	address := newService(t)
	s, err := suite.ForTest(t).Stack(suite.Within(t), cluster.Options{}, map[string]any{
		"provider": map[string]any{"url": "https://localhost:" + fmt.Sprint(address.Addr().(*net.TCPAddr).Port)}})
	require.NoError(t, err)
	w := &world{Stack: s}
	address.lead(w.Port())
	require.NoError(t, w.prepare(suite.Within(t)))
	ns := w.namespace(t)
	w.admitted(t, ns, w.signed)

	key := client.ObjectKey{Namespace: suite.System, Name: "landwaiter-tls"}
	for _, c := range []struct {
		name string
		made bool // the CA, by the leader that ends
		end  func(*stack.Replica)
	}{
		{"the leader has made the new CA", true, func(r *stack.Replica) { r.Terminate(suite.Patience) }},
		{"the leader ends at once", false, func(r *stack.Replica) { r.Terminate(suite.Patience) }},
		{"the leader is killed", true, (*stack.Replica).Kill},
	} {
		t.Run(c.name, func(t *testing.T) {
			leader := w.Current()
			ports, err := cluster.FreePorts(1)
			require.NoError(t, err)
			_, err = w.StartReplica(suite.Within(t), ports[0])
			require.NoError(t, err)
			address.lead(ports[0])

			secret := &corev1.Secret{}
			require.NoError(t, w.Client.Get(suite.Within(t), key, secret))
			before := secret.Data["ca.crt"]
			l := w.underLoad(t, ns, w.signed)
			l.settleFor(t, 20)
			require.NoError(t, w.Client.Delete(suite.Within(t), secret))
			renewed := func(ctx context.Context) error {
				if err := w.Client.Get(ctx, key, secret); err != nil {
					return err
				}
				if string(secret.Data["ca.crt"]) == string(before) {
					return errors.New("the CA is the old one")
				}
				return nil
			}
			if c.made {
				suite.Eventually(t, renewed)
			}
			c.end(leader)
			suite.Eventually(t, renewed)
			l.settleFor(t, 100)
			l.end(t)
		})
	}
}
