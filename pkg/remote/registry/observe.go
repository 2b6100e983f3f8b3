package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// Exchange is one request and its outcome. It has no attacker-controlled text.
type Exchange struct {
	// Namespace is the namespace of the request.
	Namespace verify.Namespace
	// Registry is the host of the location, from the image name or a Store, also for requests to
	// its token server and after redirects. It is empty unless a ClusterStore names the host:
	// otherwise the author of a pod chooses it.
	Registry string
	Stage    Stage
	Outcome  Outcome
	// Waited is how long the request waited for the limits of its account and of the host,
	// Duration the time from then to the header of the answer. Both are 0 for a request that was
	// refused earlier.
	Waited, Duration time.Duration
}

// Stage is the part of a verification that a request is for.
type Stage string

// The stages.
const (
	StageResolve Stage = "resolve" // the digest of a tag, the size of a digest
	StageList    Stage = "list"    // manifests that refer to the image
	StageFetch   Stage = "fetch"   // evidence
	StageToken   Stage = "token"   // a token for one of the others
)

// Outcome is the outcome of a request.
type Outcome string

// The outcomes. "not_found" is common, because some registries lack the referrers API and
// some images lack a signature tag; so are "unauthorized" with token servers, and "canceled"
// when an answer makes another request unnecessary.
const (
	OutcomeOK           Outcome = "ok"
	OutcomeNotFound     Outcome = "not_found"
	OutcomeUnauthorized Outcome = "unauthorized"
	OutcomeForbidden    Outcome = "forbidden"
	OutcomeRateLimited  Outcome = "rate_limited" // 429
	OutcomeClientError  Outcome = "client_error" // any other 4xx
	OutcomeServerError  Outcome = "server_error"
	OutcomeTimeout      Outcome = "timeout"
	OutcomeUntrusted    Outcome = "untrusted"   // because of its certificate
	OutcomeUnreachable  Outcome = "unreachable" // no connection, or it was lost
	OutcomeProxy        Outcome = "proxy"       // the proxy did not connect
	OutcomeCanceled     Outcome = "canceled"
	OutcomeRefused      Outcome = "refused"    // by us: an address, a scheme, a token server, a broken Store
	OutcomePaused       Outcome = "paused"     // not sent: the registry asked for a pause
	OutcomeOverloaded   Outcome = "overloaded" // not sent: too many were waiting, or for too long
)

// times are when a request started to wait, was sent, and had its header. The zero time means
// that it did not get that far.
type times struct{ began, sent, ended time.Time }

// observe calls the observer for a request.
func (g *guard) observe(req *http.Request, resp *http.Response, err error, at times) {
	tell := g.session.client.options.Observe
	if tell == nil {
		return
	}
	x := Exchange{Namespace: g.session.access.Namespace, Stage: g.stage}
	if g.session.access.named(g.origin) || g.named {
		x.Registry = g.origin
	}
	// Token servers can have any path, and a redirect (req.Response) can lead to any.
	if req.Response == nil && !isMetadata(req.URL.Path) && !strings.Contains(req.URL.Path, "/blobs/") {
		x.Stage = StageToken
	}
	switch {
	case !at.ended.IsZero():
		x.Waited, x.Duration = at.sent.Sub(at.began), at.ended.Sub(at.sent)
	case !at.began.IsZero():
		x.Waited = time.Since(at.began)
	}
	switch {
	case err == nil:
		x.Outcome = outcomeOfStatus(resp.StatusCode)
	case !at.began.IsZero() && at.sent.IsZero() && !errors.Is(err, context.Canceled) && !errors.Is(err, errBackOff):
		x.Outcome = OutcomeOverloaded
	default:
		x.Outcome = outcomeOfError(req.Context(), err)
	}
	tell(x)
}

func outcomeOfStatus(status int) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return OutcomeOK
	case status == http.StatusUnauthorized:
		return OutcomeUnauthorized
	case status == http.StatusForbidden:
		return OutcomeForbidden
	case status == http.StatusNotFound:
		return OutcomeNotFound
	case status == http.StatusTooManyRequests:
		return OutcomeRateLimited
	case status < http.StatusInternalServerError:
		return OutcomeClientError
	}
	return OutcomeServerError
}

func outcomeOfError(ctx context.Context, err error) Outcome {
	var network net.Error
	var proxy *egress.ProxyError
	deadline, limited := ctx.Deadline()
	switch {
	case errors.Is(err, errBackOff):
		return OutcomePaused
	case verify.IsPermanent(err), errors.Is(err, egress.ErrAddress), errors.Is(err, egress.ErrMetadata):
		return OutcomeRefused
	case limited && !time.Now().Before(deadline): // regardless of what the transport makes of it
		return OutcomeTimeout
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return OutcomeCanceled
	case errors.As(err, &proxy):
		return OutcomeProxy
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return OutcomeTimeout
	case untrusted(err):
		return OutcomeUntrusted
	}
	return OutcomeUnreachable
}
