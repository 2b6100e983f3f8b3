package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/fair"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// backOffKey limits a pause that a host asks for to one account, unless it is [shared]. An
// account can make a registry ask for pauses: by a flood, with a credential beyond its limit,
// or by a repository that proxies to another server. It must not block another account that
// way.
type backOffKey struct {
	account verify.Account
	host    string
}

// guard is the round tripper of one tenant for one location. Every request passes through it,
// including those to token servers and after redirects.
type guard struct {
	session *session
	origin  string // the host of the location
	named   bool   // by a cluster admin, as [Location.Named]
	stage   Stage
	store   Store
	// credential is the login in use.
	credential Credential
	// realms are the verified token servers, by the path that represents each.
	realms sync.Map // of string to *url.URL
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	var times times
	sent, realm := g.toTokenServer(req)
	resp, err := g.send(sent, &times)
	g.observe(sent, resp, err, times)
	if err == nil && realm != nil {
		if err := g.follow(req, realm, resp); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// send sends a permitted request when its turn comes.
func (g *guard) send(req *http.Request, times *times) (*http.Response, error) {
	host := hostOf(req.URL)
	if err := g.permit(req, host); err != nil {
		return nil, err
	}
	client, account := g.session.client, g.session.access.account()
	key := backOffKey{account: account, host: host}
	shared, leave := g.shared(host)
	defer leave()
	if until, ok := client.backOffs.GetIfPresent(key); ok && shared == nil && time.Now().Before(until) {
		return nil, errBackOff
	}
	transport, err := g.transport(req, host)
	if err != nil {
		return nil, err
	}
	times.began = time.Now()
	if err := shared.waitOut(req.Context(), account); err != nil { // unsent requests use no rate
		return nil, err
	}
	pace := client.pace(g.session.access)
	if err := pace.requests.Wait(req.Context()); err != nil {
		return nil, fmt.Errorf("wait for the rate limit on requests to registries: %w", err)
	}
	awaited := verify.Awaiting(req.Context(), g.origin) // for a free connection, too: those in use wait for the host
	turns, leaveTurns := client.turns(host)
	defer leaveTurns()
	turn, err := g.turn(req.Context(), host, turns, shared)
	if err != nil {
		awaited()
		return nil, err
	}
	times.sent = time.Now()
	resp, err := transport.RoundTrip(req)
	times.ended = time.Now()
	// A request is in flight until its header arrives, not until its body is read: oras-go sends
	// a second request before reading the first answer, and must not wait for itself.
	turn.Leave()
	if resp, err = egress.RefuseUpgrade(resp, err); err != nil {
		awaited()
		return nil, err
	}
	if resp.ProtoMajor == 1 {
		resp.Body = readBody{resp.Body}
	}
	resp.Body = &pacedBody{ReadCloser: resp.Body, ctx: req.Context(), bytes: pace.bytes, closed: awaited}
	asked := askedFor(req)
	if !strings.Contains(asked, "/blobs/") { // the caller of Fetch has memory for those
		resp.Body = &heldBody{ReadCloser: resp.Body, memory: g.session.hold()} // describe reads it again
	}
	if isMetadata(asked) {
		// It fails at the limit instead of ending: a truncated manifest must not pass for a whole
		// one.
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxManifestBytes)
	}
	if wait := retryAfter(resp); wait > 0 && shared != nil {
		shared.refuse(account, wait)
	} else if wait > 0 {
		client.backOffs.Set(key, time.Now().Add(min(wait, maxBackOff)))
	}
	if err := g.checkChallenge(host, resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp, nil
}

// turn waits for a connection to the host, and before that until a shared pause has ended and
// the shared rate admits the request. The caller leaves the turn.
func (g *guard) turn(ctx context.Context, host string, turns *fair.Turns[verify.Account],
	shared *shared) (*fair.Turn[verify.Account], error) {
	account := g.session.access.account()
	for {
		if err := shared.enter(ctx, account); err != nil {
			return nil, fmt.Errorf("wait until %s may be asked: %w", host, err)
		}
		turn, err := turns.Take(ctx, account)
		if err != nil {
			return nil, fmt.Errorf("wait for a free connection to %s: %w", host, err)
		}
		if shared.paused(account).IsZero() {
			return turn, nil
		}
		turn.Leave() // the pause began while the request was in the queue
	}
}

// permit decides whether a request may be sent.
func (g *guard) permit(req *http.Request, host string) error {
	switch req.URL.Scheme {
	case "https":
	case "http":
		if rule, _ := g.session.access.rule(host); !rule.PlainHTTP {
			return verify.PermanentWith(policy.ReasonForbidden, fmt.Errorf("%s would be reached without TLS", host),
				"use a registry with TLS; only a ClusterStore with insecurePlainHTTP permits another")
		}
	default:
		return verify.Permanent(policy.ReasonForbidden, fmt.Errorf("%s uses the scheme %.20q", host, req.URL.Scheme))
	}
	// A token request posts a refresh token in its body; no other request posts.
	carries := req.Header.Get("Authorization") != "" || (req.Method != http.MethodGet && req.Method != http.MethodHead)
	if carries && !g.trusted(host) {
		return verify.Permanent(policy.ReasonForbidden, fmt.Errorf("credentials for %s would be sent to %s", g.origin, host))
	}
	return nil
}

// trusted reports whether host may receive the credentials for the origin: the registry
// itself, its known token server, and hosts that the same store lists.
func (g *guard) trusted(host string) bool {
	if host == g.origin {
		return true
	}
	switch g.origin {
	case "docker.io":
		return host == "auth.docker.io"
	case "registry.gitlab.com":
		if host == "gitlab.com" {
			return true
		}
	}
	return slices.Contains(g.store.Registries, host)
}

// hostOf returns the host of u as in image names, "" if u is nil.
func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	host, err := image.NormaliseHost(u.Host)
	if err != nil {
		return strings.ToLower(u.Host)
	}
	return host
}

// retryAfter returns the pause that a host asks for, in seconds or as a date (RFC 9110,
// section 10.2.3), and 0 without one.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(max(min(seconds, int(maxBackOff/time.Second)), 0)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return time.Until(at)
	}
	return 0
}

// askedFor returns the requested path before any redirects: the server of the content must not decide how it is read.
func askedFor(req *http.Request) string {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req.URL.Path
}

// isMetadata reports whether a path of the distribution API returns manifests or lists of
// them, which are small.
func isMetadata(path string) bool {
	return strings.Contains(path, "/manifests/") || strings.Contains(path, "/referrers/")
}

// checkRedirect bounds redirects. oras-go removes the Authorization header on redirects to
// another host, and guard checks every hop.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return verify.Permanent(policy.ReasonLimitExceeded, fmt.Errorf("%s redirects more than %d times", hostOf(via[0].URL), maxRedirects))
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return verify.Permanent(policy.ReasonForbidden, fmt.Errorf("%s redirects from HTTPS to %.20q", hostOf(via[0].URL), req.URL.Scheme))
	}
	return nil
}
