package policy

import (
	"fmt"
	"strings"
)

// maxCauses bounds how many failed findings a reason lists: developers need the
// first ones, and an attacker controls how many there are.
const maxCauses = 3

// sourceName names the resource that states the requirement.
func (r Requirement) sourceName() string {
	if r.source == (ObjectRef{}) {
		return "the built-in rule (there is no policy)"
	}
	return r.source.String()
}

// allowedReason lists the verifiers that are satisfied.
func (r Requirement) allowedReason(findings []Finding) string {
	var by []string
	for _, f := range findings {
		if f.Proven() {
			by = append(by, f.Source.String())
		}
	}
	return fmt.Sprintf("%s is satisfied: signature verified by %s", r.sourceName(), strings.Join(unique(by), " and "))
}

// undecidedReason explains which evidence could not be read.
func (r Requirement) undecidedReason(findings []Finding) string {
	return fmt.Sprintf("%s could not be evaluated yet: %s", r.sourceName(), messages(findings, Unknown))
}

// deniedReason explains what is missing and why the findings do not count.
func (r Requirement) deniedReason(findings []Finding) string {
	want := fmt.Sprintf("a valid signature for %s", r.verifierNames())
	if r.atLeast > 1 {
		want = fmt.Sprintf("valid signatures of %d different signers for %s", r.atLeast, r.verifierNames())
	}
	why := messages(findings, Invalid)
	if why == "" {
		why = "no signature was found"
	}
	if proven := r.partialProof(findings); proven != "" {
		why = proven + "; " + why
	}
	return fmt.Sprintf("%s requires %s: %s", r.sourceName(), want, why)
}

func (r Requirement) verifierNames() string {
	joiner := " or "
	if r.all {
		joiner = " and "
	}
	return strings.Join(r.verifiers, joiner)
}

// partialProof lists what was proven if the requirement is not met.
func (r Requirement) partialProof(findings []Finding) string {
	var by, signers []string
	for _, f := range findings {
		if f.Proven() {
			by, signers = append(by, f.Verifier), append(signers, f.Signer)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return fmt.Sprintf("only %s was satisfied, by %d signer(s)", strings.Join(unique(by), " and "), len(unique(signers)))
}

func messages(findings []Finding, result Result) string {
	var said []string
	seen := map[string]bool{}
	for _, f := range findings {
		if f.Result != result || seen[f.Message] {
			continue
		}
		seen[f.Message] = true
		if len(seen) <= maxCauses {
			said = append(said, f.Message)
		}
	}
	if more := len(seen) - maxCauses; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, "; ")
}
