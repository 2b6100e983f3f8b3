package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxCauses bounds the failed findings in a reason, maxFixes the remediations, and maxNames
// the verifiers: developers need the first ones, and an attacker controls their number.
const (
	maxCauses = 3
	maxFixes  = 2
	maxNames  = 5
)

// join joins the first names.
func join(names []string, joiner string) string {
	if more := len(names) - maxNames; more > 0 {
		names = append(slices.Clone(names[:maxNames]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, joiner)
}

// sourceName names the resource that states the requirement.
func (r Requirement) sourceName() string {
	if r.source == (ObjectRef{}) {
		return "the built-in rule (there is no policy)"
	}
	return r.source.String()
}

// allowedReason lists the satisfied verifiers.
func (r Requirement) allowedReason(findings []Finding) string {
	var by []string
	for _, f := range findings {
		if f.Proven() {
			by = append(by, f.Source.String())
		}
	}
	return fmt.Sprintf("%s is satisfied: %s verified by %s", r.sourceName(), noun(findings), join(unique(by), " and "))
}

// undecided returns the verdict on evidence that could not be read. If a registry is responsible for
// some of it, the registry is the cause.
func (r Requirement) undecided(findings []Finding) Verdict {
	v := NotDecided(r.source, fmt.Sprintf("%s could not be evaluated: %s", r.sourceName(), r.messages(causes(findings, Unknown))))
	for _, f := range findings {
		if f.Result() == Unknown && (v.Cause == "" || f.Reason == ReasonUnreachable) {
			v.Cause = f.Reason
		}
		if f.Result() == Unknown && v.Remediation == "" {
			v.Remedy, v.Remediation = f.Remedy, f.Remediation
		}
	}
	return v
}

// denied returns the verdict on an unmet requirement: what it requires, what is missing and
// why, and what to do.
func (r Requirement) denied(findings []Finding) Verdict {
	failed := causes(r.lacking(findings), Invalid)
	why := r.messages(failed)
	remediation, command := r.remedies(failed)
	by, signers := provenBy(findings)
	switch {
	case r.trusted > 0:
		return r.beyondAll(why, remediation, noun(findings))
	case len(signers) == 0 && len(failed) > 0 && failed[0].reason.distance() == foreign:
		why = fmt.Sprintf("no such %s was found, only others: %s", noun(findings), why)
	case len(signers) == 0:
		why = cmp.Or(why, "no "+noun(findings)+" was found")
	case len(signers) < r.atLeast:
		why = fmt.Sprintf("only %s was found, for %s; %s", plural(len(signers), "signer"), join(by, " and "),
			cmp.Or(why, "no other "+noun(findings)+" was found"))
		if remediation == "" && command == "" {
			remediation = fmt.Sprintf("have %s sign the image", plural(r.atLeast-len(signers), "more trusted signer"))
		}
	default: // of AllOf, some verifier has no proof
		why = fmt.Sprintf("there is one for %s; %s", join(by, " and for "), cmp.Or(why, "no other "+noun(findings)+" was found"))
	}
	return Verdict{Policy: r.source, Remediation: remediation, Command: command,
		Reason: fmt.Sprintf("%s requires %s: %s", r.sourceName(), r.wanted(noun(findings)), why)}
}

// beyondAll returns the verdict on a requirement for more signers than anyone trusts. A developer cannot sign to meet
// it, so the verdict says who can change it. Why and remediation are about verifiers that accept nothing.
func (r Requirement) beyondAll(why, remediation, noun string) Verdict {
	fix := r.source.Owner("lower atLeast of that rule, or trust more signers in its Verifiers")
	if r.source.Namespace != "" {
		fix = fmt.Sprintf("ask whoever maintains %s to %s", r.source, fix)
	}
	if remediation != "" {
		fix += "; or " + remediation
	}
	reason := fmt.Sprintf("%s requires %s: that can never be met, because %s trusted for it", r.sourceName(), r.wanted(noun),
		onlyAre(r.trusted, "signer"))
	return Verdict{Policy: r.source, Reason: joined(reason, why), Remediation: fix + "; no further " + noun + " of the image helps"}
}

// onlyAre says that there are only n of something.
func onlyAre(n int, noun string) string {
	if n == 1 {
		return "only 1 " + noun + " is"
	}
	return fmt.Sprintf("only %s are", plural(n, noun))
}

// wanted says what the requirement asks for.
func (r Requirement) wanted(noun string) string {
	joiner := " or "
	if r.all {
		joiner = " and for "
	}
	names := join(r.verifiers, joiner)
	if r.atLeast > 1 {
		return fmt.Sprintf("a valid %s by each of %d different signers, for %s", noun, r.atLeast, names)
	}
	return fmt.Sprintf("a valid %s for %s", noun, names)
}

// noun returns the kind of evidence of findings.
func noun(findings []Finding) string {
	attestations := 0
	for _, f := range findings {
		if f.Type == "Attestation" {
			attestations++
		}
	}
	switch attestations {
	case 0:
		return "signature"
	case len(findings):
		return "attestation"
	}
	return "signature or attestation"
}

// lacking returns the findings that explain why r is not met. If AllOf has proof of a
// verifier, failures of that verifier explain nothing, unless there are too few signers.
func (r Requirement) lacking(findings []Finding) []Finding {
	by, signers := provenBy(findings)
	if !r.all || len(signers) < r.atLeast {
		return findings
	}
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return slices.Contains(by, f.Verifier) })
}

// proof says what was proven although a condition does not hold.
func proof(findings []Finding) string {
	by, signers := provenBy(findings)
	switch what := noun(findings); len(signers) {
	case 0:
		return "no valid " + what
	case 1:
		return fmt.Sprintf("a valid %s for %s", what, join(by, " and for "))
	default:
		return fmt.Sprintf("a valid %s by each of %d signers, for %s", what, len(signers), join(by, " and "))
	}
}

// provenBy returns the verifiers that have proof, and its distinct signers.
func provenBy(findings []Finding) (verifiers, signers []string) {
	for _, f := range findings {
		if f.Proven() {
			verifiers, signers = append(verifiers, f.Verifier), append(signers, f.signer)
		}
	}
	return unique(verifiers), unique(signers)
}

// cause is one message, and the verifiers that returned it.
type cause struct {
	message, remediation, command string

	reason    Reason
	verifiers []string
}

// foreign is the distance of evidence for another verifier, and beyond the distance of verifiers that can accept no
// evidence at all.
const (
	foreign = 3
	beyond  = 4
)

// distance ranks how far rejected evidence was from being accepted for r. Anyone who can push can attach
// anything, and images have evidence for several verifiers, so a denial begins with the nearest.
func (r Reason) distance() int {
	switch r {
	case ReasonWrongKey, ReasonWrongDigest, ReasonUntrustedCertificate, ReasonUntrusted, ReasonTamperedPayload, ReasonTamperedEnvelope,
		ReasonContentMismatch:
		return 1 // no trusted signer is known to have signed it
	case ReasonMalformed, ReasonNoLayers, ReasonNoSignature, ReasonUnsupported:
		return 2
	case ReasonKeyless, ReasonKeyed, ReasonWrongPredicate:
		return foreign
	case ReasonBrokenResource, ReasonNoSuchVerifier, ReasonNotForThisImage:
		return beyond
	default:
		return 0
	}
}

// causes returns the distinct messages of the findings with a result. Evidence that nearly counted comes before
// evidence of others; otherwise the order is kept.
func causes(findings []Finding, result Result) []cause {
	var list []cause
	at, named := map[string]int{}, map[[2]string]bool{}
	for _, f := range findings {
		if f.Result() != result || f.Proven() {
			continue
		}
		i, seen := at[f.Message]
		if !seen {
			i = len(list)
			at[f.Message] = i
			list = append(list, cause{message: f.Message, remediation: f.Remediation, command: f.Command, reason: f.Reason})
		}
		if by := [2]string{f.Message, f.Verifier}; !named[by] {
			named[by] = true
			list[i].verifiers = append(list[i].verifiers, f.Verifier)
		}
	}
	slices.SortStableFunc(list, func(a, b cause) int {
		if far := cmp.Compare(a.reason.distance(), b.reason.distance()); far != 0 || a.reason.distance() != beyond {
			return far
		}
		return cmp.Compare(a.reason, b.reason)
	})
	return list
}

// near returns the causes of evidence that nearly counted.
func near(findings []Finding) []cause {
	return slices.DeleteFunc(causes(findings, Invalid), func(c cause) bool { return c.reason.distance() > 0 })
}

// messages joins the first causes. If they are about different verifiers, each names its own.
func (r Requirement) messages(all []cause) string {
	all = summed(all)
	said := make([]string, 0, maxCauses+1)
	for i, c := range all {
		if i == maxCauses {
			said = append(said, fmt.Sprintf("and %d more", len(all)-maxCauses))
			break
		}
		if len(c.verifiers) > 0 && len(c.verifiers) < len(r.verifiers) {
			c.message = fmt.Sprintf("for %s, %s", join(c.verifiers, " and "), c.message)
		}
		said = append(said, c.message)
	}
	return strings.Join(said, "; ")
}

// summed returns causes with one cause for all verifiers that can accept nothing for the same reason. That cause
// names the verifiers itself.
func summed(all []cause) []cause {
	var list []cause
	for i := 0; i < len(all); {
		c, names, n := all[i], slices.Clone(all[i].verifiers), 1
		if what := c.reason.sum(); what != "" {
			for ; i+n < len(all) && all[i+n].reason == c.reason; n++ {
				names = append(names, all[i+n].verifiers...)
			}
			if n > 1 {
				c.message, c.verifiers = fmt.Sprintf("%d Verifiers %s: %s (%s)", len(names), what, join(names, ", "), c.message), nil
			}
		}
		list, i = append(list, c), i+n
	}
	return list
}

// sum says what is wrong with several verifiers that can accept nothing, "" if r is about evidence.
func (r Reason) sum() string {
	switch r {
	case ReasonBrokenResource:
		return "cannot be used"
	case ReasonNoSuchVerifier:
		return "do not apply"
	case ReasonNotForThisImage:
		return "are not for this image"
	default:
		return ""
	}
}

// remedies joins the advice on the first causes, and the commands. If every verifier is required, all
// commands must run; otherwise the first one is enough.
func (r Requirement) remedies(all []cause) (remediation, command string) {
	var fixes []cause
	for _, c := range all {
		same := func(other cause) bool { return other.remediation == c.remediation && other.command == c.command }
		if c.remediation+c.command != "" && !slices.ContainsFunc(fixes, same) && len(fixes) < maxFixes {
			fixes = append(fixes, c)
		}
	}
	var advice, run []string
	for _, c := range fixes {
		if c.command != "" && (r.all || len(run) == 0) {
			run = append(run, c.command)
		}
		switch {
		case c.remediation != "":
			advice = append(advice, c.remediation)
		case len(fixes) > 1 && slices.Contains(run, c.command):
			advice = append(advice, runCommand)
		}
	}
	advice = unrepeated(advice)
	if len(advice) == 1 && advice[0] == runCommand {
		advice = nil
	}
	joiner := "; or "
	if r.all {
		joiner = "; and "
	}
	return strings.Join(advice, joiner), strings.Join(run, " && ")
}

// runCommand refers to a command in a list of remediations.
const runCommand = "run the command"

// unrepeated returns list without duplicates, in its order.
func unrepeated(list []string) (kept []string) {
	for _, text := range list {
		if !slices.Contains(kept, text) {
			kept = append(kept, text)
		}
	}
	return kept
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

const ellipsis = "…"

// Cut shortens s to at most limit bytes of valid UTF-8, with an ellipsis.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:max(limit-len(ellipsis), 0)], "") + ellipsis
}

// OneLine returns text that a stranger chose as one line: characters that control a terminal,
// are invisible or reorder text become spaces, so that nobody can forge a second line. The
// API server drops an admission warning that contains one.
func OneLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s // no copy in the common case
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
}

// Shown returns text that a stranger chose as one line of at most limit bytes.
func Shown(s string, limit int) string { return OneLine(Cut(s, limit)) }
