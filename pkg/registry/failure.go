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
	"net/url"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// attempt calls f, and once more if it failed transiently and there is time. A
// host that asked to be left alone is not asked again.
func attempt[T any](ctx context.Context, f func() (T, error)) (T, error) {
	value, err := f()
	if err == nil || !worthRetrying(err) {
		return value, err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*retryPause {
		return value, err
	}
	if pause(ctx, retryPause) != nil {
		return value, err
	}
	return f()
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// worthRetrying is for failures that pass by themselves: a lost connection, a
// gateway that has just restarted. A timeout has taken its time already.
func worthRetrying(err error) bool {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusServiceUnavailable ||
			response.StatusCode == http.StatusGatewayTimeout
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return false
	}
	return !verify.IsPermanent(err) && transport(err)
}

// transport reports whether err comes from the connection and not from what was
// read through it.
func transport(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// mismatch is content that is not what it was asked for as.
func mismatch(want, got digest.Digest) error {
	return verify.Permanent(policy.ReasonContentMismatch, fmt.Errorf("the content is not what its digest says: asked for %s, got %s", want, got))
}

// explain turns a failure into one that says what was being done, and whether
// asking again could help. It leaves out URLs and what registries wrote: the
// former can hold signed tokens, the latter is an attacker's text.
func explain(err error, doing, host string) error {
	if err == nil {
		return nil
	}
	var permanent *verify.PermanentError
	if errors.As(err, &permanent) {
		return verify.Permanent(permanent.Reason, fmt.Errorf("%s: %w", doing, permanent.Err))
	}
	if reason, text := permanentCause(err, host); reason != "" {
		return verify.Permanent(reason, fmt.Errorf("%s: %s", doing, text))
	}
	return fmt.Errorf("%s: %s", doing, transientCause(err, host))
}

// permanentCause returns a reason word and a sentence for failures that asking
// again would repeat.
func permanentCause(err error, host string) (reason policy.Reason, text string) {
	var response *errcode.ErrorResponse
	if errors.As(err, &response) {
		return permanentStatus(response.StatusCode, host)
	}
	var unknownCA x509.UnknownAuthorityError
	var tooLarge *http.MaxBytesError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return policy.ReasonNotFound, host + " has no such image or tag"
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return policy.ReasonAccessDenied, host + " asks for a user name and password, and no Store gives any; add an imagePullSecret"
	case errors.Is(err, errPrivateAddress):
		return policy.ReasonForbidden, host + " cannot be reached: " + errPrivateAddress.Error()
	case errors.As(err, &unknownCA), errors.As(err, &certificate):
		return policy.ReasonUntrustedRegistry, host + " has a certificate that is not trusted; a Store's caBundle can make it so"
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return policy.ReasonContentMismatch, "the content is not what its digest and size say"
	case errors.Is(err, errdef.ErrSizeExceedsLimit), errors.As(err, &tooLarge):
		return policy.ReasonLimitExceeded, fmt.Sprintf("the answer of %s is larger than %d bytes", host, maxManifestBytes)
	case !transport(err):
		return policy.ReasonInvalidAnswer, host + " gave an answer that is not as the OCI distribution specification says"
	}
	return "", ""
}

func permanentStatus(status int, host string) (reason policy.Reason, text string) {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return policy.ReasonAccessDenied, host + " refuses access; a Store's imagePullSecrets can give it"
	case status == http.StatusNotFound:
		return policy.ReasonNotFound, host + " has no such image or tag"
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status == http.StatusTooEarly, status >= 500:
		return "", ""
	}
	return policy.ReasonInvalidAnswer, fmt.Sprintf("%s answered with status %d", host, status)
}

// transientCause says in a few words what may be over at the next try.
func transientCause(err error, host string) string {
	var response *errcode.ErrorResponse
	var network net.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &response):
		return fmt.Sprintf("%s answered with status %d", host, response.StatusCode)
	case errors.Is(err, context.Canceled):
		return host + " was not waited for any longer"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return host + " did not answer in time"
	case errors.As(err, &dns):
		return host + " could not be looked up"
	case errors.Is(err, errLeftAlone):
		return host + " asked to be left alone for a moment (429 or 503 with Retry-After)"
	}
	return "the connection to " + host + " failed"
}

// errLeftAlone is for hosts that asked for a pause.
var errLeftAlone = errors.New("the host asked to be left alone")
