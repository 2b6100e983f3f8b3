package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
)

// Cause is why a request failed.
type Cause int

// The causes. The zero value is an answer that is not HTTP, or that was cut off.
const (
	Broken      Cause = iota
	NotListed         // the host is not on the list
	Insecure          // the scheme is not https
	Address           // the address is not allowed
	Lookup            // the host has no address
	Unreachable       // nothing listens there
	Untrusted         // the certificate is not trusted
	Late              // no answer in time, or the caller gave up
	Redirected        // the answer redirects
	TooLarge          // the body is larger than the limit
	Proxied           // the proxy opened no tunnel
)

// Error is why a request failed. It names the host of the request, and contains nothing from
// a server: no header, no body, no address to which a name resolved.
type Error struct {
	Host  string
	Cause Cause
	// Limit is the size in bytes of an answer that is too large.
	Limit int64
	// Err is [ErrAddress] or [ErrMetadata] if the cause is [Address], a context's error if it is
	// [Late], a [*ProxyError] if it is [Proxied], and nil otherwise.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	switch e.Cause {
	case NotListed:
		return "host " + e.Host + " is not one that may be asked"
	case Insecure:
		return "host " + e.Host + " would be asked without TLS; use https"
	case Address, Proxied:
		return "host " + e.Host + " cannot be asked: " + e.Err.Error()
	case Lookup:
		return "host " + e.Host + " cannot be found"
	case Unreachable:
		return "host " + e.Host + " cannot be reached"
	case Untrusted:
		return "host " + e.Host + " has a certificate that is not trusted; a CA bundle can make it so"
	case Late:
		return "host " + e.Host + " did not answer in time"
	case Redirected:
		return "host " + e.Host + " redirects, which is not followed; name the host that answers"
	case TooLarge:
		return "the answer of host " + e.Host + " is larger than " + strconv.FormatInt(e.Limit, 10) + " bytes"
	case Broken:
	}
	return "the answer of host " + e.Host + " is not HTTP, or broke off"
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failure converts a network error to an Error.
func failure(host string, err error) *Error {
	var known *Error
	var proxy *ProxyError
	var lookup *net.DNSError
	var operation *net.OpError
	var network net.Error
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &proxy):
		return &Error{Host: host, Cause: Proxied, Err: proxy}
	case errors.Is(err, ErrAddress), errors.Is(err, errResolve):
		return &Error{Host: host, Cause: Address, Err: ErrAddress}
	case errors.Is(err, ErrMetadata):
		return &Error{Host: host, Cause: Address, Err: ErrMetadata}
	case errors.Is(err, context.Canceled):
		return &Error{Host: host, Cause: Late, Err: context.Canceled}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return &Error{Host: host, Cause: Late, Err: context.DeadlineExceeded}
	case errors.As(err, &lookup):
		return &Error{Host: host, Cause: Lookup}
	case errors.As(err, &unknown), errors.As(err, &certificate):
		return &Error{Host: host, Cause: Untrusted}
	case errors.As(err, &operation) && operation.Op == "dial":
		return &Error{Host: host, Cause: Unreachable}
	}
	return &Error{Host: host}
}
