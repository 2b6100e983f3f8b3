package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Outcome is the end of a decision. The zero value is Denied.
type Outcome uint8

const (
	// Denied is definite: the same evidence will never allow the image.
	Denied Outcome = iota
	// Allowed is definite: every requirement is proven.
	Allowed
	// Undecided means that evidence could not be read. It never admits an image
	// and is never kept.
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

// Verdict is a decision about one image, with one sentence of justification
// that names the resource that decided.
type Verdict struct {
	Outcome Outcome
	Policy  ObjectRef
	Reason  string
	// Warning is why the image would not be allowed if the policy were enforced;
	// it is empty unless the outcome is Allowed all the same.
	Warning string
	// Doubtful marks a warning about evidence that could not be read: like an
	// Undecided verdict it is never kept.
	Doubtful bool
}

// Warn returns what v comes to under a policy that only warns: whatever is not
// allowed is, with a warning.
func (v Verdict) Warn() Verdict {
	if v.Outcome == Allowed {
		return v
	}
	return Verdict{Outcome: Allowed, Policy: v.Policy, Warning: v.Reason, Doubtful: v.Outcome == Undecided,
		Reason: fmt.Sprintf("%s only warns: %s", v.Policy, v.Reason)}
}

// Requirement is one thing that must hold. Only AnyOf, AllOf and Matching construct
// a valid one: the zero value never holds.
type Requirement struct {
	source    ObjectRef
	all       bool
	verifiers []string
	atLeast   int
	condition Condition // nil for AnyOf and AllOf
}

// Condition says whether proven findings are what is demanded. An error means no.
// It is pure.
type Condition func(proven []Finding) (bool, error)

// AnyOf requires valid evidence of at least atLeast distinct signers, from any
// of the named verifiers. It returns an error for an empty list or atLeast < 1.
func AnyOf(source ObjectRef, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, false, atLeast, verifiers)
}

// AllOf requires valid evidence from each of the named verifiers, and in all of
// at least atLeast distinct signers. It returns an error as AnyOf does.
func AllOf(source ObjectRef, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, true, atLeast, verifiers)
}

// Matching requires that condition holds for the valid evidence of the named
// verifiers, which is of at least atLeast distinct signers. A condition may also
// look at what is missing, so nothing may be unknown. It returns an error as AnyOf
// does, and without a condition.
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

// Verifiers returns the names that the requirement looks at.
func (r Requirement) Verifiers() []string { return slices.Clone(r.verifiers) }

// Source returns the resource that states the requirement.
func (r Requirement) Source() ObjectRef { return r.source }

// Requirements is what one policy demands of one image: every requirement must hold.
// Without requirements nothing can hold, so it denies.
type Requirements struct {
	Source  ObjectRef
	Require []Requirement
}

// Decide weighs findings against rules. One Denied requirement denies; else one
// Undecided requirement leaves the whole undecided; only when there is at least
// one requirement and each is proven is the outcome Allowed.
func Decide(rules Requirements, findings []Finding) Verdict {
	if len(rules.Require) == 0 {
		return Verdict{Policy: rules.Source, Reason: fmt.Sprintf("%s requires nothing that could be proven", rules.Source)}
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

// Settled reports whether more findings cannot change the verdict, so that the
// search for evidence may stop. Findings only ever add proof, so this is so
// exactly when the rules are met; but a condition wants to see all of them.
func (r Requirements) Settled(findings []Finding) bool {
	if slices.ContainsFunc(r.Require, func(r Requirement) bool { return r.condition != nil }) {
		return false
	}
	return Decide(r, findings).Outcome == Allowed
}

func (r Requirement) decide(findings []Finding) Verdict {
	var relevant []Finding
	for _, f := range findings {
		if slices.Contains(r.verifiers, f.Verifier) {
			relevant = append(relevant, f)
		}
	}
	if r.condition != nil {
		return r.match(relevant)
	}
	if r.holds(relevant, false) {
		return Verdict{Outcome: Allowed, Policy: r.source, Reason: r.proof(relevant)}
	}
	// Would it hold if everything unreadable turned out to be valid? Then the
	// answer is not known yet; else no retry can help.
	if r.holds(relevant, true) {
		return Verdict{Outcome: Undecided, Policy: r.source, Reason: r.doubt(relevant)}
	}
	return Verdict{Outcome: Denied, Policy: r.source, Reason: r.lack(relevant)}
}

// holds reports whether the findings meet r; with hope, Unknown findings count
// as if they were valid and signed by signers of their own.
func (r Requirement) holds(findings []Finding, hope bool) bool {
	if r.atLeast < 1 || len(r.verifiers) == 0 {
		return false
	}
	signers, proven, unknown := map[string]bool{}, map[string]bool{}, 0
	for _, f := range findings {
		switch {
		case f.Proven():
			signers[f.Signer] = true
			proven[f.Verifier] = true
		case hope && f.Result == Unknown:
			// One unreadable listing may hide any number of signatures.
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

// match decides a requirement with a condition.
func (r Requirement) match(findings []Finding) Verdict {
	if !r.holds(findings, true) {
		return Verdict{Outcome: Denied, Policy: r.source, Reason: r.lack(findings)}
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Result == Unknown }) {
		return Verdict{Outcome: Undecided, Policy: r.source, Reason: r.doubt(findings)}
	}
	var proven []Finding
	for _, f := range findings {
		if f.Proven() {
			proven = append(proven, f)
		}
	}
	switch met, err := r.condition(proven); {
	case err != nil:
		return Verdict{Outcome: Denied, Policy: r.source, Reason: fmt.Sprintf("the expression of %s cannot judge what was found: %.300s", r.author(), err.Error())}
	case !met:
		return Verdict{Outcome: Denied, Policy: r.source, Reason: fmt.Sprintf("%s has an expression that does not hold: %s", r.author(), r.partly(findings))}
	}
	return Verdict{Outcome: Allowed, Policy: r.source, Reason: r.proof(findings)}
}

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
