package provider

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// decision is what is known about a target when the answer is written. Its zero
// value is a target that nothing is known about: undecided.
type decision struct {
	known  bool // outcome and reason were given by a verifier or resolver
	allow  bool
	reason string
	result verify.Result // of verification
	digest digest.Digest // of resolution
}

// keyOutcome is what a key's answer comes to, as logs and metrics call it.
type keyOutcome string

const (
	keyAllowed   keyOutcome = "allowed" // or, for mutation, pinned
	keyWarned    keyOutcome = "warned"  // allowed by a policy that only warns
	keyDenied    keyOutcome = "denied"
	keyInvalid   keyOutcome = "invalid" // the key is malformed
	keyUndecided keyOutcome = "undecided"
)

const lateReason = "not finished in time, try again"

func undecided(format string, arguments ...any) *decision {
	return &decision{reason: fmt.Sprintf(format, arguments...)}
}

// outcome returns the end of a question, and why.
func (q question) outcome(decisions []decision) (keyOutcome, string) {
	if q.err != nil {
		return keyInvalid, q.err.Error()
	}
	switch d := &decisions[q.target]; {
	case d.known && d.allow && d.result.Verdict.Warning != "":
		return keyWarned, d.reason
	case d.known && d.allow:
		return keyAllowed, d.reason
	case d.known:
		return keyDenied, d.reason
	case d.reason == "":
		return keyUndecided, lateReason
	default:
		return keyUndecided, d.reason
	}
}

// verify asks the Verifier about a target.
func (h *handler) verify(ctx context.Context, t target) *decision {
	return judge(h.verifier.Verify(ctx, t.namespace, t.ref), t)
}

// recall is verify for what the Verifier knows, and nil for what it does not.
func (h *handler) recall(_ context.Context, t target) *decision {
	if result, ok := h.verifier.Recall(t.namespace, t.ref); ok {
		return judge(result, t)
	}
	return nil
}

// judge turns a Verifier's result into a decision about what was asked.
func judge(result verify.Result, t target) *decision {
	d := &decision{reason: result.Verdict.Reason, result: result}
	d.result.Namespace = t.namespace
	switch result.Verdict.Outcome {
	case policy.Allowed:
		// An allow is for what was asked and nothing else: whatever mixes two
		// answers up below must not admit an image.
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

// resolve pins a target. One that has a digest is pinned already: that costs no
// network call, and no call to the Resolver that might make one.
func (h *handler) resolve(ctx context.Context, t target) *decision {
	if t.ref.Digest != "" {
		return &decision{known: true, allow: true, digest: t.ref.Digest}
	}
	pinned, err := h.resolver.Resolve(ctx, t.namespace, t.ref)
	switch {
	case verify.IsPermanent(err):
		return &decision{known: true, reason: err.Error()}
	case err != nil:
		return undecided("%v", err)
	case pinned.Host != t.ref.Host || pinned.Repository != t.ref.Repository:
		return undecided("internal error: the digest is of another image")
	case pinned.Digest.Validate() != nil || pinned.Digest.Algorithm() != digest.SHA256:
		return undecided("internal error: there is no sha256 digest")
	}
	return &decision{known: true, allow: true, digest: pinned.Digest}
}
