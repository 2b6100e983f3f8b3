package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Proxy is an HTTP proxy that opens tunnels (RFC 9110, section 9.3.6). It resolves names
// itself, so no [Guard] checks where a tunnel leads: use it only for hosts that a cluster
// admin or our code names. The proxy itself may have a private address.
type Proxy struct {
	// Address is host:port.
	Address string
	// TLS connects to the proxy itself over TLS; Roots are PEM certificates that are trusted for
	// it in addition to the system's.
	TLS   bool
	Roots []byte
	// Username and Password are only sent to the proxy.
	Username, Password string
}

// errProxyURL does not quote the URL, which may contain a password.
var errProxyURL = errors.New("it must be http://HOST:PORT or https://HOST:PORT, with a name and password before the host if the " +
	"proxy asks for them")

// ParseProxy reads the URL of a proxy. Its error contains nothing of the URL.
func ParseProxy(text string) (*Proxy, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || (u.Path != "" && u.Path != "/") ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errProxyURL
	}
	if _, _, err := split(u.Host); err != nil {
		return nil, errProxyURL
	}
	port := cmp.Or(u.Port(), defaultPort(u.Scheme))
	password, _ := u.User.Password()
	return &Proxy{Address: net.JoinHostPort(u.Hostname(), port), TLS: u.Scheme == "https", Username: u.User.Username(), Password: password},
		nil
}

// Bypass selects the hosts that are reached without a proxy, as the environment variable
// NO_PROXY does. The zero value only contains the local host.
type Bypass struct {
	direct func(*url.URL) (*url.URL, error)
}

// NewBypass reads hosts, domains with a leading dot, addresses and CIDR blocks, separated
// by commas.
func NewBypass(noProxy string) Bypass {
	// The proxy in this configuration does not matter: only the decision counts.
	return Bypass{direct: (&httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: noProxy}).ProxyFunc()}
}

// Contains reports whether a host, with or without port, is reached directly.
func (b Bypass) Contains(host string) bool {
	if b.direct == nil {
		b = NewBypass("")
	}
	through, err := b.direct(&url.URL{Scheme: "https", Host: host})
	return err == nil && through == nil
}

// Environment is the proxy in the environment of the process. Nil means none.
type Environment struct {
	Proxy  *Proxy
	Bypass Bypass
}

// ParseEnvironment reads HTTPS_PROXY and NO_PROXY, or https_proxy and no_proxy, with get. It
// returns nil without a proxy.
func ParseEnvironment(get func(string) string) (*Environment, error) {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := get(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	name, text := first("HTTPS_PROXY", "https_proxy")
	if text == "" {
		return nil, nil //nolint:nilnil // most have none
	}
	proxy, err := ParseProxy(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	_, direct := first("NO_PROXY", "no_proxy")
	return &Environment{Proxy: proxy, Bypass: NewBypass(direct)}, nil
}

// For returns the proxy for a host, nil if it is reached directly.
func (e *Environment) For(host string) *Proxy {
	if e == nil || e.Bypass.Contains(host) {
		return nil
	}
	return e.Proxy
}

// ProxyError is why a proxy opened no tunnel. It names the proxy without credentials. A retry
// may help, because the error does not concern the host behind the proxy.
type ProxyError struct {
	// Address of the proxy.
	Address string
	// Status is the proxy's answer, 0 if there was none.
	Status int
	// Late says that the proxy did not answer in time.
	Late bool
	text string
}

// Error implements error.
func (e *ProxyError) Error() string { return "the proxy " + e.Address + " " + e.text }

// Timeout reports whether the proxy did not answer in time.
func (e *ProxyError) Timeout() bool { return e.Late }

// fail returns an error of the proxy itself. It does not wrap the cause: a message about an
// address or a certificate would seem to be about the registry.
func (p *Proxy) fail(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	e := &ProxyError{Address: p.Address}
	switch cause := failure("", err); cause.Cause {
	case Late:
		e.Late, e.text = true, "did not answer in time"
	case Lookup:
		e.text = "does not resolve in DNS"
	case Address:
		e.text = "cannot be used: " + cause.Err.Error()
	case Untrusted:
		e.text = "has a certificate that is not trusted; its caBundle can make it so"
	case Unreachable:
		e.text = "cannot be reached"
	case Broken, NotListed, Insecure, Redirected, TooLarge, Proxied:
		e.text = "gave an answer that is not HTTP, or broke off"
	}
	return e
}

// refused returns the error for an answer other than 2xx.
func (p *Proxy) refused(status int) error {
	e := &ProxyError{Address: p.Address, Status: status}
	switch status {
	case http.StatusProxyAuthRequired:
		e.text = "asks for other credentials (status 407)"
	case http.StatusForbidden:
		e.text = "does not let this host through (status 403)"
	default:
		e.text = fmt.Sprintf("opened no tunnel (status %d)", status)
	}
	return e
}

// tunnel returns a function that connects through the proxy.
func (g *Guard) tunnel(p *Proxy, timeout time.Duration) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	roots, err := rootsWith(p.Roots)
	if err != nil {
		return nil, err
	}
	name, _, err := net.SplitHostPort(p.Address)
	if err != nil {
		return nil, errProxyURL
	}
	var trust *tls.Config
	if p.TLS {
		trust = &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	dial := g.dial(Private, timeout)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, found := g.endpoints.of(address); found { // an admin configured its address
			return dial(ctx, network, address)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := dial(ctx, network, p.Address)
		if err != nil {
			return nil, p.fail(err)
		}
		opened, err := p.open(ctx, conn, trust, address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return opened, nil
	}, nil
}

// open requests a tunnel over a connection to the proxy.
func (p *Proxy) open(ctx context.Context, conn net.Conn, trust *tls.Config, address string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if trust != nil {
		secure := tls.Client(conn, trust)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, p.fail(err)
		}
		conn = secure
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if p.Username != "" || p.Password != "" {
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Username+":"+p.Password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, p.fail(endedBy(ctx, err))
	}
	// A TLS server sends nothing before the client does, so only the answer is buffered.
	response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxResponseHeaderBytes)), request) //nolint:bodyclose // an answer to CONNECT ends with its header
	if err != nil {
		return nil, p.fail(endedBy(ctx, err))
	}
	if response.StatusCode != http.StatusOK {
		return nil, p.refused(response.StatusCode)
	}
	if !stop() {
		return nil, p.fail(endedBy(ctx, context.DeadlineExceeded))
	}
	return conn, nil
}

// endedBy returns the context's error if that is why a connection failed.
func endedBy(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return err
}
