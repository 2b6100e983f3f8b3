package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Requirement is one condition of a policy. Only AnyOf, AllOf and Matching construct
// a valid one; the zero value never holds.
type Requirement struct {
	source    ObjectRef
	all       bool
	verifiers []string
	atLeast   int
	condition Condition // nil for AnyOf and AllOf
	trusted   int       // number of signers that the verifiers trust, if fewer than atLeast; else 0
}

// Condition reports whether proven findings meet a requirement. It calls step, unless that is nil, to yield to
// others, and returns its error. An error means no; a context error means that the result is unknown. The result
// depends on nothing else.
type Condition func(step func() error, proven []Finding) (bool, error)

// AnyOf requires valid evidence of at least atLeast distinct signers, from any of the named
// verifiers. It returns an error for an empty list or atLeast < 1.
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

// Trusting returns r for verifiers that trust n signers. It also reports whether no image can meet r because n is
// too small.
func (r Requirement) Trusting(n int) (bounded Requirement, short bool) {
	if n >= r.atLeast {
		return r, false
	}
	r.trusted = n
	return r, true
}

// AtLeast returns how many distinct signers r requires.
func (r Requirement) AtLeast() int { return r.atLeast }

// Verifiers returns the names of the verifiers whose evidence counts.
func (r Requirement) Verifiers() []string { return slices.Clone(r.verifiers) }

// Requirements lists what one policy requires of one image. All of them must hold;
// an empty list denies.
type Requirements struct {
	Source  ObjectRef
	Require []Requirement
}

// Decide evaluates findings against rules. The outcome is Denied if any requirement is
// denied, else Undecided if any is undecided. It is Allowed only if there is at least one
// requirement and all of them are proven. A denial has the objections of every requirement,
// except for conditions after the first denied requirement: they take processor time and
// cannot change the outcome. Conditions call step, which may be nil.
func Decide(step func() error, rules Requirements, findings []Finding) Verdict {
	if len(rules.Require) == 0 {
		return Verdict{Policy: rules.Source, Reason: fmt.Sprintf("%s requires nothing that could be proven", rules.Source),
			Remediation: rules.Source.Owner("add a requirement to its rule")}
	}
	var proofs []string
	var undecided, denied *Verdict
	for _, requirement := range rules.Require {
		if denied != nil && requirement.condition != nil {
			continue
		}
		verdict := requirement.decide(step, findings)
		switch verdict.outcome {
		case Allowed:
			proofs = append(proofs, verdict.Reason)
		case Undecided:
			if undecided == nil {
				undecided = &verdict
			}
		case Denied:
			if denied != nil {
				verdict = denied.and(verdict)
			}
			denied = &verdict
		default:
			return Verdict{Policy: requirement.source, Reason: "internal error: unknown outcome"}
		}
	}
	switch {
	case denied != nil:
		return *denied
	case undecided != nil:
		return *undecided
	}
	return Verdict{outcome: Allowed, Policy: rules.Require[0].source, Reason: strings.Join(unique(proofs), "; ")}
}

func (r Requirement) decide(step func() error, findings []Finding) Verdict {
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
		return r.match(step, relevant)
	}
	if r.holds(relevant, false) {
		return Verdict{outcome: Allowed, Policy: r.source, Reason: r.allowedReason(relevant)}
	}
	// If the requirement would hold with all unreadable evidence valid, a retry may
	// succeed; otherwise no retry can help.
	if r.holds(relevant, true) {
		return r.undecided(relevant)
	}
	return r.denied(relevant)
}

// holds reports whether the findings meet r. With assumeValid, Unknown findings
// count as valid evidence of distinct signers.
func (r Requirement) holds(findings []Finding, assumeValid bool) bool {
	if r.atLeast < 1 || len(r.verifiers) == 0 {
		return false
	}
	if r.trusted > 0 { // fewer than atLeast
		return false
	}
	signers, proven, unknown := map[string]bool{}, map[string]bool{}, 0
	for _, f := range findings {
		switch {
		case f.Proven():
			signers[f.signer] = true
			proven[f.Verifier] = true
		case assumeValid && f.Unknown:
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
func (r Requirement) match(step func() error, findings []Finding) Verdict {
	if !r.holds(findings, true) {
		return r.denied(findings)
	}
	// Anyone who can push evidence must not be able to hide some behind a limit.
	if i := slices.IndexFunc(findings, func(f Finding) bool { return f.Incomplete }); i >= 0 {
		return Verdict{Policy: r.source, Remediation: findings[i].Remediation,
			Reason: fmt.Sprintf("the expression of %s needs all evidence, and some was not read: %s", r.sourceName(), findings[i].Message)}
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Result() == Unknown }) {
		return r.undecided(findings)
	}
	var proven []Finding
	for _, f := range findings {
		if f.Proven() {
			proven = append(proven, f)
		}
	}
	switch met, err := r.condition(step, proven); {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return NotDecided(r.source, fmt.Sprintf("the expression of %s was not evaluated in time, try again", r.sourceName()))
	case err != nil:
		return Verdict{Policy: r.source,
			Reason:      fmt.Sprintf("the expression of %s cannot judge what was found: %.300s", r.sourceName(), err.Error()),
			Remediation: r.source.Owner("guard fields that may be missing with has(…) in the expression")}
	case !met:
		return Verdict{Policy: r.source,
			Reason: joined(fmt.Sprintf("the expression of %s does not hold for what was found: %s", r.sourceName(), proof(findings)),
				r.messages(near(findings))),
			Remediation: addEvidence + "that the expression asks for; landwaiter verify --explain shows what was found"}
	}
	return Verdict{outcome: Allowed, Policy: r.source, Reason: r.allowedReason(findings)}
}

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// Tally tracks the findings for one image as they arrive and reports when further ones cannot
// change the verdict. Its cost is constant for each finding and requirement that names its
// verifier. It is not safe for concurrent use.
type Tally struct {
	open int // unmet requirements
	of   map[string][]*progress
}

// progress is what one requirement still needs.
type progress struct {
	atLeast int
	signers map[string]bool
	lacking map[string]bool // verifiers of AllOf without proof
	met     bool
}

// Tally returns the state of r before the first finding.
func (r Requirements) Tally() *Tally {
	t := &Tally{open: len(r.Require), of: map[string][]*progress{}}
	for _, requirement := range r.Require {
		if requirement.condition != nil || requirement.atLeast < 1 {
			continue // stays open: a condition needs all findings
		}
		p := &progress{atLeast: requirement.atLeast, signers: map[string]bool{}, lacking: map[string]bool{}}
		for _, name := range unique(requirement.Verifiers()) {
			if requirement.all {
				p.lacking[name] = true
			}
			t.of[name] = append(t.of[name], p)
		}
	}
	return t
}

// Add counts a finding.
func (t *Tally) Add(f Finding) {
	if !f.Proven() {
		return
	}
	for _, p := range t.of[f.Verifier] {
		if p.met {
			continue
		}
		p.signers[f.signer] = true
		delete(p.lacking, f.Verifier)
		if len(p.signers) >= p.atLeast && len(p.lacking) == 0 {
			p.met = true
			t.open--
		}
	}
}

// Settled reports whether the search for evidence may stop. Findings only add proof, so it
// may stop once every requirement is met. A condition is never settled early, and rules
// without requirements never are.
func (t *Tally) Settled() bool { return t.open == 0 && len(t.of) > 0 }
