// Package revocation fetches OCSP responses (RFC 6960) and certificate
// revocation lists (RFC 5280 section 5) off the request path, and keeps them. To
// libraries it looks like an HTTP transport that answers from memory: what is
// not there yet is an error now and an answer for the retry. It asks only hosts
// that a cluster admin has listed, and judges no answer: whoever checks a
// certificate verifies signatures and dates.
package revocation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// Options configure an [Ahead].
type Options struct {
	// Hosts that may be asked, as host (for ports 80 and 443) or host:port.
	// Without any, certificates that name a responder cannot be checked.
	Hosts []string
	// Refresh is how old an answer becomes; 0 is 10 minutes.
	Refresh time.Duration
	// Wait lets whoever asks wait for a first answer, up to the end of its
	// context: for commands, which have no request path.
	Wait bool
}

// Ahead keeps answers of responders, for each namespace its own. It is safe for
// concurrent use.
type Ahead struct {
	hosts   map[string]bool
	refresh time.Duration
	wait    bool
	client  *http.Client
	now     func() time.Time
	queue   chan *answer

	mu      sync.Mutex
	shelves map[verify.Namespace]*shelf
	bytes   int
}

// New returns an Ahead that fetches while [Ahead.Run] runs. It returns an error
// for a host that cannot be one.
func New(options Options, now func() time.Time) (*Ahead, error) {
	a := &Ahead{hosts: map[string]bool{}, refresh: options.Refresh, wait: options.Wait, now: now,
		queue: make(chan *answer, 1024), shelves: map[verify.Namespace]*shelf{}}
	if a.refresh <= 0 {
		a.refresh = defaultRefresh
	}
	for _, host := range options.Hosts {
		parsed, err := url.Parse("http://" + host)
		if err != nil || host == "" || parsed.Host != host || strings.ContainsAny(host, "*@ ") {
			return nil, fmt.Errorf("revocation host %q is neither a host nor host:port", host)
		}
		a.hosts[strings.ToLower(host)] = true
	}
	a.client = &http.Client{
		Timeout: fetchTimeout,
		// A redirect could lead anywhere; responders have no need of one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: fetchTimeout}).DialContext,
			TLSHandshakeTimeout: fetchTimeout,
			MaxIdleConnsPerHost: workers,
			IdleConnTimeout:     time.Minute,
		},
	}
	return a, nil
}

// For returns a transport that answers one namespace's requests from what was
// fetched for it. Its error is a [verify.PermanentError] if the address may never
// be asked; every other error says that the answer is not there yet.
func (a *Ahead) For(namespace verify.Namespace) http.RoundTripper {
	return transport{ahead: a, namespace: namespace}
}

// Forget drops everything that was kept for a namespace.
func (a *Ahead) Forget(namespace verify.Namespace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.shelves[namespace]; ok {
		a.bytes -= s.bytes
		delete(a.shelves, namespace)
	}
}

type transport struct {
	ahead     *Ahead
	namespace verify.Namespace
}

// RoundTrip answers a GET or POST from memory.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := read(r)
	if err != nil {
		return nil, err
	}
	if err := t.ahead.allowed(r); err != nil {
		return nil, err
	}
	kept := t.ahead.want(t.namespace, question{method: r.Method, address: r.URL.String(), kind: r.Header.Get("Content-Type"), body: string(body)})
	if kept == nil {
		return nil, fmt.Errorf("too many revocation answers are being fetched for %s, try again", t.namespace.Describe())
	}
	if t.ahead.wait {
		select {
		case <-kept.tried:
		case <-r.Context().Done():
		}
	}
	content, err := t.ahead.content(kept)
	if err != nil {
		return nil, fmt.Errorf("revocation answer of %s: %w", r.URL.Host, err)
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)), Request: r}, nil
}

func read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }() // it is in memory
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read revocation request: %w", err)
	case len(body) > maxRequest:
		return nil, verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the revocation request is larger than %d bytes", maxRequest))
	}
	return body, nil
}

// allowed refuses addresses, which come from certificates, unless a cluster
// admin has listed their host.
func (a *Ahead) allowed(r *http.Request) error {
	u := r.URL
	host := strings.ToLower(u.Host)
	if p := u.Port(); (u.Scheme == "http" && p == "80") || (u.Scheme == "https" && p == "443") {
		host = strings.ToLower(strings.TrimSuffix(u.Host, ":"+p))
	}
	switch {
	case len(u.String()) > maxAddress:
		return verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("the address of a revocation responder is longer than %d bytes", maxAddress))
	case (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || (r.Method != http.MethodGet && r.Method != http.MethodPost):
		return verify.Permanent(policy.ReasonRevocationHostNotAllowed, fmt.Errorf("revocation responder %.100q cannot be asked: only http and https can", u.Redacted()))
	case !a.hosts[host]:
		return verify.Permanent(policy.ReasonRevocationHostNotAllowed, fmt.Errorf("revocation responder %.100q is not one that may be asked; "+
			"a cluster admin can allow it with --egress-host", u.Host))
	}
	return nil
}

var (
	errPending = errors.New("it is being fetched, try again")
	errStopped = errors.New("it was dropped to make room, try again")
)

// content returns what was fetched last, however old: dates are in it.
func (a *Ahead) content(kept *answer) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case kept.fetched:
		return kept.content, nil
	case kept.err != nil:
		return nil, kept.err
	}
	return nil, errPending
}

// Run fetches what was asked for, and again what has become old, until ctx ends.
func (a *Ahead) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { a.work(ctx) })
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			all.Wait()
			a.client.CloseIdleConnections()
			return nil
		case <-ticker.C:
			a.renew()
		}
	}
}

// question is one request to a responder.
type question struct{ method, address, kind, body string }

func (q question) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{q.method, q.address, q.kind, q.body}))
	return hex.EncodeToString(sum[:])
}
