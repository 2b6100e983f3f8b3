package report

import (
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// state is what a report says of an image in a namespace. The zero value says nothing: the
// image has not been decided yet.
type state struct {
	result string // such as v1beta1.ReportPass
	since  time.Time
	digest string

	policy, reason, remediation string
	exception                   string
	exceptionEnds               time.Time

	// lastResult and lastSince are of the result before v1beta1.ReportError.
	lastResult string
	lastSince  time.Time
	// doubted is since when the image has been undecided, which is not reported yet.
	doubted time.Time
}

// resultOf returns the word of reports for a result.
func resultOf(r verify.Result) string {
	switch v := r.Verdict; {
	case v.Outcome == policy.Undecided:
		return v1beta1.ReportError
	case v.Outcome != policy.Allowed:
		return v1beta1.ReportFail
	case v.Warning != "" || r.Exception != (policy.ObjectRef{}):
		return v1beta1.ReportWarn
	case v.Unverified:
		return v1beta1.ReportSkip
	}
	return v1beta1.ReportPass
}

// allows reports whether an image with a result may run.
func allows(result string) bool {
	return result == v1beta1.ReportPass || result == v1beta1.ReportWarn || result == v1beta1.ReportSkip
}

// decided returns the last decided result and since when it held.
func (s state) decided() (result string, since time.Time) {
	if s.result == v1beta1.ReportError {
		return s.lastResult, s.lastSince
	}
	return s.result, s.since
}

// next returns the state after a verification, and whether it revoked the image: it was
// allowed and is denied now.
func (s state) next(result verify.Result, now time.Time) (after state, revoked bool) {
	v := result.Verdict
	word := resultOf(result)
	if word == v1beta1.ReportError {
		return s.doubt(v, now), false
	}
	former, since := s.decided()
	if former != word {
		since = now.UTC().Truncate(time.Second)
	}
	after = state{result: word, since: since, digest: string(result.Digest), policy: sourceOf(v.Policy),
		reason: policy.Shown(v.Reason, maxReasonBytes), remediation: policy.Shown(v.Remediation, maxRemediationBytes)}
	if v.Warning != "" {
		after.reason = policy.Shown(v.Warning, maxReasonBytes)
	}
	if result.Exception != (policy.ObjectRef{}) {
		after.exception, after.exceptionEnds = policy.Shown(result.Exception.String(), maxNameBytes), result.ExceptionEnds
	}
	return after, word == v1beta1.ReportFail && allows(former)
}

// doubt returns the state after a verification that decided nothing. It keeps what is
// reported for a while. The text of an error stays, because that of each retry differs.
func (s state) doubt(v policy.Verdict, now time.Time) state {
	if s.result == v1beta1.ReportError {
		return s
	}
	patience := undecidedFor
	if s.result == "" {
		patience = undecidedNew
	}
	if s.doubted.IsZero() {
		s.doubted = now.UTC().Truncate(time.Second)
	}
	if now.Sub(s.doubted) < patience {
		return s
	}
	return state{result: v1beta1.ReportError, since: s.doubted, digest: s.digest, policy: sourceOf(v.Policy), lastResult: s.result, lastSince: s.since,
		reason: policy.Shown(v.Reason, maxReasonBytes), remediation: policy.Shown(v.Remediation, maxRemediationBytes)}
}

// sourceOf returns the resource that decided, which a result must name.
func sourceOf(source policy.ObjectRef) string { return policy.Shown(source.String(), maxNameBytes) }
