package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/time/rate"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/intake"
)

// pace is the rate at which an account may send requests to registries and read their
// answers: reading, hashing and scanning take processor time too.
type pace struct {
	requests, bytes *rate.Limiter
}

// pace returns the pace of an account.
func (c *Client) pace(access Access) *pace {
	perSecond := cmp.Or(max(access.PerSecond, 0), c.options.PerSecond)
	p, _ := c.paces.ComputeIfAbsent(access.account(), func() (*pace, bool) {
		bytes := c.options.BytesPerSecond
		return &pace{requests: rate.NewLimiter(rate.Limit(perSecond), 2*perSecond), bytes: rate.NewLimiter(rate.Limit(bytes), bytes)}, false
	})
	if p.requests.Burst() != 2*perSecond { // the limit has changed
		p.requests.SetLimit(rate.Limit(perSecond))
		p.requests.SetBurst(2 * perSecond)
	}
	return p
}

// errPace is transient: the account currently reads more than its share.
var errPace = errors.New("overloaded: too many bytes are being read")

// readBody is read to its end on close if the end is near: HTTP/1.1 can only reuse a
// connection after the whole answer, and oras-go does not read "not found".
type readBody struct{ io.ReadCloser }

// Close implements [io.Closer].
func (b readBody) Close() error {
	_, _ = io.CopyN(io.Discard, b.ReadCloser, maxUnread) // otherwise, the connection is closed
	return b.ReadCloser.Close()
}

// pacedBody waits for the account's pace before returning data.
type pacedBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // of the request whose answer this is
	bytes *rate.Limiter
	// closed is called when nobody waits for the body any more.
	closed func()
}

// Close implements [io.Closer].
func (b *pacedBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
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

// turns returns the turns at a host, which bound the requests in flight there. All tenants share
// them, and no account has more than half, so that some are left for the next one. The caller
// leaves them.
func (c *Client) turns(host string) (_ *fair.Turns[verify.Account], leave func()) {
	return c.hosts.take(host, func() *fair.Turns[verify.Account] {
		return fair.RoundRobin[verify.Account](fair.Limits{Total: c.options.PerHost, Each: c.options.PerHost / 2, Queue: maxQueue})
	})
}

// errMemory is transient: by then, other answers of the account may have been read.
var errMemory = errors.New("overloaded: too many large answers are being read")

// hold returns the memory that the account uses for one answer.
func (s *session) hold() *fair.Hold[verify.Account] {
	return s.client.memory.Hold(s.access.account())
}

// heldBody takes memory for the data that is read, until it is closed.
type heldBody struct {
	io.ReadCloser
	memory *fair.Hold[verify.Account]
}

// Read implements [io.Reader].
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.memory.Take(2 * int64(n)) {
		return 0, errMemory
	}
	return n, err
}

// Close implements [io.Closer].
func (b *heldBody) Close() error {
	b.memory.Release()
	return b.ReadCloser.Close()
}

// lists reads lists of referrers before oras-go decodes them, since a short text can expand
// to many descriptors. It also counts them: its requests are sequential.
type lists struct {
	remote.Client
	session *session
	pages   int
}

// Do implements [remote.Client].
func (l *lists) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.Client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK || req.Method != http.MethodGet {
		return resp, err
	}
	api := strings.Contains(req.URL.Path, "/referrers/")
	switch stated := resp.Header.Get(headerType); {
	case intake.IsIndex(stated):
	case api:
		return nil, errors.Join(notUnderstood(stated), resp.Body.Close())
	default:
		return resp, nil // the fallback tag is something else, which oras-go refuses without decoding it
	}
	if api {
		resp.Header.Set(headerType, ocispec.MediaTypeImageIndex)
		l.pages++
	}
	list := &list{body: resp.Body, memory: l.session.hold(), leave: func() {}}
	if err := list.read(req.Context(), resp.ContentLength); err != nil {
		return nil, errors.Join(err, list.Close())
	}
	// Without the length, oras-go would send HEAD for it while holding the turn.
	resp.Body, resp.ContentLength = list, int64(list.Len())
	return resp, nil
}

// list is a list of referrers that has been read, with memory and a turn for decoding it: oras-go
// decodes and closes it.
type list struct {
	bytes.Reader
	body   io.ReadCloser
	memory *fair.Hold[verify.Account]
	leave  func()
}

func (l *list) read(ctx context.Context, size int64) error {
	read, err := readSized(l.body, min(size, verify.MaxManifestBytes)) // guard bounds it
	if err != nil {
		return err
	}
	if _, l.leave, err = verify.TakeTurn(ctx); err != nil {
		l.leave = func() {}
		return err
	}
	content := read.Bytes()
	switch err := intake.List(content); {
	case intake.IsLimit(err):
		return verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the list of referrers %w", err))
	case err != nil:
		return fmt.Errorf("the list of referrers %w", err)
	}
	if !l.memory.Take(decodedListBytes * int64(len(content))) {
		return errMemory
	}
	l.Reset(content)
	return nil
}

// Close implements [io.Closer].
func (l *list) Close() error {
	l.leave()
	l.memory.Release()
	return l.body.Close()
}
