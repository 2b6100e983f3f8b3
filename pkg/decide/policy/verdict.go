package policy

import (
	"fmt"
)

// Outcome is the result of a decision. The zero value is Denied.
type Outcome uint8

const (
	// Denied is final: the same evidence will never allow the image.
	Denied Outcome = iota
	// Allowed admits the image: by proof or, if the verdict is Unverified, by a rule, an exception or
	// policies that only warn.
	Allowed
	// Undecided means that evidence could not be read. It never admits an image
	// and is never cached.
	Undecided
)

// String returns the word that users see.
func (o Outcome) String() string {
	switch o {
	case Allowed:
		return "allowed"
	case Undecided:
		return "undecided"
	case Denied:
	}
	return "denied"
}

// Verdict is a decision about one image. Reason is one sentence that names the
// resource that decided, Policy.
//
// Other packages can only make verdicts that deny. [Decide] allows because of proof, [Unverified] because of a
// rule and [AllowedByException] because of an exception; [Combined] and [Restore] pass on such verdicts. The
// last four trust their caller: package verify, and a cache for Restore.
type Verdict struct {
	outcome Outcome
	Policy  ObjectRef
	Reason  string
	// Cause is a word for why a verdict is Undecided: ReasonUnreachable if a registry did not answer
	// as it should. It may be empty.
	Cause Reason
	// Remedy is the word for Remediation if a registry is the cause and the word says how to repair it. Only
	// an Undecided verdict has one.
	Remedy Remedy
	// Remediation says what to do about a verdict that does not allow, as one clause without a
	// full stop, beginning with what a developer can do. It is empty if there is nothing to add.
	Remediation string
	// Command creates the missing evidence, as a line for a shell. It may be empty.
	Command string
	// Contact says whom to ask about Policy, in one line. It may be empty.
	Contact string
	// Others are further objections, at most [MaxOthers]: of other policies, and about other
	// requirements of this policy. They cost no further work, so the list may be incomplete. More
	// counts the objections that did not fit. Both are empty unless the outcome is Denied.
	Others []Objection
	More   int
	// Warning explains why the image would be denied if the policy were enforced.
	// It is empty unless the outcome is Allowed.
	Warning string
	// Unverified marks an image that is allowed without proof.
	Unverified bool
	// Doubtful marks a warning about evidence that could not be read. Like an
	// Undecided verdict, it is never cached.
	Doubtful bool

	// advised is as in [Objection].
	advised int
}

// Outcome returns what was decided.
func (v Verdict) Outcome() Outcome { return v.outcome }

// NotDecided returns an Undecided verdict.
func NotDecided(source ObjectRef, reason string) Verdict {
	return Verdict{outcome: Undecided, Policy: source, Reason: reason}
}

// Unverified returns the verdict on an image that the rules of source allow without proof.
func Unverified(source ObjectRef, why string) Verdict {
	return Verdict{outcome: Allowed, Policy: source, Unverified: true, Reason: "allowed without verification: " + why}
}

// AllowedByException returns the verdict on an image that an exception allows although the policy of v does not.
func AllowedByException(v Verdict, reason, warning string) Verdict {
	return Verdict{outcome: Allowed, Policy: v.Policy, Unverified: true, Reason: reason, Warning: warning}
}

// Restore returns v with the outcome that a word of [Outcome.String] names. It is for cached
// verdicts, which are Allowed or Denied: every other word is an error.
func Restore(word string, v Verdict) (Verdict, error) {
	switch word {
	case Allowed.String():
		v.outcome = Allowed
	case Denied.String():
		v.outcome = Denied
	default:
		return Verdict{}, fmt.Errorf("the outcome %.20q is never kept", word)
	}
	return v, nil
}

// WithWarning adds a warning to a verdict that allows, which is then doubtful. It returns any other
// verdict unchanged.
func (v Verdict) WithWarning(warning string) Verdict {
	if warning == "" || v.outcome != Allowed {
		return v
	}
	v.Warning, v.Doubtful = joined(v.Warning, warning), true
	return v
}

func joined(one, other string) string {
	if one == "" || other == "" {
		return one + other
	}
	return one + "; " + other
}

// warn returns the verdict of a policy that only warns: a verdict that does not allow becomes
// one that allows with a warning.
func (v Verdict) warn() Verdict {
	if v.outcome == Allowed {
		return v
	}
	return Verdict{outcome: Allowed, Policy: v.Policy, Warning: v.Text(), Doubtful: v.outcome == Undecided, Unverified: true,
		Reason: fmt.Sprintf("%s only warns: %s", v.Policy, v.Reason)}
}

// Combined is the verdict of all policies that apply to one image. It is Denied if any policy denies,
// by the first one that does and with the objections of the others, else Undecided if any policy is
// undecided. A policy that only warns adds a warning in place of a denial; alone it allows nothing.
// The zero value denies.
type Combined struct {
	verdict  Verdict
	enforced bool // some policy does not only warn
	some     bool
	// unproven is why policies that do not only warn allow the image without proof. A warning would hide it.
	unproven string
}

// Add adds the verdict of a policy. warns says that the policy only warns.
func (c *Combined) Add(v Verdict, warns bool) {
	if warns {
		v = v.warn()
	}
	c.enforced = c.enforced || !warns
	if v.Unverified && !warns {
		c.unproven = joined(c.unproven, v.Reason)
	}
	all := &c.verdict
	switch {
	case !c.some:
		*all = v
	case all.outcome == Denied && v.outcome == Denied:
		*all = all.and(v)
	case all.outcome == Denied || v.outcome == Undecided && all.outcome == Undecided:
	case v.outcome != Allowed:
		*all = v
	case all.outcome == Allowed:
		all.Reason += "; " + v.Reason
		all.Doubtful = all.Doubtful || v.Doubtful
		all.Unverified = all.Unverified && v.Unverified
		all.Warning = joined(all.Warning, v.Warning)
	}
	c.some = true
}

// Verdict returns the combined verdict.
func (c *Combined) Verdict() Verdict {
	if !c.enforced {
		return Verdict{Reason: "internal error: no policy is enforced"}
	}
	all := c.verdict
	if all.Unverified && all.Warning != "" {
		all.Warning = joined(c.unproven, all.Warning)
	}
	return all
}
