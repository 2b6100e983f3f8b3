package policy

import (
	"fmt"
	"strings"
)

// maxCauses bounds how many failed findings a reason spells out: a team dev
// needs the first ones, and an attacker chooses how many there are.
const maxCauses = 3

// author names what states the requirement.
func (r Requirement) author() string {
	if r.source == (ObjectRef{}) {
		return "the built-in rule (there is no policy)"
	}
	return r.source.String()
}

// proof says which verifiers were satisfied.
func (r Requirement) proof(findings []Finding) string {
	var by []string
	for _, f := range findings {
		if f.Proven() {
			by = append(by, f.Source.String())
		}
	}
	return fmt.Sprintf("%s is satisfied: signature verified by %s", r.author(), strings.Join(unique(by), " and "))
}

// doubt says what could not be read.
func (r Requirement) doubt(findings []Finding) string {
	return fmt.Sprintf("%s could not be evaluated yet: %s", r.author(), causes(findings, Unknown))
}

// lack says what is missing, and why what was found does not count.
func (r Requirement) lack(findings []Finding) string {
	want := fmt.Sprintf("a valid signature for %s", r.names())
	if r.atLeast > 1 {
		want = fmt.Sprintf("valid signatures of %d different signers for %s", r.atLeast, r.names())
	}
	why := causes(findings, Invalid)
	if why == "" {
		why = "no signature was found"
	}
	if proven := r.partly(findings); proven != "" {
		why = proven + "; " + why
	}
	return fmt.Sprintf("%s requires %s: %s", r.author(), want, why)
}

func (r Requirement) names() string {
	joiner := " or "
	if r.all {
		joiner = " and "
	}
	return strings.Join(r.verifiers, joiner)
}

// partly tells what was proven although the whole was not.
func (r Requirement) partly(findings []Finding) string {
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

func causes(findings []Finding, result Result) string {
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
