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

// Exchange is one request and what came of it. It has no attacker-controlled text.
type Exchange struct {
	// Namespace is the one that the request was made for.
	Namespace verify.Namespace
	// Registry is the host of the location that is read, which the image names or a Store, also
	// for requests to its token server and after redirects. It is empty unless a ClusterStore
	// names the host: whoever names an image chooses it.
	Registry string
	Stage    Stage
	Outcome  Outcome
	// Waited is how long the request waited for the limits of its account and of the
	// host, Duration the time from then to the header of the answer. Both are 0 for a
	// request that was refused before.
	Waited, Duration time.Duration
}

// Stage is the part of a verification that a request is for.
type Stage string

// The stages.
const (
	StageResolve Stage = "resolve" // the digest of a tag, the size of a digest
	StageList    Stage = "list"    // what refers to the image
	StageFetch   Stage = "fetch"   // evidence
	StageToken   Stage = "token"   // a token for one of the others
)

// Outcome is what came of a request.
type Outcome string

// The outcomes. A registry without the referrers API and an image without a signature tag
// make "not_found" an ordinary one, tokens "unauthorized", and an answer that makes another
// request unnecessary "canceled".
const (
	OutcomeOK           Outcome = "ok"
	OutcomeNotFound     Outcome = "not_found"
	OutcomeUnauthorized Outcome = "unauthorized"
	OutcomeForbidden    Outcome = "forbidden"
	OutcomeRateLimited  Outcome = "rate_limited" // 429
	OutcomeClientError  Outcome = "client_error" // any other 4xx
	OutcomeServerError  Outcome = "server_error"
	OutcomeTimeout      Outcome = "timeout"
	OutcomeUntrusted    Outcome = "untrusted"   // its certificate
	OutcomeUnreachable  Outcome = "unreachable" // no connection, or it was lost
	OutcomeProxy        Outcome = "proxy"       // the proxy did not connect
	OutcomeCanceled     Outcome = "canceled"
	OutcomeRefused      Outcome = "refused"    // by us: an address, a scheme, a token server, a broken Store
	OutcomePaused       Outcome = "paused"     // not sent: the registry asked for a pause
	OutcomeOverloaded   Outcome = "overloaded" // not sent: too many were waiting, or for too long
)

// times are when a request began to wait, was sent, and had its header. The zero time
// means that it did not come to that.
type times struct{ began, sent, ended time.Time }

// observe tells the observer of a request.
func (g *guard) observe(req *http.Request, resp *http.Response, err error, at times) {
	tell := g.session.client.options.Observe
	if tell == nil {
		return
	}
	x := Exchange{Namespace: g.session.access.Namespace, Stage: g.stage}
	if g.session.access.named(g.origin) || g.named {
		x.Registry = g.origin
	}
	// Token servers have any path; a redirect (req.Response) may lead to any, too.
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
	case limited && !time.Now().Before(deadline): // whatever the transport makes of it
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
