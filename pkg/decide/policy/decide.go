package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Outcome is the result of a decision. The zero value is Denied.
type Outcome uint8

const (
	// Denied is final: the same evidence will never allow the image.
	Denied Outcome = iota
	// Allowed is final: every requirement is proven.
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
// resource that decided.
type Verdict struct {
	Outcome Outcome
	Policy  ObjectRef
	Reason  string
	// Remediation says what to do about a verdict that does not allow, as one clause
	// without a full stop. It is empty if there is nothing to add to Reason.
	Remediation string
	// Warning explains why the image would be denied if the policy were enforced.
	// It is empty unless the outcome is Allowed.
	Warning string
	// Unverified marks an image that policies allow without verifying anything.
	Unverified bool
	// Doubtful marks a warning about evidence that could not be read. Like an
	// Undecided verdict, it is never cached.
	Doubtful bool
}

// WithWarning adds a warning to a verdict that allows. The verdict is then doubtful.
func (v Verdict) WithWarning(warning string) Verdict {
	if warning == "" || v.Outcome != Allowed {
		return v
	}
	if v.Warning != "" {
		warning = v.Warning + "; " + warning
	}
	v.Warning, v.Doubtful = warning, true
	return v
}

// toFix joins a reason and its remediation.
const (
	toFix = ". To fix: "
)

// Text returns the reason and what to do about it.
func (v Verdict) Text() string { return v.TextWithin(len(v.Reason) + len(toFix) + len(v.Remediation)) }

// TextWithin is Text in at most limit bytes. A long reason, which mostly lists more of the
// same, is cut to two thirds of them to leave room for the remediation.
func (v Verdict) TextWithin(limit int) string {
	if v.Remediation == "" {
		return Cut(v.Reason, limit)
	}
	reason := Cut(v.Reason, max(2*limit/3, limit-len(toFix)-len(v.Remediation)))
	return reason + Cut(toFix+v.Remediation, limit-len(reason))
}

// Warn returns v as a policy that only warns decides: a verdict that does not allow
// becomes one that allows with a warning.
func (v Verdict) Warn() Verdict {
	if v.Outcome == Allowed {
		return v
	}
	return Verdict{Outcome: Allowed, Policy: v.Policy, Warning: v.Text(), Doubtful: v.Outcome == Undecided, Unverified: true,
		Reason: fmt.Sprintf("%s only warns: %s", v.Policy, v.Reason)}
}

// Requirement is one condition of a policy. Only AnyOf, AllOf and Matching construct
// a valid one; the zero value never holds.
type Requirement struct {
	source    ObjectRef
	all       bool
	verifiers []string
	atLeast   int
	condition Condition // nil for AnyOf and AllOf
}

// Condition reports whether proven findings meet a requirement. An error means no.
// A Condition is a pure function.
type Condition func(proven []Finding) (bool, error)

// AnyOf requires valid evidence of at least atLeast distinct signers, from any
// of the named verifiers. It returns an error for an empty list or atLeast < 1.
func AnyOf(source ObjectRef, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, false, atLeast, verifiers)
}

// AllOf requires valid evidence from each of the named verifiers, and at least
// atLeast distinct signers in total. It returns an error as AnyOf does.
func AllOf(source ObjectRef, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, true, atLeast, verifiers)
}

// Matching requires that condition holds for the valid evidence of the named
// verifiers, and that the evidence has at least atLeast distinct signers. A
// condition may depend on the absence of evidence, so any unknown finding leaves it
// undecided, and an incomplete one denies. Matching returns an error as AnyOf does, and if condition is nil.
func Matching(source ObjectRef, atLeast int, condition Condition, verifiers ...string) (Requirement, error) {
	if condition == nil {
		return Requirement{}, errors.New("a requirement without a condition would hold for every signature")
	}
	made, err := newRequirement(source, false, atLeast, verifiers)
	made.condition = condition
	return made, err
}

func newRequirement(source ObjectRef, all bool, atLeast int, verifiers []string) (Requirement, error) {
	if len(verifiers) == 0 {
		return Requirement{}, errors.New("a requirement without verifiers would hold for every image")
	}
	if atLeast < 1 {
		return Requirement{}, fmt.Errorf("atLeast is %d, it must be 1 or more", atLeast)
	}
	return Requirement{source: source, all: all, verifiers: slices.Clone(verifiers), atLeast: atLeast}, nil
}

// Verifiers returns the names of the verifiers whose evidence counts.
func (r Requirement) Verifiers() []string { return slices.Clone(r.verifiers) }

// Source returns the resource that states the requirement.
func (r Requirement) Source() ObjectRef { return r.source }

// Requirements lists what one policy requires of one image. All of them must hold;
// an empty list denies.
type Requirements struct {
	Source  ObjectRef
	Require []Requirement
}

// Decide evaluates findings against rules. The outcome is Denied if any requirement
// is denied, else Undecided if any is undecided. It is Allowed only if there is at
// least one requirement and all of them are proven.
func Decide(rules Requirements, findings []Finding) Verdict {
	if len(rules.Require) == 0 {
		return Verdict{Policy: rules.Source, Reason: fmt.Sprintf("%s requires nothing that could be proven", rules.Source),
			Remediation: rules.Source.Owner("add a requirement to its rule")}
	}
	var proofs []string
	var undecided *Verdict
	for _, requirement := range rules.Require {
		verdict := requirement.decide(findings)
		switch verdict.Outcome {
		case Allowed:
			proofs = append(proofs, verdict.Reason)
		case Undecided:
			if undecided == nil {
				undecided = &verdict
			}
		case Denied:
			return verdict
		default:
			return Verdict{Policy: requirement.source, Reason: "internal error: unknown outcome"}
		}
	}
	if undecided != nil {
		return *undecided
	}
	return Verdict{Outcome: Allowed, Policy: rules.Require[0].source, Reason: strings.Join(unique(proofs), "; ")}
}

func (r Requirement) decide(findings []Finding) Verdict {
	named := map[string]bool{}
	for _, name := range r.verifiers {
		named[name] = true
	}
	var relevant []Finding
	for _, f := range findings {
		if named[f.Verifier] {
			relevant = append(relevant, f)
		}
	}
	if r.condition != nil {
		return r.match(relevant)
	}
	if r.holds(relevant, false) {
		return Verdict{Outcome: Allowed, Policy: r.source, Reason: r.allowedReason(relevant)}
	}
	// If the requirement would hold with all unreadable evidence valid, a retry may
	// succeed; otherwise no retry can help.
	if r.holds(relevant, true) {
		return Verdict{Outcome: Undecided, Policy: r.source, Reason: r.undecidedReason(relevant)}
	}
	return r.denied(relevant)
}

// holds reports whether the findings meet r. With assumeValid, Unknown findings
// count as valid evidence of distinct signers.
func (r Requirement) holds(findings []Finding, assumeValid bool) bool {
	if r.atLeast < 1 || len(r.verifiers) == 0 {
		return false
	}
	signers, proven, unknown := map[string]bool{}, map[string]bool{}, 0
	for _, f := range findings {
		switch {
		case f.Proven():
			signers[f.Signer] = true
			proven[f.Verifier] = true
		case assumeValid && f.Result == Unknown:
			// An unreadable listing may hide any number of signatures.
			unknown = r.atLeast
			proven[f.Verifier] = true
		}
	}
	if r.all {
		for _, name := range r.verifiers {
			if !proven[name] {
				return false
			}
		}
	}
	return len(signers)+unknown >= r.atLeast
}

// match decides a requirement that has a condition.
func (r Requirement) match(findings []Finding) Verdict {
	if !r.holds(findings, true) {
		return r.denied(findings)
	}
	// Whoever can push evidence must not be able to hide some behind a limit.
	if i := slices.IndexFunc(findings, func(f Finding) bool { return f.Incomplete }); i >= 0 {
		return Verdict{Outcome: Denied, Policy: r.source, Remediation: findings[i].Remediation,
			Reason: fmt.Sprintf("the expression of %s needs all evidence, and some was not read: %s", r.sourceName(), findings[i].Message)}
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Result == Unknown }) {
		return Verdict{Outcome: Undecided, Policy: r.source, Reason: r.undecidedReason(findings)}
	}
	var proven []Finding
	for _, f := range findings {
		if f.Proven() {
			proven = append(proven, f)
		}
	}
	switch met, err := r.condition(proven); {
	case err != nil:
		return Verdict{Outcome: Denied, Policy: r.source, Reason: fmt.Sprintf("the expression of %s cannot judge what was found: %.300s", r.sourceName(), err.Error()),
			Remediation: r.source.Owner("guard fields that may be missing with has(…) in the expression")}
	case !met:
		return Verdict{Outcome: Denied, Policy: r.source, Reason: fmt.Sprintf("the expression of %s does not hold for what was found: %s", r.sourceName(), proof(findings)),
			Remediation: "add the evidence that the expression asks for; landwaiter explain shows what was found"}
	}
	return Verdict{Outcome: Allowed, Policy: r.source, Reason: r.allowedReason(findings)}
}

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
