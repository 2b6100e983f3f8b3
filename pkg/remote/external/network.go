package external

import (
	"context"
	"net"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// network makes the clients of one process. The zero value is the real network.
type network struct {
	tokens    Tokens
	endpoints egress.Endpoints
	// dial and roots replace connections and certificates, for tests.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots []byte
	// proxy is that of the environment, nil for none.
	proxy *egress.Environment
}

// of returns the network for a source. Only hosts that a cluster admin, or we, name are
// reached through the proxy: it resolves names where no guard sees it.
func (n network) of(source Source) network {
	if source.Owner != verify.Cluster {
		n.proxy = nil
	}
	return n
}

// to returns a client for hosts that an admin or a cloud's own domain names. They may
// have private addresses, as a cluster's Vault and a cloud's private endpoints have.
// The caller closes it, which ends what a library left behind.
func (n network) to(ctx context.Context, authority string, hosts ...string) (*egress.Client, error) {
	return n.client(ctx, egress.Options{Hosts: hosts, Reach: egress.Private, Roots: []byte(authority)})
}

func (n network) client(ctx context.Context, options egress.Options) (*egress.Client, error) {
	options.MaxBytes, options.Timeout, options.Dial, options.Endpoints, options.Proxy = maxReply, fetchTimeout, n.dial, n.endpoints, n.proxy
	if len(options.Roots) == 0 {
		options.Roots = n.roots
	}
	client, err := egress.New(ctx, options)
	if err != nil {
		return nil, problem(err.Error()) // of a host list or a bundle that we were given
	}
	return client, nil
}
