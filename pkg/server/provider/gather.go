package provider

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// work decides about one target. It should return before ctx ends, and returns false if it
// cannot decide.
type work func(ctx context.Context, t target) (decision, bool)

// job holds the targets of a request that workers decide about.
type job struct {
	traceID string
	targets []target
	left    []int // indexes into targets
	places  *places
	do      work
	next    atomic.Int64 // index into left
}

type finished struct {
	number int
	*decision
}

// gather runs a job with several workers and stores their decisions. It stops waiting when
// the grace period after the end of ctx is over: work may ignore ctx, and a missing decision
// stays undecided.
func (h *handler) gather(ctx context.Context, j *job, decisions []decision, grace time.Duration) {
	done := make(chan finished, len(j.left)) // has space for all, so that late workers never block
	for range min(len(j.left), maxParallelKeys) {
		go h.worker(ctx, j, done)
	}
	ended := ctx.Done()
	var over <-chan time.Time
	for missing := len(j.left); missing > 0; {
		select {
		case n := <-done:
			decisions[n.number] = *n.decision
			missing--
		case <-ended:
			ended, over = nil, time.After(grace)
		case <-over:
			return
		}
	}
}

// worker decides about targets until none is left or ctx ends.
func (h *handler) worker(ctx context.Context, j *job, done chan<- finished) {
	for ctx.Err() == nil {
		next := int(j.next.Add(1)) - 1
		if next >= len(j.left) || !j.places.join() {
			return
		}
		i := j.left[next]
		began := time.Now()
		d, _ := h.recovering(ctx, j.traceID, j.targets[i], j.do)
		d.began, d.took = began, time.Since(began)
		j.places.leave() // first, so that an answered request holds nothing
		done <- finished{i, &d}
	}
}

// recovering turns a panic into an undecided target: a panic must not end the
// process, allow an image, or be cached as a denial.
func (h *handler) recovering(ctx context.Context, traceID string, t target, do work) (d decision, known bool) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			h.log.WithFields(logrus.Fields{"traceID": traceID, "namespace": t.namespace.Label(), "image": t.ref.String(),
				"stack": policy.Cut(string(debug.Stack()), maxStackBytes)}).
				Errorf("panic: %s", policy.Cut(fmt.Sprint(cause), maxReasonBytes))
			d, known = undecided("internal error"), true
		}
	}()
	return do(ctx, t)
}

// decision is the answer about one target. The zero value is undecided.
type decision struct {
	answer verify.Answer
	judged bool          // result comes from the Decider
	result verify.Result // of verification; of resolution, the digest or why there is none

	began time.Time     // when a worker began; zero if it was recalled
	took  time.Duration // since then
}

const lateReason = "not finished in time, try again"

// lateCause is a word for why nothing was decided before ctx ended: the registry is to blame, unless the
// client left or this process was suspended.
func lateCause(ctx context.Context) policy.Reason {
	if verify.StoodStill(ctx) {
		return policy.ReasonUnfinished
	}
	return verify.FindingOf(ctx.Err()).Reason
}

func undecided(reason string) decision {
	return decision{answer: verify.AnswerUndecided, result: verify.Result{Verdict: policy.NotDecided(policy.ObjectRef{}, reason)}}
}

// decided reports whether d is final: it comes from the Decider or the Resolver.
func (d *decision) decided() bool { return d.answer.Allows() || d.answer == verify.AnswerDenied }

// answer returns the answer to a key, and why.
func (k distinctKey) answer(decisions []decision) (verify.Answer, string) {
	if k.err != nil {
		return verify.AnswerInvalid, k.err.Error()
	}
	switch d := &decisions[k.target]; {
	case d.decided():
		return d.answer, d.result.Verdict.Reasons(maxReasonsBytes)
	default:
		return verify.AnswerUndecided, cmp.Or(d.result.Verdict.Reason, lateReason)
	}
}

// malformed returns why a key is not an image, and the contact, on one line.
func (k distinctKey) malformed() string {
	return policy.OneLine(policy.Verdict{Reason: k.err.Error(), Contact: k.contact}.TextWithin(maxReasonBytes))
}

// text returns why a target is not allowed and what to do about it, on one line of at most
// room bytes for each denial.
func (d *decision) text(room int) string {
	verdict := d.result.Verdict
	verdict.Reason = cmp.Or(verdict.Reason, lateReason) + placeholder(d.result.Reference)
	return policy.OneLine(verdict.TextWithin(room))
}

// placeholder explains "auto" in a Deployment, "" for every other image.
func placeholder(ref image.Reference) string {
	if ref.Host == "docker.io" && ref.Repository == "library/auto" && ref.Tag == "latest" {
		return "; if auto is the placeholder of Istio's gateways, which its webhook replaces in pods, a cluster admin can list auto in " +
			"exemptImages of the constraint: the pods' real images are still verified"
	}
	return ""
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

// decisionOf turns a Decider's result into a decision about t. A verdict about another image,
// which would be a bug in a lower layer, must not allow this one.
func decisionOf(result verify.Result, t target) decision {
	d := decision{answer: result.Answer(), judged: true, result: result}
	if d.answer.Allows() && !answers(result, t) {
		return undecided("internal error: the verdict is about another image")
	}
	d.result.Namespace = t.namespace
	return d
}

func answers(result verify.Result, t target) bool {
	return result.Namespace == t.namespace &&
		result.Reference.Host == t.ref.Host && result.Reference.Repository == t.ref.Repository &&
		result.Reference.Tag == t.ref.Tag &&
		(t.ref.Digest == "" || result.Digest == t.ref.Digest)
}

// resolve pins a target. A target with a digest is already pinned, and one without an image stays
// unchanged: neither needs the Resolver, which may use the network.
func (h *handler) resolve(ctx context.Context, t target) (decision, bool) {
	if t.ref.Digest != "" || t.ref == (image.Reference{}) {
		return pinnedTo(t.ref.Digest), true
	}
	ref, err := h.resolver.Resolve(ctx, t.namespace, t.ref)
	switch {
	case err != nil:
		result := verify.Unanswered(t.namespace, t.ref, err)
		return decision{answer: result.Answer(), result: result}, true
	case ref.Host != t.ref.Host || ref.Repository != t.ref.Repository:
		return undecided("internal error: the digest is of another image"), true
	case ref.Digest.Validate() != nil || ref.Digest.Algorithm() != digest.SHA256:
		return undecided("internal error: there is no sha256 digest"), true
	}
	return pinnedTo(ref.Digest), true
}

func pinnedTo(digest digest.Digest) decision {
	return decision{answer: verify.AnswerAllowed, result: verify.Result{Digest: digest}}
}
