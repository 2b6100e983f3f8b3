package notation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"golang.org/x/crypto/ocsp"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// checkRevocation refuses a verified chain for its first certificate that is revoked, or else for the first one
// whose status is not known. "If the revocation status of any of the certificates is revoked or cannot be
// determined (revocation unavailable), fail this step" (trust store and trust policy specification,
// "Certificate Revocation Evaluation"; RFC 6960, RFC 5280 section 6.3). The library asks OCSP first, and lists
// if OCSP gives no answer. The root is trusted by name and not checked. A certificate that became invalid after
// at, unless that is zero, is not revoked. It returns the expiry of the responses and lists that it used.
func (c *Checker) checkRevocation(ctx context.Context, chain []*x509.Certificate, at time.Time,
	why purpose.Purpose) (until time.Time, err error) {
	recorded := &recorder{next: c.revocation, unasked: map[string]error{}, ends: map[string]time.Time{}}
	client := &http.Client{Transport: recorded}
	fetched := newFetchedLists(chain, c.revocation, recorded)
	named := c.withLists(chain, fetched)
	for _, certificate := range named.chain {
		if max(len(certificate.OCSPServer), len(certificate.CRLDistributionPoints)) > maxDistributionPoints {
			return until, tooManyPoints()
		}
	}
	if n := len(chain); n > 0 && !slices.ContainsFunc(named.chain[:n-1], canBeRevoked) {
		return until, nil // the library would only verify the chain once more
	}
	validator, err := revocation.NewWithOptions(revocation.Options{OCSPHTTPClient: client, CRLFetcher: named, CertChainPurpose: why})
	if err != nil {
		return until, malformed("revocation cannot be checked")
	}
	results, err := validator.ValidateContext(ctx, revocation.ValidateContextOptions{CertChain: named.chain, AuthenticSigningTime: at})
	if err == nil && len(results) != len(chain) {
		err = errors.New("not every certificate has a result")
	}
	if err != nil {
		return until, invalidCertificate(err)
	}
	var unknown error
	for i, status := range results {
		name := shown(chain[i].Subject.String())
		switch {
		case status == nil:
			return until, malformed("revocation cannot be checked")
		case status.Result == result.ResultNonRevokable:
		case status.Result == result.ResultOK:
			end, doubt := fine(chain[i:], status, named.lists[i], fetched, recorded)
			until, unknown = policy.Sooner(until, end), cmp.Or(unknown, doubt)
		case status.Result == result.ResultRevoked:
			return until, verify.Refuse(policy.ReasonRevokedCertificate, fmt.Sprintf("certificate %q is revoked", name),
				"sign the image again with another certificate, and find out why this one was revoked")
		case unknown != nil:
		case named.lists[i] != nil:
			unknown = explainList(name, named.lists[i])
		default:
			unknown = recorded.explain(name)
		}
	}
	return until, unknown
}

// fine returns when the good status of the first certificate of a chain expires, or why the status is unknown
// although the library calls it good.
func fine(chain []*x509.Certificate, status *result.CertRevocationResult, own *x509.RevocationList, fetched *fetchedLists,
	told *recorder) (time.Time, error) {
	name := shown(chain[0].Subject.String())
	switch {
	case own != nil:
		return own.NextUpdate, nil
	case status.RevocationMethod == result.RevocationMethodOCSP:
		return told.end(chain[0]), nil
	case status.RevocationMethod == result.RevocationMethodOCSPFallbackCRL && told.waitsFor(chain[0].OCSPServer):
		return time.Time{}, told.explain(name) // a list replaces responders that fail, not ones that nobody has asked
	}
	until, err := fetched.about(chain[0], chain[1])
	if err != nil {
		return until,
			verify.Refuse(policy.ReasonRevocationUnknown, fmt.Sprintf("it is not known whether certificate %q is revoked: %s", name, err),
				"ask the certificate's issuer which list is meant, and find out who answered with another one")
	}
	return until, nil
}

// canBeRevoked reports whether a certificate names a source of its revocation status. The
// library calls other certificates "non-revokable".
func canBeRevoked(certificate *x509.Certificate) bool {
	return len(certificate.OCSPServer)+len(certificate.CRLDistributionPoints) > 0
}

// recorder records why requests failed: the library keeps only messages.
type recorder struct {
	next http.RoundTripper

	mu                 sync.Mutex
	pending, permanent error
	unasked            map[string]error     // by the host of a responder that has not answered yet
	ends               map[string]time.Time // of responses, by the serial number that they cover
}

// RoundTrip passes a request to a responder, and records its error, or when its response expires.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		if waiting, ok := errors.AsType[interface {
			error
			Pending() bool
		}](err); ok && waiting.Pending() {
			r.mu.Lock()
			r.unasked[request.URL.Host] = err
			r.mu.Unlock()
		}
		return nil, r.failed(err)
	}
	content, err := contentOf(response.Body, maxResponse)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, r.failed(fmt.Errorf("read the response of %s: %w", request.URL.Host, err))
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	// The library checks it, but does not return its expiry.
	if parsed, err := ocsp.ParseResponse(content, nil); err == nil {
		r.mu.Lock()
		serial := parsed.SerialNumber.String()
		r.ends[serial] = policy.Sooner(r.ends[serial], parsed.NextUpdate)
		r.mu.Unlock()
	}
	return response, nil
}

// end returns the expiry of the response about a certificate.
func (r *recorder) end(certificate *x509.Certificate) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends[certificate.SerialNumber.String()]
}

// waitsFor reports whether one of these responders has not answered yet.
func (r *recorder) waitsFor(servers []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(servers, func(server string) bool {
		parsed, err := url.Parse(server)
		return err == nil && r.unasked[parsed.Host] != nil
	})
}

// failed records err and returns it.
func (r *recorder) failed(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if verify.IsPermanent(err) {
		r.permanent = err
	} else {
		r.pending = err
	}
	return err
}

// tooManyPoints says that a certificate or a list names too many locations: the library queries all of
// them.
func tooManyPoints() error {
	return pastLimit(fmt.Sprintf("a certificate of its chain, or a revocation list, names more than %d places where it may be revoked",
		maxDistributionPoints))
}

// explain says why the revocation status of a certificate is unknown. The error is
// inconclusive if an answer is still being fetched.
func (r *recorder) explain(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	message := fmt.Sprintf("it is not known whether certificate %q is revoked", name)
	switch {
	case r.pending != nil:
		return verify.Inconclusive(policy.ReasonRevocationUnknown, message+": "+r.pending.Error())
	case r.permanent != nil:
		return verify.Refuse(policy.ReasonRevocationUnknown, message+": "+r.permanent.Error(),
			"ask a cluster admin to allow the responder's host, or set spec.notation.revocation of the Verifier to Ignore")
	}
	return verify.Refuse(policy.ReasonRevocationUnknown, message+": the responder's answer gives no status, is not signed by the "+
		"issuer, or is too old",
		"ask the certificate's issuer to publish a current answer")
}

// revocationError carries our error through the library, which wraps it.
type revocationError struct{ error }

// timestampRevocation checks the chains of timestamp authorities for the library, which
// always requires that.
type timestampRevocation struct{ checker *Checker }

// resting is the earliest expiry of what a verification used: the library returns nothing about a check that it was
// given.
type resting struct {
	mu    sync.Mutex
	until time.Time
}

type restingKey struct{}

func (r *resting) on(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = policy.Sooner(r.until, until)
}

// ValidateContext reports every certificate as good, or returns a [revocationError].
func (t timestampRevocation) ValidateContext(ctx context.Context,
	options revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	if t.checker.revocation != nil && !t.checker.logs.revocation {
		until, err := t.checker.checkRevocation(ctx, options.CertChain, options.AuthenticSigningTime, purpose.Timestamping)
		if err != nil {
			return nil, revocationError{err}
		}
		if resting, ok := ctx.Value(restingKey{}).(*resting); ok {
			resting.on(until)
		}
	}
	good := make([]*result.CertRevocationResult, len(options.CertChain))
	for i := range good {
		good[i] = &result.CertRevocationResult{Result: result.ResultOK}
	}
	return good, nil
}

// offline replaces the library's revocation check of signing certificates, which the
// policy skips: checkRevocation does it. It fails if it is called.
type offline struct{}

// ValidateContext fails.
func (offline) ValidateContext(context.Context, revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	return nil, errors.New("revocation is not checked here")
}

// listScheme is the scheme of addresses that represent lists of the Verifier. No request is
// ever made for one.
const listScheme = "landwaiter-list:"

// namedLists is a chain whose certificates name the Verifier's lists that cover them, and
// nothing else, so that the library checks these like fetched lists: signature, dates and
// entries.
type namedLists struct {
	online crl.Fetcher
	chain  []*x509.Certificate
	lists  []*x509.RevocationList // by certificate; nil means the usual requests
}

// withLists names the newest list for each certificate of a chain.
func (c *Checker) withLists(chain []*x509.Certificate, online crl.Fetcher) namedLists {
	n := namedLists{online: online, chain: slices.Clone(chain), lists: make([]*x509.RevocationList, len(chain))}
	for i := range len(chain) - 1 {
		for _, list := range c.lists {
			if parsed := list.Parsed(); list.About(chain[i], chain[i+1]) && (n.lists[i] == nil || parsed.ThisUpdate.After(n.lists[i].ThisUpdate)) {
				n.lists[i] = parsed
			}
		}
		if n.lists[i] != nil {
			named := *chain[i]
			named.OCSPServer, named.CRLDistributionPoints = nil, []string{listScheme + strconv.Itoa(i)}
			n.chain[i] = &named
		}
	}
	return n
}

// Fetch implements [crl.Fetcher].
func (n namedLists) Fetch(ctx context.Context, address string) (*crl.Bundle, error) {
	number, ours := strings.CutPrefix(address, listScheme)
	if !ours {
		return n.online.Fetch(ctx, address)
	}
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(n.lists) || n.lists[i] == nil {
		return nil, fmt.Errorf("there is no list %.100q", number) // a certificate of the evidence names it
	}
	return &crl.Bundle{BaseCRL: n.lists[i]}, nil
}

// explainList says why a list of the Verifier does not tell whether a certificate is revoked.
func explainList(name string, list *x509.RevocationList) error {
	return verify.Refuse(policy.ReasonRevocationUnknown,
		fmt.Sprintf("it is not known whether certificate %q is revoked: the Verifier's revocation list, which expires at %s, has expired, is "+
			"not signed by the issuer, or has an extension that is not understood",
			name, list.NextUpdate.UTC().Format(time.RFC3339)),
		"put the issuer's current list into the trust store that spec.notation.revocationListTrustStoreRefs names")
}
