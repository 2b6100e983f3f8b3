// Package revocation fetches OCSP responses (RFC 6960) and certificate revocation lists (RFC
// 5280 section 5) off the request path, and keeps them. To libraries it looks like an HTTP
// transport that answers from memory: a missing response is an error now and an answer for
// the retry. It only asks hosts that a cluster admin has listed, and does not judge
// responses: the code that checks a certificate verifies signatures and dates.
package revocation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
	"github.com/landwaiter/landwaiter/pkg/remote/prefetch"
)

// Options configure a [Prefetcher].
type Options struct {
	// Hosts are the allowed responders, as host (for ports 80 and 443) or host:port. Without
	// any, certificates that name a responder cannot be checked.
	Hosts []string
	// Refresh is the age at which a response is fetched again (10 minutes).
	Refresh time.Duration
	// Account returns the account that pays for a namespace's fetches; nil means the namespace
	// itself.
	Account func(verify.Namespace) verify.Account
	// Dial replaces the network, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wait makes a request wait for its first response until its context ends. It is
	// for commands, which have no request path.
	Wait bool
}

// Prefetcher keeps the responses for each namespace. Namespaces share none. It is safe for
// concurrent use.
type Prefetcher struct {
	hosts  egress.Hosts
	wait   bool
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	client *egress.Client // of Run
	set    *prefetch.Set[verify.Namespace, request, response]
}

// request is one request of a namespace to a responder.
type request struct {
	namespace                          verify.Namespace
	method, address, contentType, body string
}

type response = prefetch.Fetched[[]byte]

// New returns a Prefetcher that fetches while [Prefetcher.Run] runs. It returns an error for
// an invalid host.
func New(options Options, now func() time.Time) (*Prefetcher, error) {
	hosts, err := egress.ParseHosts(options.Hosts)
	if err != nil {
		return nil, fmt.Errorf("revocation hosts: %w", err)
	}
	if options.Account == nil {
		options.Account = verify.Namespace.Account
	}
	p := &Prefetcher{hosts: hosts, wait: options.Wait, dial: options.Dial}
	refresh := options.Refresh
	if refresh <= 0 {
		refresh = defaultRefresh
	}
	poll := prefetch.Poll(p.fetch, now, prefetch.PollOptions[verify.Account, request]{
		Refresh: func(request) time.Duration { return refresh }, FirstRetry: firstRetry, LastRetry: lastRetry,
		MaxFetches: maxFetches, MaxFetchesPerOwner: maxFetchesEach,
		Owner: func(r request) verify.Account { return options.Account(r.namespace) },
		Apart: func(account verify.Account) bool { return account == verify.Cluster.Account() },
	})
	p.set = prefetch.New[verify.Namespace](poll, now, prefetch.Options[response]{
		MaxKeys: maxResponses, MaxPending: maxPending, Idle: forgetAfter,
		Size: func(r response) int { return len(r.Value) }, MaxBytes: maxBytes, MaxBytesTotal: maxBytesTotal,
	})
	return p, nil
}

// For returns a transport that answers one namespace's requests with fetched responses. Its error is a
// [verify.PermanentError] if the address is not allowed, and has a method Pending that returns true if there is no
// response yet; otherwise the responder failed.
func (p *Prefetcher) For(namespace verify.Namespace) http.RoundTripper {
	return transport{prefetcher: p, namespace: namespace}
}

// Forget drops everything that is kept for a namespace.
func (p *Prefetcher) Forget(namespace verify.Namespace) { p.set.Want(namespace, nil) }

// Run fetches requested responses, and again when they are old, until ctx ends. Then it
// returns nil. It may be called once.
func (p *Prefetcher) Run(ctx context.Context) error {
	// An admin named the hosts, so they may have private addresses.
	client, err := egress.New(ctx, egress.Options{Hosts: p.hosts, PlainHTTP: true, Reach: egress.Private,
		Timeout: fetchTimeout, MaxBytes: maxResponse, MaxIdlePerHost: maxFetches, Dial: p.dial})
	if err != nil {
		return fmt.Errorf("make a client for revocation: %w", err)
	}
	defer client.Close()
	p.client = client
	p.set.Run(ctx)
	return nil
}

type transport struct {
	prefetcher *Prefetcher
	namespace  verify.Namespace
}

// RoundTrip answers a GET or POST from memory.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := read(r)
	if err != nil {
		return nil, err
	}
	if err := t.prefetcher.allowed(r); err != nil {
		return nil, err
	}
	content, err := t.prefetcher.content(r.Context(),
		request{namespace: t.namespace, method: r.Method, address: r.URL.String(), contentType: r.Header.Get("Content-Type"), body: string(body)})
	if errors.Is(err, prefetch.ErrBusy) {
		return nil, pending(fmt.Sprintf("too many revocation answers are being fetched for %s, try again", t.namespace.Describe()))
	}
	if err != nil {
		return nil, fmt.Errorf("revocation answer of %s: %w", r.URL.Host, err)
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: held{bytes.NewReader(content), content}, ContentLength: int64(len(content)), Request: r}, nil
}

// held is a body that is in memory.
type held struct {
	*bytes.Reader
	content []byte
}

// Close does nothing.
func (held) Close() error { return nil }

// Held returns the whole body, which nobody may change: revocation lists are large.
func (h held) Held() []byte { return h.content }

func read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }() // the body is in memory
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read revocation request: %w", err)
	case len(body) > maxRequest:
		return nil, verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the revocation request is larger than %d bytes", maxRequest))
	}
	return body, nil
}

// allowed refuses addresses, which come from certificates, unless a cluster admin has listed
// their host.
func (p *Prefetcher) allowed(r *http.Request) error {
	u := r.URL
	switch {
	case len(u.String()) > maxAddress:
		return verify.Permanent(policy.ReasonLimitExceeded,
			fmt.Errorf("the address of a revocation responder is longer than %d bytes", maxAddress))
	case (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || (r.Method != http.MethodGet && r.Method != http.MethodPost):
		return verify.Permanent(policy.ReasonRevocationHostNotAllowed,
			fmt.Errorf("revocation responder %.100q cannot be asked: only http and https can", u.Redacted()))
	case !p.hosts.Contain(u):
		return verify.Permanent(policy.ReasonRevocationHostNotAllowed, fmt.Errorf("revocation responder %.100q is not one that may be asked; "+
			"a cluster admin can allow it with --egress-host", u.Host))
	}
	return nil
}

// pending is the error of a response that has not arrived yet: the responder has not failed, and the response
// may exist.
type pending string

// Error returns what to do.
func (p pending) Error() string { return string(p) }

// Pending distinguishes it from other errors.
func (pending) Pending() bool { return true }

const errPending = pending("it is being fetched, try again")

// content returns the last response, regardless of its age: the caller checks its dates. It
// keeps the response in use, or starts a fetch.
func (p *Prefetcher) content(ctx context.Context, r request) ([]byte, error) {
	if err := p.set.Add(r.namespace, r); err != nil {
		return nil, err
	}
	if p.wait {
		p.set.Await(ctx, r)
	}
	known, err := p.set.Known(r)
	switch {
	case !known.At.IsZero():
		return known.Value, nil
	case errors.Is(err, prefetch.ErrPending):
		return nil, errPending
	case errors.Is(err, prefetch.ErrNotWanted):
		return nil, pending("it was dropped to make room, try again")
	case err != nil:
		return nil, err
	}
	return nil, known.Err
}

// fetch asks a responder once.
func (p *Prefetcher) fetch(ctx context.Context, r request) ([]byte, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, r.address, strings.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the address of the responder is malformed")
	}
	if r.contentType != "" {
		sent.Header.Set("Content-Type", r.contentType)
	}
	status, content, err := p.client.Read(sent)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the responder answered with status %d", status)
	}
	return content, nil
}
