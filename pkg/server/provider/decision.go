package provider

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// decision is the answer about one target. The zero value is undecided.
type decision struct {
	known  bool // decided: allow and reason come from the Decider or the Resolver
	allow  bool
	reason string
	fix    string        // what to do about a denial, may be empty
	judged bool          // result comes from the Decider
	result verify.Result // of verification
	digest digest.Digest // of resolution

	began time.Time     // when a worker began; zero if it was recalled
	took  time.Duration // from then on
}

const lateReason = "not finished in time, try again"

func undecided(format string, arguments ...any) decision {
	return decision{reason: fmt.Sprintf(format, arguments...)}
}

// outcome returns the answer to a key, and why.
func (k distinctKey) outcome(decisions []decision) (KeyOutcome, string) {
	if k.err != nil {
		return KeyInvalid, k.err.Error()
	}
	switch d := &decisions[k.target]; {
	case d.known && d.allow && d.result.Exception != (policy.ObjectRef{}):
		return KeyExcepted, d.reason
	case d.known && d.allow && d.result.Verdict.Warning != "":
		return KeyWarned, d.reason
	case d.known && d.allow && d.result.Verdict.Unverified:
		return KeyUnverified, d.reason
	case d.known && d.allow:
		return KeyAllowed, d.reason
	case d.known:
		return KeyDenied, d.reason
	case d.reason == "":
		return KeyUndecided, lateReason
	default:
		return KeyUndecided, d.reason
	}
}

// text returns why a target is not allowed and what to do about it, on one line of at most
// room bytes.
func (d *decision) text(room int) string {
	return policy.OneLine(policy.Verdict{Reason: cmp.Or(d.reason, lateReason), Remediation: d.fix}.TextWithin(room))
}

// verify asks the Decider about a target.
func (h *handler) verify(ctx context.Context, t target) (decision, bool) {
	return decisionOf(h.decider.Verify(ctx, t.namespace, t.ref), t), true
}

// recall asks the Decider without waiting.
func (h *handler) recall(_ context.Context, t target) (decision, bool) {
	result, known := h.decider.Recall(t.namespace, t.ref)
	if !known {
		return decision{}, false
	}
	return decisionOf(result, t), true
}

// decisionOf turns a Decider's result into a decision about t.
func decisionOf(result verify.Result, t target) decision {
	d := decision{reason: result.Verdict.Reason, fix: result.Verdict.Remediation, judged: true, result: result}
	d.result.Namespace = t.namespace
	switch result.Verdict.Outcome {
	case policy.Allowed:
		// Check that the verdict is about t: a mix-up in a lower layer must not allow
		// an image.
		if !answers(result, t) {
			return undecided("internal error: the verdict is about another image")
		}
		d.known, d.allow = true, true
	case policy.Denied:
		d.known = true
	case policy.Undecided:
	default:
		return undecided("internal error: the verdict is %d", result.Verdict.Outcome)
	}
	return d
}

func answers(result verify.Result, t target) bool {
	return result.Namespace == t.namespace &&
		result.Reference.Host == t.ref.Host && result.Reference.Repository == t.ref.Repository &&
		result.Reference.Tag == t.ref.Tag &&
		(t.ref.Digest == "" || result.Digest == t.ref.Digest)
}

// resolve pins a target. A target with a digest is pinned already and needs no call
// of the Resolver, which may use the network.
func (h *handler) resolve(ctx context.Context, t target) (decision, bool) {
	if t.ref.Digest != "" {
		return decision{known: true, allow: true, digest: t.ref.Digest}, true
	}
	pinned, err := h.resolver.Resolve(ctx, t.namespace, t.ref)
	switch {
	case verify.IsPermanent(err):
		return decision{known: true, reason: err.Error(), fix: verify.FindingOf(err).Remediation}, true
	case err != nil:
		return undecided("%v", err), true
	case pinned.Host != t.ref.Host || pinned.Repository != t.ref.Repository:
		return undecided("internal error: the digest is of another image"), true
	case pinned.Digest.Validate() != nil || pinned.Digest.Algorithm() != digest.SHA256:
		return undecided("internal error: there is no sha256 digest"), true
	}
	return decision{known: true, allow: true, digest: pinned.Digest}, true
}
