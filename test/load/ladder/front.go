package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// endpointLag is how long a front still opens connections to a replica that has ended or is about
// to: kube-proxy learns from the API server, which learns from the kubelet.
const endpointLag = 500 * time.Millisecond

// errNoReplica is a Service without endpoints.
var errNoReplica = errors.New("no replica is ready")

// front balances connections over replicas in turn, as kube-proxy does for a Service. A
// connection stays with its replica.
type front struct {
	mu        sync.Mutex
	addresses []string
	next      int
}

func (f *front) add(p *server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses = append(f.addresses, strings.TrimPrefix(p.url, "https://"))
}

func (f *front) remove(p *server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses = slices.DeleteFunc(f.addresses, func(each string) bool { return each == strings.TrimPrefix(p.url, "https://") })
}

// removeLater removes a replica once the lag is over.
func (f *front) removeLater(p *server) { time.AfterFunc(endpointLag, func() { f.remove(p) }) }

func (f *front) pick() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.addresses) == 0 {
		return "", errNoReplica
	}
	f.next++
	return f.addresses[f.next%len(f.addresses)], nil
}

func (f *front) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	address, err := f.pick()
	if err != nil {
		return nil, err
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to a replica: %w", err)
	}
	return connection, nil
}

// behind returns a client of the replicas behind a front.
func (s *stage) behind(f *front) *gatekeeper.Client {
	client := s.caller("https://127.0.0.1", true)
	client.HTTP.Transport.(*http.Transport).DialContext = f.dial //nolint:forcetypeassert // gatekeeper.New made it
	return client
}
