// Package egress is the only way to reach servers that resources and evidence name: Vault,
// key management services, TUF repositories, registry logins, OCSP responders. Its [Client]
// only sends requests to listed hosts, on addresses that a [Guard] accepts at the time of the
// connection. It follows no redirect, only uses its caller's proxy, and bounds time, header
// and body. Its errors contain nothing from a server. Registries are reached through its
// [NewTransport]. It does not judge answers, and knows neither tenants nor credentials.
package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configure a [Client]. The zero value of each field is its safe default.
type Options struct {
	// Hosts are the only hosts that get requests.
	Hosts []string
	// UnsafeAnyHost allows every host. It is for the identity of this process, whose servers its
	// environment names.
	UnsafeAnyHost bool
	// PlainHTTP also allows http, for OCSP and revocation lists, which are signed.
	PlainHTTP bool
	// Reach selects the allowed addresses; the default is public ones.
	Reach Reach
	// Endpoints are the addresses that an admin configured for hosts.
	Endpoints Endpoints
	// Roots are PEM certificates that are trusted in addition to the system's.
	Roots []byte
	// Timeout bounds one request with its body (20 seconds), MaxBytes the body (1 MiB).
	Timeout  time.Duration
	MaxBytes int64
	// MaxIdlePerHost is the number of idle connections to a host that are kept.
	MaxIdlePerHost int
	// Proxy is used for https, except for hosts that it bypasses. Set it only for hosts that a
	// cluster admin or our code names.
	Proxy *Environment
	// Dial replaces the network, for tests. All checks but those of addresses remain.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	options   Options
	hosts     Hosts
	transport *http.Transport
	proxied   *http.Transport // nil without a proxy
	ctx       context.Context // ends all requests; some libraries pass no context on
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// New returns a Client whose requests end when ctx ends, regardless of their own contexts.
func New(ctx context.Context, options Options) (*Client, error) {
	hosts, err := ParseHosts(options.Hosts)
	if err != nil {
		return nil, err
	}
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	options.MaxBytes = cmp.Or(options.MaxBytes, defaultMaxBytes)
	guard := NewGuard().With(options.Endpoints)
	transport, err := NewTransport(Pool{Guard: guard, Reach: options.Reach, Roots: options.Roots, MaxIdlePerHost: options.MaxIdlePerHost})
	if err != nil {
		return nil, err
	}
	if options.Dial != nil {
		transport.DialContext = options.Dial
	}
	c := &Client{options: options, hosts: hosts, transport: transport}
	if options.Proxy != nil {
		if c.proxied, err = NewTransport(Pool{Guard: guard, Roots: options.Roots, MaxIdlePerHost: options.MaxIdlePerHost,
			Proxy: options.Proxy.Proxy}); err != nil {
			return nil, err
		}
	}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c, nil
}

// HTTP returns the client as libraries need it.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Get sends a GET request with the given header, and returns the status and the body. Its
// error is an [*Error], or a malformed address.
func (c *Client) Get(ctx context.Context, address string, header http.Header) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, errors.New("the address is malformed")
	}
	if header != nil {
		r.Header = header
	}
	return c.Read(r)
}

// Read sends a request and returns the status and the whole body. Its error is an
// [*Error].
func (c *Client) Read(r *http.Request) (status int, body []byte, err error) {
	response, err := c.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read completely, or is not needed
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, body, nil
}

// RoundTrip implements [http.RoundTripper]. Its error, and that of the body, is an
// [*Error].
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.permit(r); err != nil {
		discard(r)
		return nil, err
	}
	if !c.enter() {
		discard(r)
		return nil, &Error{Host: r.URL.Host, Cause: Late, Err: context.Canceled}
	}
	defer c.running.Done()
	ctx, cancel := context.WithTimeout(r.Context(), c.options.Timeout)
	release := context.AfterFunc(c.ctx, cancel) //nolint:contextcheck // it ends what libraries left behind
	end := func() { release(); cancel() }
	response, err := RefuseUpgrade(c.transportFor(r).RoundTrip(r.WithContext(ctx)))
	if err != nil {
		end()
		return nil, failure(r.URL.Host, err)
	}
	response.Body = &body{host: r.URL.Host, limit: c.options.MaxBytes, left: c.options.MaxBytes, from: response.Body, end: end}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close() // its content is not used
		return nil, &Error{Host: r.URL.Host, Cause: Redirected}
	}
	return response, nil
}

// errUpgrade is the error of an answer that changes the protocol.
var errUpgrade = errors.New("the server switches to a protocol that nobody asked for")

// RefuseUpgrade closes the connection of an answer with status 101 (RFC 9110, section 15.2.2), and
// returns an error for it. Its body is the connection itself, whose reads net/http ends neither by a
// context nor by a timeout.
func RefuseUpgrade(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		return response, err
	}
	return nil, errors.Join(errUpgrade, response.Body.Close())
}

// transportFor returns the connections for a request: the proxy's or direct ones. Metadata services
// of clouds have no TLS, so their requests are always direct, and so are requests to hosts with
// configured endpoints.
func (c *Client) transportFor(r *http.Request) *http.Transport {
	if c.proxied != nil && !c.options.Endpoints.Contain(r.URL.Host) && r.URL.Scheme == "https" && c.options.Proxy.For(r.URL.Host) != nil {
		return c.proxied
	}
	return c.transport
}

// permit refuses a request before a connection is made for it.
func (c *Client) permit(r *http.Request) error {
	if r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !c.options.PlainHTTP) {
		return &Error{Host: r.URL.Host, Cause: Insecure}
	}
	if r.URL.User != nil || (!c.options.UnsafeAnyHost && !c.hosts.Contain(r.URL)) {
		return &Error{Host: r.URL.Host, Cause: NotListed}
	}
	return nil
}

// discard closes the body of a request that is not sent, as [http.RoundTripper] requires.
func discard(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// enter counts a running request, unless the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Add(1)
	}
	return !c.closed
}

// Close ends all requests, waits until they have ended, and closes all connections. Callers
// that count fetches call it before counting one as finished: libraries may leave requests
// running.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.running.Wait()
	c.transport.CloseIdleConnections()
	if c.proxied != nil {
		c.proxied.CloseIdleConnections()
	}
}

// body is the body of an answer. At the limit it fails instead of ending: a truncated answer
// must not pass for a complete one.
type body struct {
	host        string
	limit, left int64
	from        io.ReadCloser
	end         func()
}

func (b *body) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	if int64(n) > b.left {
		return int(b.left), &Error{Host: b.host, Cause: TooLarge, Limit: b.limit}
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, failure(b.host, err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.from.Close()
}

// ErrNoCertificate means that a CA bundle holds no certificate.
var ErrNoCertificate = errors.New("the CA bundle holds no certificate")

// Pool configures [NewTransport]. The zero value is safe.
type Pool struct {
	Guard *Guard
	Reach Reach
	// Roots are PEM certificates that are trusted in addition to the system's.
	Roots []byte
	// DialTimeout bounds connecting and the TLS handshake (5 seconds).
	DialTimeout time.Duration
	// MaxIdlePerHost is the number of idle connections to a host that are kept (Go's default,
	// 2).
	MaxIdlePerHost int
	// HTTP2 allows HTTP/2.
	HTTP2 bool
	// Proxy, if set, opens the connections, and resolves names instead of the Guard.
	Proxy *Proxy
	// Certificate, if set, is presented to servers that ask for one, and not to the Proxy.
	Certificate *tls.Certificate
}

// NewTransport returns a pool of guarded connections: no proxy but the given one, TLS 1.2 at
// least, a limited header, and no compression, because a compressed answer could unpack to
// any size. It only checks addresses: callers without a [Client] must check hosts, schemes,
// redirects and bodies.
func NewTransport(pool Pool) (*http.Transport, error) {
	roots, err := rootsWith(pool.Roots)
	if err != nil {
		return nil, err
	}
	if pool.Guard == nil {
		pool.Guard = NewGuard()
	}
	if pool.DialTimeout <= 0 {
		pool.DialTimeout = defaultDialTimeout
	}
	dial := pool.Guard.dial(pool.Reach, pool.DialTimeout)
	if pool.Proxy != nil {
		if dial, err = pool.Guard.tunnel(pool.Proxy, pool.DialTimeout); err != nil {
			return nil, err
		}
	}
	trust := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if pool.Certificate != nil {
		trust.Certificates = []tls.Certificate{*pool.Certificate}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(pool.HTTP2)
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    pool.DialTimeout,
		Protocols:              protocols,
		MaxIdleConns:           maxIdleConns,
		MaxIdleConnsPerHost:    pool.MaxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		DisableCompression:     true,
	}, nil
}

// rootsWith returns the system's certificates and those in pem.
func rootsWith(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil //nolint:nilnil // nil means the system's certificates
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, ErrNoCertificate
	}
	return roots, nil
}
