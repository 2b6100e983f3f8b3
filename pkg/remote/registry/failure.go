package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// attempt calls f, and again if it failed transiently and there is time. It does not retry if
// the host asked for a pause.
func attempt[T any](ctx context.Context, f func() (T, error)) (T, error) {
	value, err := f()
	if err == nil || !worthRetrying(err) {
		return value, err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*retryPause {
		return value, err
	}
	select {
	case <-time.After(retryPause):
		return f()
	case <-ctx.Done():
		return value, err
	}
}

// worthRetrying reports whether a failure may end within a moment: a lost connection, a
// gateway that has just restarted. After a timeout there is no time left.
func worthRetrying(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable ||
			response.StatusCode == http.StatusGatewayTimeout
	}
	var network net.Error
	var proxy *egress.ProxyError
	if errors.As(err, &proxy) && proxy.Status != 0 && proxy.Status < http.StatusInternalServerError {
		return false // it would answer the same
	}
	if errors.Is(err, errBackOff) || errors.As(err, &network) && network.Timeout() {
		return false
	}
	return connectionFailed(err) && !permanent(err) && !untrusted(err)
}

// answers marks failures to read an answer: HTTP/2 has its own errors for a stream that is
// reset, which cannot be distinguished from errors in the content. It refuses an answer that
// itself states another digest.
type answers struct {
	guard http.RoundTripper
	// open, if set, removes Content-Length, so that content is judged by its bytes and not by
	// what the registry states about them. It becomes true if the end of an answer does not
	// prove that it is complete.
	open *bool
}

// RoundTrip implements [http.RoundTripper].
func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.guard.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := checkStated(req, resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	if err := describe(req, resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	if a.open != nil {
		*a.open = openEnded(resp)
		resp.ContentLength = -1
	}
	resp.Body = answer{resp.Body}
	return resp, nil
}

// openEnded reports whether only the end of the connection ends the body (RFC 9112, section 6.3), which does not
// prove that it is complete.
func openEnded(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

// checkStated compares the digest that an answer states with the requested one.
func checkStated(req *http.Request, resp *http.Response) error {
	above, name := path.Split(askedFor(req))
	if resp.StatusCode != http.StatusOK || !strings.HasSuffix(above, "/manifests/") && !strings.HasSuffix(above, "/blobs/") {
		return nil
	}
	want, err := digest.Parse(name)
	if err != nil {
		return nil //nolint:nilerr // a tag
	}
	stated, err := digest.Parse(resp.Header.Get("Docker-Content-Digest"))
	if err != nil || stated == want || stated.Algorithm() != want.Algorithm() {
		return nil //nolint:nilerr // it is optional, and the content is hashed
	}
	return mismatch(want, stated)
}

type answer struct{ io.ReadCloser }

// Read implements [io.Reader].
func (a answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.Is(err, io.EOF) && !errors.As(err, &tooLarge) {
		err = fmt.Errorf("%w: %w", errCut, err)
	}
	return n, err
}

// errCut means that an answer was cut off.
var errCut = errors.New("the answer was cut off")

// errShort means that an answer ended early without a sign of it.
var errShort = fmt.Errorf("%w: %w", errCut, io.ErrUnexpectedEOF)

// connectionFailed reports whether err comes from the connection and not from the content
// that was read through it.
func connectionFailed(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, errCut) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// untrusted reports whether we refused a connection because of its certificate.
func untrusted(err error) bool {
	var unknownCA x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &unknownCA) || errors.As(err, &certificate)
}

// distrust says why we refused the certificate of a host, with the remedy.
func distrust(err error, host string) (text string, remedy policy.Remedy) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	text = host + " has a certificate that is not trusted"
	switch {
	case errors.As(err, &authority):
		return text + ": its CA is unknown", policy.RemedyTrustCA
	case errors.As(err, &name):
		return text + ": it is for another name", policy.RemedyOtherName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return text + ": it has expired, or is not valid yet", policy.RemedyRenew
	}
	return text, policy.RemedyReissue
}

// refusedCertificate reports whether a server ended the handshake because of our certificate
// (RFC 8446, section 6.2). The library does not export the type of alerts.
func refusedCertificate(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "remote error" && strings.Contains(operation.Err.Error(), "certificate")
}

// mismatch is the error for content with another digest than requested.
func mismatch(want, got digest.Digest) error {
	return verify.PermanentWith(policy.ReasonContentMismatch,
		fmt.Errorf("the content is not what its digest says: asked for %s, got %s", want, got),
		"repair the registry, or the proxy in front of it")
}

// explain wraps a failure with the operation, and makes it a [verify.PermanentError] if a
// retry could not help. It omits URLs, which can contain signed tokens, and text from
// registries, which an attacker may have written.
func explain(err error, doing, host string) error {
	if err == nil {
		return nil
	}
	var permanent *verify.PermanentError
	if errors.As(err, &permanent) {
		return verify.PermanentWith(permanent.Reason, fmt.Errorf("cannot %s: %w", doing, permanent.Err), permanent.Remediation)
	}
	if reason, text := permanentCause(err, host); reason != "" {
		return verify.PermanentWith(reason, fmt.Errorf("cannot %s: %s", doing, text), remedy(err, reason, host))
	}
	text, remedy := transientCause(err, host)
	said := verify.Mended(fmt.Errorf("cannot %s: %s", doing, text), remedy, host)
	if ownFault(err) {
		return verify.Unfinished(said)
	}
	return said
}

// ownFault reports whether a failure is unrelated to the registry: Landwaiter is overloaded, or the caller
// gave up.
func ownFault(err error) bool {
	var response *errcode.ErrorResponse
	return !errors.As(err, &response) &&
		slices.ContainsFunc([]error{errMemory, errPace, fair.ErrQueueFull, context.Canceled}, func(own error) bool { return errors.Is(err, own) })
}

// remedy says what to do about a failure that a retry would repeat.
func remedy(err error, reason policy.Reason, host string) string {
	if errors.Is(err, egress.ErrMetadata) {
		name, _ := splitPort(host)
		if _, err := netip.ParseAddr(name); err == nil {
			return "correct the name of the image: " + host + " is no registry, but a cloud's service for its machines"
		}
		return "correct the name " + host + " in DNS"
	}
	switch reason {
	case policy.ReasonNotFound:
		return "check the spelling of image and tag, and that it was pushed; some registries also say so where access is refused"
	case policy.ReasonAccessDenied:
		return withLogin(host)
	case policy.ReasonForbidden:
		return policy.AskClusterAdmin + "list " + host + " in a ClusterStore, if it is right"
	case policy.ReasonContentMismatch:
		return "push and sign the image again, and find out who changed it in the registry"
	}
	return ""
}

// withLogin says what to do about a missing or wrong login.
func withLogin(host string) string {
	return "add a pull secret for " + host + " to imagePullSecrets of the Store that applies"
}

// permanent reports whether a retry would repeat a failure.
func permanent(err error) bool {
	if verify.IsPermanent(err) {
		return true
	}
	reason, _ := permanentCause(err, "")
	return reason != ""
}

// permanentCause returns a reason and a sentence for the failures that a retry would repeat,
// and an empty reason for all others. This is the complete list, in addition to our own
// refusals ([verify.PermanentError]): not found, refused credentials, an address that no
// admin allowed, content that does not match its digest, an exceeded limit. An attacker who
// can disturb a connection, and a registry in trouble, cause anything else.
func permanentCause(err error, host string) (reason policy.Reason, text string) {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return permanentStatus(response, host)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return policy.ReasonNotFound, host + " has no such image or tag"
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return policy.ReasonAccessDenied, host + " asks for a user name and password, and no Store gives any"
	case errors.Is(err, egress.ErrAddress):
		return policy.ReasonForbidden, host + " cannot be reached: " + egress.ErrAddress.Error() +
			", and no ClusterStore lists it under registries"
	case errors.Is(err, egress.ErrMetadata):
		return policy.ReasonForbidden, host + " cannot be reached: " + egress.ErrMetadata.Error()
	case errors.Is(err, content.ErrMismatchedDigest):
		return policy.ReasonContentMismatch, "the content is not what its digest says"
	case errors.Is(err, errdef.ErrSizeExceedsLimit), errors.As(err, &tooLarge):
		return policy.ReasonLimitExceeded, fmt.Sprintf("the answer of %s is larger than %d bytes", host, maxManifestBytes)
	}
	return "", ""
}

// permanentStatus is permanentCause for an HTTP status. oras-go turns a missing manifest or
// blob into [errdef.ErrNotFound], so a 404 here is either about the repository, and says so,
// or comes from a token server and does not concern the image.
func permanentStatus(response *errcode.ErrorResponse, host string) (reason policy.Reason, text string) {
	if hasCode(response, codeTooManyRequests, codeUnavailable) {
		return "", "" // some say so with 403
	}
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return policy.ReasonAccessDenied, host + " refuses access"
	case http.StatusBadRequest:
		if at := response.URL; at != nil && at.Fragment == ofTokenServer { // RFC 6749, section 5.2
			return policy.ReasonAccessDenied, "the token server of " + host + " refuses the request"
		}
	case http.StatusNotFound:
		if hasCode(response, errcode.ErrorCodeNameUnknown) {
			return policy.ReasonNotFound, host + " has no such image or tag"
		}
	}
	return "", ""
}

// Error codes of the distribution API that oras-go has no name for.
const (
	codeTooManyRequests = "TOOMANYREQUESTS"
	codeUnavailable     = "UNAVAILABLE"
)

func hasCode(response *errcode.ErrorResponse, codes ...string) bool {
	return slices.ContainsFunc(response.Errors, func(e errcode.Error) bool { return slices.Contains(codes, e.Code) })
}

// transientCause describes a failure that a retry may not repeat, with the remedy.
func transientCause(err error, host string) (text string, remedy policy.Remedy) {
	var response *errcode.ErrorResponse
	var network net.Error
	var dns *net.DNSError
	var proxy *egress.ProxyError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.Is(err, errMemory), errors.Is(err, errPace):
		return "overloaded: too many large answers of registries are being read, try again", ""
	case errors.Is(err, fair.ErrQueueFull):
		return "overloaded: too many requests to " + host + " are waiting, try again", ""
	case errors.As(err, &proxy):
		return host + " was not reached: " + proxy.Error(), ""
	case errors.As(err, &response):
		return fmt.Sprintf("%s answered with status %d", host, response.StatusCode), ""
	case errors.Is(err, context.Canceled):
		return host + " did not answer before the caller gave up", ""
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return host + " did not answer in time", policy.RemedyAnswer
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name " + host + " does not resolve in DNS: there is no such host", policy.RemedyNoSuchHost
	case errors.As(err, &dns):
		return "the host name " + host + " does not resolve in DNS", policy.RemedyDNS
	case errors.Is(err, errBackOff):
		return host + " asked for a pause (429 or 503 with Retry-After)", ""
	case untrusted(err):
		return distrust(err, host)
	case refusedCertificate(err):
		return host + " refuses the client certificate, or asks for one", policy.RemedyClientCertificate
	case errors.Is(err, http.ErrSchemeMismatch):
		return host + " speaks plain HTTP, without TLS", policy.RemedyServeTLS
	case errors.As(err, &noTLS):
		return host + " answers with something that is no TLS: it may speak plain HTTP", policy.RemedyServeTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses the connection: nothing listens there", policy.RemedyStart
	case connectionFailed(err):
		return "the connection to " + host + " failed", policy.RemedyAnswer
	}
	return host + " gave an answer that violates the OCI distribution specification", ""
}

// errBackOff means that a pause that the host asked for has not ended.
var errBackOff = errors.New("the host asked for a pause")
