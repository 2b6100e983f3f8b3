package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/time/rate"
)

// pace is how fast an account may ask registries, and read what they answer: reading,
// hashing and scanning take processor time too.
type pace struct {
	requests, bytes *rate.Limiter
}

// pace returns the pace of an account.
func (c *Client) pace(access Access) *pace {
	perSecond := cmp.Or(max(access.PerSecond, 0), c.options.PerSecond)
	p, ok := c.paces.GetIfPresent(access.account())
	if !ok {
		bytes := c.options.BytesPerSecond
		p, _ = c.paces.SetIfAbsent(access.account(), &pace{requests: rate.NewLimiter(rate.Limit(perSecond), 2*perSecond),
			bytes: rate.NewLimiter(rate.Limit(bytes), bytes)})
	}
	if p.requests.Burst() != 2*perSecond { // the limit has changed
		p.requests.SetLimit(rate.Limit(perSecond))
		p.requests.SetBurst(2 * perSecond)
	}
	return p
}

// errPace is transient: the account reads more than its share for the moment.
var errPace = errors.New("overloaded: too many bytes are being read")

// pacedBody waits for the account before what was read is used.
type pacedBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // of the request whose answer this is
	bytes *rate.Limiter
}

// Read implements [io.Reader].
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.bytes.Burst())])
	if n > 0 {
		if late := b.bytes.WaitN(b.ctx, n); late != nil {
			return 0, fmt.Errorf("%w: %w", errPace, late)
		}
	}
	return n, err
}
