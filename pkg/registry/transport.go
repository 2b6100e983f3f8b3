package registry

import (
	"fmt"
	"net/http"

	"github.com/landwaiter/landwaiter/pkg/egress"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// transportKey identifies a connection pool: by its trust, and by the addresses that it
// may reach.
type transportKey struct {
	ca    string
	reach egress.Reach
}

// transport returns the connection pool for a CA bundle. A private one also reaches
// private addresses.
func (c *Client) transport(pem []byte, private bool) (*http.Transport, error) {
	key := transportKey{ca: caKey(pem), reach: egress.Public}
	if private {
		key.reach = egress.Private
	}
	if transport, ok := c.transports.GetIfPresent(key); ok {
		return transport, nil
	}
	made, err := egress.NewTransport(egress.Pool{Guard: c.addresses, Reach: key.reach, Roots: pem,
		DialTimeout: c.options.DialTimeout, MaxIdlePerHost: c.options.PerHost, HTTP2: true})
	if err != nil {
		return nil, verify.Permanent(policy.ReasonBrokenResource, fmt.Errorf("connect to the registry: %w", err))
	}
	transport, _ := c.transports.SetIfAbsent(key, made)
	return transport, nil
}
