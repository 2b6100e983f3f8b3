package notation

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// permitted begins what a finding says of a check that failed and is not enforced.
const permitted = "; the verifier is permissive: "

// unlessRevoked returns valid, or what keeps it from being so: a certificate of
// the chain is revoked, or nobody can tell.
func (c *Checker) unlessRevoked(ctx context.Context, chain []*x509.Certificate, valid policy.Finding) policy.Finding {
	finding := c.revoked(ctx, chain, purpose.CodeSigning)
	switch {
	case finding.Reason == "":
		return valid
	case c.logs.revocation:
		valid.Message += permitted + finding.Message
		return valid
	}
	return finding
}

// revoked returns the finding about the first certificate of a verified chain
// that is revoked, or of which it cannot be told (RFC 6960, RFC 5280 section 6.3;
// the library's rules: OCSP first, lists where it gives no answer). Its reason is
// empty if there is none. The root is trusted by name and not checked.
func (c *Checker) revoked(ctx context.Context, chain []*x509.Certificate, why purpose.Purpose) policy.Finding {
	noted := &noting{next: c.revocation}
	client := &http.Client{Transport: noted}
	lists, err := crl.NewHTTPFetcher(client)
	if err != nil {
		return malformed("revocation cannot be checked")
	}
	validator, err := revocation.NewWithOptions(revocation.Options{OCSPHTTPClient: client, CRLFetcher: lists, CertChainPurpose: why})
	if err != nil {
		return malformed("revocation cannot be checked")
	}
	results, err := validator.ValidateContext(ctx, revocation.ValidateContextOptions{CertChain: chain})
	if err != nil || len(results) != len(chain) {
		return invalidCertificate()
	}
	var unknown policy.Finding
	for i, status := range results {
		name := shown(chain[i].Subject.String())
		switch {
		case status == nil:
			return malformed("revocation cannot be checked")
		case status.Result == result.ResultOK, status.Result == result.ResultNonRevokable:
		case status.Result == result.ResultRevoked:
			return policy.Finding{Reason: policy.ReasonRevokedCertificate, Message: fmt.Sprintf("certificate %q is revoked", name),
				Remediation: "sign the image again with another certificate, and find out why this one was revoked"}
		case unknown.Reason == "":
			unknown = noted.explain(name)
		}
	}
	return unknown
}

// noting remembers why requests failed: the library keeps only texts.
type noting struct {
	next http.RoundTripper

	mu                sync.Mutex
	pending, definite error
}

// RoundTrip passes a request on.
func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if verify.IsPermanent(err) {
			n.definite = err
		} else {
			n.pending = err
		}
	}
	return response, err
}

// explain says why it is not known whether a certificate is revoked. An answer
// that is still to come may tell.
func (n *noting) explain(name string) policy.Finding {
	n.mu.Lock()
	defer n.mu.Unlock()
	message := fmt.Sprintf("it is not known whether certificate %q is revoked", name)
	switch {
	case n.pending != nil:
		return policy.Finding{Result: policy.Unknown, Reason: policy.ReasonRevocationUnknown, Message: message + ": " + n.pending.Error()}
	case n.definite != nil:
		return policy.Finding{Reason: policy.ReasonRevocationUnknown, Message: message + ": " + n.definite.Error(),
			Remediation: "have the responder allowed, or set spec.notation.revocation of the Verifier"}
	}
	return policy.Finding{Reason: policy.ReasonRevocationUnknown, Message: message + ": the responder's answer does not tell, is not signed by the issuer, or is too old",
		Remediation: "ask the certificate's issuer to publish a current answer"}
}

// revocationError carries a finding through the library, which wraps it.
type revocationError struct{ finding policy.Finding }

// Error returns the finding's message.
func (e revocationError) Error() string { return e.finding.Message }

// timestampRevocation checks the chains of timestamp authorities, which the
// library always asks for.
type timestampRevocation struct{ checker *Checker }

// ValidateContext returns that every certificate is good, or a [revocationError].
func (t timestampRevocation) ValidateContext(ctx context.Context, options revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	if t.checker.revocation != nil && !t.checker.logs.revocation {
		if finding := t.checker.revoked(ctx, options.CertChain, purpose.Timestamping); finding.Reason != "" {
			return nil, revocationError{finding}
		}
	}
	good := make([]*result.CertRevocationResult, len(options.CertChain))
	for i := range good {
		good[i] = &result.CertRevocationResult{Result: result.ResultOK}
	}
	return good, nil
}

// offline stands where the library would check signing certificates: they are
// checked after it, and the policy says so. Should it be called, it fails.
type offline struct{}

// ValidateContext fails.
func (offline) ValidateContext(context.Context, revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	return nil, errors.New("revocation is not checked here")
}
