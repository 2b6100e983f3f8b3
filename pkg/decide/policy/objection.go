package policy

import (
	"fmt"
	"slices"
	"strings"
)

// MaxOthers is how many further objections a [Verdict] keeps. A developer needs to see all that
// blocks an image, but a cluster may have any number of mandatory policies.
const MaxOthers = 7

// maxExplained is how many objections a text explains. It only names the policies of the others.
const maxExplained = 4

// Objection says why one policy denies an image, and what to do about it. Its fields are as in [Verdict].
type Objection struct {
	Policy      ObjectRef `json:"policy"`
	Reason      string    `json:"reason"`
	Remediation string    `json:"remediation,omitempty"`
	Command     string    `json:"command,omitempty"`
	Contact     string    `json:"contact,omitempty"`
}

// Objections returns what v says against an image: first the objection of [Verdict.Policy], then the others.
func (v Verdict) Objections() []Objection {
	return append([]Objection{{Policy: v.Policy, Reason: v.Reason, Remediation: v.Remediation, Command: v.Command, Contact: v.Contact}}, v.Others...)
}

// and returns v, which denies, with the objections of another verdict that denies.
func (v Verdict) and(other Verdict) Verdict {
	more := other.Objections()
	room := min(len(more), max(MaxOthers-len(v.Others), 0))
	v.Others, v.More = slices.Concat(v.Others, more[:room]), v.More+other.More+len(more)-room
	return v
}

// Asking returns v with the contact of each policy, if it denies.
func (v Verdict) Asking(contact func(ObjectRef) string) Verdict {
	if v.outcome != Denied {
		return v
	}
	v.Contact, v.Others = contact(v.Policy), slices.Clone(v.Others)
	for i := range v.Others {
		v.Others[i].Contact = contact(v.Others[i].Policy)
	}
	return v
}

// Words between the parts of a text.
const (
	also     = "Also: "
	ask      = ". Ask: "
	toFix    = ". To fix: "
	commands = ". Command: "
)

// Fix joins advice and the command for it. The command ends the text, so that it can be copied.
func Fix(remediation, command string) string {
	if remediation == "" || command == "" {
		return remediation + command
	}
	return remediation + commands + command
}

// prefixed returns text behind a prefix, "" if there is none.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Text returns each objection: the reason, whom to ask and what to do.
func (v Verdict) Text() string {
	longest := 0
	for _, d := range v.Objections() {
		longest = max(longest, len(d.Reason)+len(ask)+len(d.Contact)+len(toFix)+len(d.Remediation)+len(commands)+len(d.Command))
	}
	return v.TextWithin(longest)
}

// TextWithin is Text with at most limit bytes for each of the first objections, and as many for the
// policies of all others.
func (v Verdict) TextWithin(limit int) string {
	all := v.Objections()
	var text strings.Builder
	for i, d := range all[:min(len(all), maxExplained)] {
		if i > 0 {
			text.WriteString(all[i-1].separator() + also)
		}
		text.WriteString(d.TextWithin(limit))
	}
	if rest := v.named(all); rest != "" {
		text.WriteString(all[min(len(all), maxExplained)-1].separator() + Cut(also+rest, limit))
	}
	return text.String()
}

// separator ends the text of d in front of another one. No punctuation may stick to a command.
func (d Objection) separator() string {
	if d.Command != "" {
		return " "
	}
	return ". "
}

// named lists the policies that a text does not explain, "" if there are none.
func (v Verdict) named(all []Objection) string {
	var names []string
	for _, d := range all[min(len(all), maxExplained):] {
		names = append(names, d.Policy.String())
	}
	if v.More > 0 {
		names = append(names, fmt.Sprintf("%d more", v.More))
	}
	return strings.Join(names, ", ")
}

// TextWithin returns the reason, whom to ask and what to do in at most limit bytes. It ends with the
// command, if there is one. A long reason, which mostly lists more of the same, is cut to two thirds of
// the limit to leave room for what to do, and to one third if a command needs the room: half a command
// is useless.
func (d Objection) TextWithin(limit int) string {
	var tails []string // the best first
	fix := prefixed(toFix, Fix(d.Remediation, d.Command))
	tails = append(tails, prefixed(ask, d.Contact)+fix, fix)
	if d.Command != "" {
		tails = append(tails, toFix+d.Command)
	}
	for _, tail := range tails {
		if len(tail) <= limit-min(len(d.Reason), d.least(limit)) {
			return Cut(d.Reason, limit-len(tail)) + tail
		}
	}
	reason := Cut(d.Reason, max(2*limit/3, limit-len(fix)))
	return reason + Cut(fix, limit-len(reason))
}

// least is how much of limit is for a long reason.
func (d Objection) least(limit int) int {
	if d.Command != "" {
		return limit / 3
	}
	return 2 * limit / 3
}

// Reasons joins the reasons of all objections.
func (v Verdict) Reasons() string {
	if len(v.Others) == 0 {
		return v.Reason // without a copy, as nearly always
	}
	var reasons []string
	for _, d := range v.Objections() {
		reasons = append(reasons, d.Reason)
	}
	if v.More > 0 {
		reasons = append(reasons, fmt.Sprintf("%d more", v.More))
	}
	return strings.Join(reasons, ". "+also)
}

// Contacts joins the contacts of all objections, each once.
func (v Verdict) Contacts() string {
	if len(v.Others) == 0 {
		return v.Contact
	}
	var contacts []string
	for _, d := range v.Objections() {
		if d.Contact != "" && !slices.Contains(contacts, d.Contact) {
			contacts = append(contacts, d.Contact)
		}
	}
	return strings.Join(contacts, "; ")
}

// Remedies joins the advice and the commands of all objections. Several commands are one line for a
// shell, because all of them have to run. If there are several objections, the advice names the policies,
// and so does the key of each command: policies rarely trust the same one.
func (v Verdict) Remedies() (remediation, command string) {
	if len(v.Others) == 0 {
		return v.Remediation, v.Command
	}
	var advice, run []string
	for _, d := range v.Objections() {
		if d.Command != "" {
			run = append(run, strings.Replace(d.Command, "--key KEY", "--key KEY-FOR-"+d.Policy.Name, 1))
		}
		if d.Remediation != "" {
			advice = append(advice, fmt.Sprintf("for %s, %s", d.Policy, d.Remediation))
		}
	}
	return strings.Join(advice, "; "), strings.Join(run, " && ")
}
