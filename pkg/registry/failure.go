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

	"github.com/landwaiter/landwaiter/pkg/egress"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// attempt calls f, and once more if it failed transiently and there is time. It does
// not retry a host that asked for a pause.
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

// worthRetrying reports whether a failure may pass within a moment: a lost connection, a
// gateway that has just restarted. After a timeout there is no time left.
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
	return !verify.IsPermanent(err) && connectionFailed(err)
}

// connectionFailed reports whether err comes from the connection and not from the
// content that was read through it.
func connectionFailed(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// mismatch is the error for content with another digest than requested.
func mismatch(want, got digest.Digest) error {
	return verify.Permanent(policy.ReasonContentMismatch, fmt.Errorf("the content is not what its digest says: asked for %s, got %s", want, got))
}

// explain wraps a failure with what was being done, and makes it a
// [verify.PermanentError] if a retry could not help. It leaves out URLs, which can hold
// signed tokens, and text of registries, which an attacker may have written.
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

// permanentCause returns a reason and a sentence for failures that a retry would
// repeat, and an empty reason for others.
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
	case errors.Is(err, egress.ErrAddress):
		return policy.ReasonForbidden, host + " cannot be reached: " + egress.ErrAddress.Error() + ", and no ClusterStore lists it under registries"
	case errors.Is(err, egress.ErrMetadata):
		return policy.ReasonForbidden, host + " cannot be reached: " + egress.ErrMetadata.Error()
	case errors.As(err, &unknownCA), errors.As(err, &certificate):
		return policy.ReasonUntrustedRegistry, host + " has a certificate that is not trusted; a Store's caBundle can make it so"
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return policy.ReasonContentMismatch, "the content is not what its digest and size say"
	case errors.Is(err, errdef.ErrSizeExceedsLimit), errors.As(err, &tooLarge):
		return policy.ReasonLimitExceeded, fmt.Sprintf("the answer of %s is larger than %d bytes", host, maxManifestBytes)
	case !connectionFailed(err):
		return policy.ReasonInvalidAnswer, host + " gave an answer that violates the OCI distribution specification"
	}
	return "", ""
}

// permanentStatus is permanentCause for an HTTP status.
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

// transientCause describes a failure that a retry may not repeat.
func transientCause(err error, host string) string {
	var response *errcode.ErrorResponse
	var network net.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &response):
		return fmt.Sprintf("%s answered with status %d", host, response.StatusCode)
	case errors.Is(err, context.Canceled):
		return host + " did not answer before the caller gave up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return host + " did not answer in time"
	case errors.As(err, &dns):
		return host + " could not be looked up"
	case errors.Is(err, errBackOff):
		return host + " asked for a pause (429 or 503 with Retry-After)"
	}
	return "the connection to " + host + " failed"
}

// errBackOff means that the host asked for a pause, which is not over.
var errBackOff = errors.New("the host asked for a pause")
