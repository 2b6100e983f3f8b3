// Package egress is the one way out to servers that resources and evidence name: Vault,
// key management services, TUF repositories, registry logins, OCSP responders. Its
// [Client] asks listed hosts only, on addresses that a [Guard] lets through at the time
// of the connection, follows no redirect, uses a proxy only where its caller gives one, and
// bounds time, header and body. Its errors hold nothing that a server said. Registries
// are reached through its [NewTransport]. It does not judge answers, and knows neither
// tenants nor credentials.
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
	// Hosts are asked, and no others.
	Hosts []string
	// UnsafeAnyHost asks every host. It is for the identity of this process, whose
	// servers its environment names.
	UnsafeAnyHost bool
	// PlainHTTP also allows http, for OCSP and revocation lists, which are signed.
	PlainHTTP bool
	// Reach decides about addresses; the default is public ones.
	Reach Reach
	// Endpoints are hosts that are where an admin says.
	Endpoints Endpoints
	// Roots are PEM certificates that are trusted in addition to the system's.
	Roots []byte
	// Timeout bounds one request with its body (20 seconds), MaxBytes the body (1 MiB).
	Timeout  time.Duration
	MaxBytes int64
	// MaxIdlePerHost is how many unused connections to a host are kept.
	MaxIdlePerHost int
	// Proxy is used for https, unless it says that a host is reached directly. Set it
	// only for hosts that a cluster admin named, or that we name.
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
	ctx       context.Context // some libraries pass none on; it ends all requests
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// New returns a Client whose requests end when ctx ends, whatever context they have.
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
		if c.proxied, err = NewTransport(Pool{Guard: guard, Roots: options.Roots, MaxIdlePerHost: options.MaxIdlePerHost, Proxy: options.Proxy.Proxy}); err != nil {
			return nil, err
		}
	}
	c.ctx, c.stop = context.WithCancel(ctx)
	return c, nil
}

// HTTP returns the client in the form that libraries take.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Get sends a GET request with the given header, and returns the status and the body.
// Its error is an [*Error], or says that the address is malformed.
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
	defer func() { _ = response.Body.Close() }() // it was read whole, or it is not needed
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
		_ = response.Body.Close() // nothing of it is used
		return nil, &Error{Host: r.URL.Host, Cause: Redirected}
	}
	return response, nil
}

// errUpgrade is the error of an answer that changes the protocol.
var errUpgrade = errors.New("the server switches to a protocol that nobody asked for")

// RefuseUpgrade closes the connection of an answer with status 101 (RFC 9110, section 15.2.2), and
// returns an error for it. Its body is the connection itself, and net/http lets neither a context nor a
// timeout end its reads.
func RefuseUpgrade(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		return response, err
	}
	return nil, errors.Join(errUpgrade, response.Body.Close())
}

// transportFor returns the connections for a request: the proxy's or direct ones. Metadata services
// of clouds have no TLS, so their requests are always direct, and so is a host that is
// where an admin says.
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

// discard closes the body of a request that is not sent, as [http.RoundTripper] asks.
func discard(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// enter counts a request that runs, unless the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Add(1)
	}
	return !c.closed
}

// Close ends all requests, waits until they have ended, and closes all connections.
// Whoever counts fetches calls it before counting one as finished: libraries may leave
// requests behind.
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

// body is the body of an answer. It fails past the limit instead of ending: a cut
// answer must not pass for a whole one.
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
	// MaxIdlePerHost is how many unused connections to a host are kept (Go's default, 2).
	MaxIdlePerHost int
	// HTTP2 allows HTTP/2.
	HTTP2 bool
	// Proxy, if set, opens the connections, and resolves names in place of the Guard.
	Proxy *Proxy
	// Certificate, if set, is presented to servers that ask for one, and not to the Proxy.
	Certificate *tls.Certificate
}

// NewTransport returns a pool of connections that are guarded: no proxy but
// the given one, TLS 1.2 at least, a limited header, and no compression, because a
// compressed answer could unpack to any size. It checks addresses only: whoever uses it
// without a [Client] decides about hosts, schemes, redirects and bodies.
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
