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
	Policy  Source
	Reason  string
}

// Requirement is one thing that must hold. Only AnyOf and AllOf construct a
// valid one: the zero value never holds.
type Requirement struct {
	source    Source
	all       bool
	verifiers []string
	atLeast   int
}

// AnyOf requires valid evidence of at least atLeast distinct signers, from any
// of the named verifiers. It returns an error for an empty list or atLeast < 1.
func AnyOf(source Source, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, false, atLeast, verifiers)
}

// AllOf requires valid evidence from each of the named verifiers, and in all of
// at least atLeast distinct signers. It returns an error as AnyOf does.
func AllOf(source Source, atLeast int, verifiers ...string) (Requirement, error) {
	return newRequirement(source, true, atLeast, verifiers)
}

func newRequirement(source Source, all bool, atLeast int, verifiers []string) (Requirement, error) {
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
func (r Requirement) Source() Source { return r.source }

// Rules is what one policy demands of one image: every requirement must hold.
// Without requirements nothing can hold, so it denies.
type Rules struct {
	Source  Source
	Require []Requirement
}

// Decide weighs findings against rules. One Denied requirement denies; else one
// Undecided requirement leaves the whole undecided; only when there is at least
// one requirement and each is proven is the outcome Allowed.
func Decide(rules Rules, findings []Finding) Verdict {
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
// exactly when the rules are met.
func (r Rules) Settled(findings []Finding) bool {
	return Decide(r, findings).Outcome == Allowed
}

func (r Requirement) decide(findings []Finding) Verdict {
	var relevant []Finding
	for _, f := range findings {
		if slices.Contains(r.verifiers, f.Verifier) {
			relevant = append(relevant, f)
		}
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
		case f.Result == Valid && f.Signer != "":
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

func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
