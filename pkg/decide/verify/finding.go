package verify

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// PermanentError marks a failure that a retry would repeat: the image does not exist, access
// is denied, the content does not match its digest, a limit is exceeded. Developers see its
// text and its Remediation, which may be empty.
type PermanentError struct {
	Reason      policy.Reason
	Err         error
	Remediation string
}

// Error returns the text of the cause.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent wraps err as a [PermanentError] with a reason.
func Permanent(reason policy.Reason, err error) error {
	return &PermanentError{Reason: reason, Err: err}
}

// PermanentWith is [Permanent] with advice, as one clause without a full stop.
func PermanentWith(reason policy.Reason, err error, remediation string) error {
	return &PermanentError{Reason: reason, Err: err, Remediation: remediation}
}

// IsPermanent reports whether err is, or wraps, a [PermanentError].
func IsPermanent(err error) bool {
	var permanent *PermanentError
	return errors.As(err, &permanent)
}

// Refusal is the error of a [Checker] that says why evidence does not count. Only [Refuse]
// adds words to it; the zero value refuses too.
type Refusal struct {
	reason               policy.Reason
	message, remediation string
}

// Refuse returns a [Refusal] with a reason, one sentence on why the evidence does
// not count, and one on what to do about it, which may be empty.
func Refuse(reason policy.Reason, message, remediation string) error {
	return &Refusal{reason: reason, message: message, remediation: remediation}
}

// Error returns the message.
func (r *Refusal) Error() string {
	if r == nil || r.message == "" {
		return "the evidence does not count"
	}
	return r.message
}

// inconclusive is a transient error with a reason of its own.
type inconclusive struct {
	reason  policy.Reason
	message string
}

func (i *inconclusive) Error() string { return i.message }

// Inconclusive returns an error for evidence that could not be checked now, such as
// a certificate whose revocation status has not been fetched yet. A later try may
// succeed.
func Inconclusive(reason policy.Reason, message string) error {
	return &inconclusive{reason: reason, message: message}
}

// mended is a transient error with the remedy for its cause at a host.
type mended struct {
	error
	remedy policy.Remedy
	host   string
}

// Unwrap returns the cause.
func (m *mended) Unwrap() error { return m.error }

// Mended returns a transient error with the remedy for its cause at a host. Without a remedy, it returns
// err.
func Mended(err error, remedy policy.Remedy, host string) error {
	if remedy == "" {
		return err
	}
	return &mended{err, remedy, host}
}

// unfinished marks a transient error without an external cause.
type unfinished struct{ error }

// Unwrap returns the cause.
func (u *unfinished) Unwrap() error { return u.error }

// Unfinished marks an error of work that Landwaiter itself did not finish, because it was overloaded,
// not ready or suspended. No registry is to blame for it.
func Unfinished(err error) error { return &unfinished{err} }

// StoodStill reports whether ctx ended so long ago that this process must have been suspended. No
// registry is to blame for the lost time.
func StoodStill(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Since(end) > standstill //nolint:forbidigo // contexts end by this clock, and no verdict depends on it
}

// Found returns the finding for the results of [Checker.Check]. An error proves nothing, even if
// there is a proof.
func Found(proof policy.Proof, err error) policy.Finding {
	if err != nil {
		return FindingOf(err)
	}
	return proof.Finding()
}

// FindingOf returns the finding for an error of a [Checker] or a [Registry]: Invalid for a [Refusal]
// and a [PermanentError], Unknown for every other error. Canceled and [Unfinished] work have their own
// reasons. The finding always has a reason and is never Valid; if a limit was exceeded, it is
// Incomplete. A nil error is a bug of the caller, and Invalid.
func FindingOf(err error) policy.Finding {
	found := findingOf(err)
	found.Incomplete = found.Reason == policy.ReasonLimitExceeded
	return found
}

func findingOf(err error) policy.Finding {
	var refusal *Refusal
	var permanent *PermanentError
	var unsure *inconclusive
	var own *unfinished
	var known *mended
	switch {
	case err == nil:
		return policy.Proof{}.Finding()
	case errors.As(err, &refusal):
		found := policy.Finding{Reason: policy.ReasonMalformed, Message: refusal.Error()}
		if refusal != nil {
			found.Reason, found.Remediation = cmp.Or(refusal.reason, found.Reason), refusal.remediation
		}
		return found
	case errors.As(err, &permanent):
		return policy.Finding{Reason: cmp.Or(permanent.Reason, policy.ReasonInternalError), Message: err.Error(),
			Remediation: permanent.Remediation}
	case errors.As(err, &unsure):
		found := policy.Finding{Unknown: true, Reason: cmp.Or(unsure.reason, policy.ReasonUnreachable), Message: unsure.message}
		if found.Reason != policy.ReasonUnreadable { // to a person, whose message says what to do
			found.Remediation = policy.Outside(policy.Answers("the server"))
		}
		return found
	}
	found := policy.Finding{Unknown: true, Reason: policy.ReasonUnreachable, Message: err.Error()}
	if errors.As(err, &own) || errors.Is(err, context.Canceled) {
		found.Reason = policy.ReasonUnfinished
	}
	if errors.As(err, &known) {
		found.Remedy, found.Remediation = known.remedy, known.remedy.At(known.host)
	}
	return found
}

// HasReason reports whether err is an error whose finding has the given reason.
func HasReason(err error, reason policy.Reason) bool {
	return err != nil && FindingOf(err).Reason == reason
}
