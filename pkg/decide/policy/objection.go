package policy

import (
	"fmt"
	"slices"
	"strings"
)

// MaxOthers is the number of further objections that a [Verdict] keeps. A developer needs to
// see every obstacle, but a cluster may have any number of mandatory policies.
const MaxOthers = 7

// maxExplained is the number of objections that a text explains. For the others, it only names
// the policies.
const maxExplained = 4

// Objection says why one policy denies an image, and what to do about it. Its fields are as in [Verdict].
type Objection struct {
	Policy      ObjectRef `json:"policy"`
	Reason      string    `json:"reason"`
	Remediation string    `json:"remediation,omitempty"`
	Command     string    `json:"command,omitempty"`
	Contact     string    `json:"contact,omitempty"`

	// advised is the length of the start of Remediation that precedes the command in importance.
	advised int
}

// Objections returns the objections of v: first the objection of [Verdict.Policy], then the others.
func (v Verdict) Objections() []Objection {
	return append(
		[]Objection{{Policy: v.Policy, Reason: v.Reason, Remediation: v.Remediation, Command: v.Command, Contact: v.Contact, advised: v.advised}},
		v.Others...)
}

// and returns v, which denies, with the objections of another verdict that also denies.
func (v Verdict) and(other Verdict) Verdict {
	more := other.Objections()
	room := min(len(more), max(MaxOthers-len(v.Others), 0))
	v.Others, v.More = slices.Concat(v.Others, more[:room]), v.More+other.More+len(more)-room
	return v
}

// Asking returns v with the contact of each policy, unless v allows.
func (v Verdict) Asking(contact func(ObjectRef) string) Verdict {
	if v.outcome == Allowed {
		return v
	}
	v.Contact, v.Others = contact(v.Policy), slices.Clone(v.Others)
	for i := range v.Others {
		v.Others[i].Contact = contact(v.Others[i].Policy)
	}
	return v
}

// mandatory precedes the name of a mandatory policy in the reason of a denial.
const mandatory = "mandatory "

// Mandatory returns v with reasons that call source, a mandatory policy, mandatory, unless v allows.
func (v Verdict) Mandatory(source ObjectRef) Verdict {
	if v.outcome == Allowed {
		return v
	}
	name := source.String() + " "
	mark := func(reason string) string {
		if strings.Contains(reason, mandatory+name) {
			return reason
		}
		return strings.Replace(reason, name, mandatory+name, 1)
	}
	v.Reason, v.Others = mark(v.Reason), slices.Clone(v.Others)
	for i := range v.Others {
		v.Others[i].Reason = mark(v.Others[i].Reason)
	}
	return v
}

// Words before advice. Only whoever built an image may have it admitted as it is: whoever moved a tag would like others
// to sign what it names now, to attest it or to ask for an exception.
const (
	plainly = "To fix: "
	ifYours = "To fix, " + ifItIs + ": "
	ifItIs  = "if your build made it"
)

// FixLead returns the words that precede a remediation with a command, either of which may be empty.
func FixLead(remediation, command string) string {
	starts := func(with string) bool { return strings.HasPrefix(remediation, with) }
	admits := command != "" && !strings.HasPrefix(command, "landwaiter ") ||
		slices.ContainsFunc([]string{"sign ", "make one for ", addEvidence}, starts) || strings.Contains(remediation, Outweighed)
	if admits && !strings.Contains(remediation, ifItIs) {
		return ifYours
	}
	return plainly
}

// addEvidence begins the advice for an expression that does not hold.
const addEvidence = "add the evidence "

// Outweighed is in advice to ask for an exception that overrides more.
const Outweighed = ", but it needs "

// Words between the parts of a text.
const (
	also     = ". Also: "
	ask      = ". Ask: "
	commands = ". Command: "
	toSign   = ". " + ifYours
	// elsewhere replaces a command that does not fit.
	elsewhere = "landwaiter verify --explain shows the command"
)

// Fix joins advice and the command for it. The command ends the text, so that it can be copied.
func Fix(remediation, command string) string {
	_, lead, _ := strings.Cut(FixLead(remediation, command), ", ")
	if remediation == "" || command == "" {
		return lead + remediation + command
	}
	return lead + remediation + commands + command
}

// Advised returns v with advice that precedes its other advice. A text that is too long loses the command first.
func (v Verdict) Advised(first string) Verdict {
	v.advised = len(first)
	other := v.Remediation
	if other == "" && v.Command != "" {
		other = runCommand
	}
	switch {
	case other == "":
	case strings.Contains(first, Outweighed): // the caution is before all of it
		first += "; or " + other
	default:
		first += "; or, " + ifItIs + ", " + other
	}
	v.Remediation = first
	return v
}

// prefixed returns text with a prefix, "" if text is empty.
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
		longest = max(longest, d.size()+len(toSign))
	}
	return v.TextWithin(longest)
}

// TextWithin is Text with at most limit bytes for each of the first objections, and as many for the
// policies of all others. The commands of all objections end it as one line for a shell.
func (v Verdict) TextWithin(limit int) string {
	if len(v.Others) == 0 {
		return Objection{v.Policy, v.Reason, v.Remediation, v.Command, v.Contact, v.advised}.TextWithin(limit)
	}
	all := v.Objections()
	var texts, run []string
	cautioned := true
	for _, d := range named(all)[:min(len(all), maxExplained)] {
		text, command := d.within(limit, commands)
		texts = append(texts, text)
		if command != "" {
			run = append(run, command)
		}
		if command != "" && d.Remediation == "" {
			cautioned = false
		}
	}
	if rest := v.unexplained(all); rest != "" {
		texts = append(texts, Cut(rest, limit))
	}
	lead := toSign
	if cautioned {
		lead = commands
	}
	return strings.Join(texts, also) + prefixed(lead, strings.Join(run, " && "))
}

// named returns objections with a name for the key in each command, if several commands have a key: policies rarely
// trust the same key.
func named(all []Objection) []Objection {
	has := func(d Objection) bool { return d.Command != "" }
	if first := slices.IndexFunc(all, has); first < 0 || !slices.ContainsFunc(all[first+1:], has) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Command = strings.Replace(all[i].Command, "--key KEY", "--key KEY-FOR-"+all[i].Policy.Name, 1)
	}
	return all
}

// unexplained lists the policies that a text does not explain, "" if there are none.
func (v Verdict) unexplained(all []Objection) string {
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
// command, if there is one.
func (d Objection) TextWithin(limit int) string {
	text, command := d.within(limit, d.toRun())
	return text + prefixed(d.toRun(), command)
}

// size is the length of d's text without the words before the command.
func (d Objection) size() int {
	return len(d.Reason) + len(prefixed(ask, d.Contact)) + len(d.toFix()) + len(d.Remediation) + len(d.Command)
}

// toFix precedes the advice, and toRun the command.
func (d Objection) toFix() string { return ". " + FixLead(d.Remediation, d.Command) }

func (d Objection) toRun() string {
	if d.Remediation == "" {
		return toSign
	}
	return commands
}

// within returns the text of d, and its command, in at most limit bytes together with toRun before the command. If they
// do not fit, it first cuts the end of the reason, which usually lists more of the same, then the end of the advice, then
// the contact. It never cuts a command, because half a command does something else: it replaces the command by a hint where it is shown. It
// also does that if advice for this image in particular would be cut.
func (d Objection) within(limit int, toRun string) (text, command string) {
	toFix := d.toFix()
	if d.size()+len(toRun) <= limit {
		return d.Reason + prefixed(ask, d.Contact) + prefixed(toFix, d.Remediation), d.Command
	}
	room := limit - min(len(d.Reason), d.least(limit))
	first := 0
	if d.Remediation != "" {
		first = len(toFix) + len(ellipsis) + 1 // no command stands without the words before its advice
	}
	if d.advised > 0 {
		first = len(toFix) + d.advised + len(ellipsis) + len(prefixed(ask, d.Contact))
	}
	if len(d.Command)+len(toRun)+first > room {
		d.Remediation, d.Command = joined(d.Remediation, elsewhere), ""
	} else if d.Command != "" {
		room -= len(d.Command) + len(toRun)
	}
	contact, advice := prefixed(ask, d.Contact), prefixed(toFix, d.Remediation)
	if len(contact)+min(len(advice), max(leastAdvice, d.advised+len(toFix)+len(ellipsis))) > room {
		contact = ""
	}
	if advice = Cut(advice, room-len(contact)); len(advice) < len(toFix)+len(ellipsis)+1 {
		advice = ""
	}
	used := len(contact) + len(advice) + len(prefixed(toRun, d.Command))
	return Cut(d.Reason, limit-used) + contact + advice, d.Command
}

// leastAdvice is the length of long advice that is kept before the contact is cut: the advice begins with what a
// developer can do.
const leastAdvice = 96

// least is the part of limit for a long reason, which names the policy. The advice gets the
// rest.
func (d Objection) least(limit int) int {
	return min(limit/2, max(limit/3, len(mandatory)+len(d.Policy.String())+len(ellipsis)))
}

// Reasons joins the reasons of all objections in at most limit bytes. Each gets an equal share.
func (v Verdict) Reasons(limit int) string {
	if len(v.Others) == 0 {
		return Cut(v.Reason, limit) // no copy in the common case
	}
	var reasons []string
	for _, d := range v.Objections() {
		reasons = append(reasons, d.Reason)
	}
	if v.More > 0 {
		reasons = append(reasons, fmt.Sprintf("%d more", v.More))
	}
	return joinWithin(reasons, also, limit)
}

// joinWithin joins texts in at most limit bytes. It cuts texts that are longer than their
// share.
func joinWithin(texts []string, separator string, limit int) string {
	room := limit - len(separator)*(len(texts)-1)
	order := slices.Clone(texts)
	slices.SortFunc(order, func(a, b string) int { return len(a) - len(b) })
	share := room
	for i, text := range order { // short texts leave their rest to the others
		if share = room / (len(order) - i); len(text) > share {
			break
		}
		room -= len(text)
	}
	cut := make([]string, len(texts))
	for i, text := range texts {
		cut[i] = Cut(text, max(share, 0))
	}
	return Cut(strings.Join(cut, separator), limit)
}

// Contacts joins the contacts of all objections as [JoinContacts] does.
func (v Verdict) Contacts(limit int) string {
	if len(v.Others) == 0 {
		return Shown(v.Contact, limit)
	}
	var contacts []string
	for _, d := range v.Objections() {
		contacts = append(contacts, d.Contact)
	}
	return JoinContacts(contacts, limit)
}

// JoinContacts joins distinct contacts in at most limit bytes. It counts those that do not fit,
// because half an address is useless.
func JoinContacts(contacts []string, limit int) string {
	var distinct []string
	for _, c := range contacts {
		if c != "" && !slices.Contains(distinct, c) {
			distinct = append(distinct, c)
		}
	}
	for shown := len(distinct); shown > 0; shown-- {
		text := strings.Join(distinct[:shown], "; ")
		if more := len(distinct) - shown; more > 0 {
			text += fmt.Sprintf("; %d more", more)
		}
		if len(text) <= limit {
			return OneLine(text)
		}
	}
	return Shown(strings.Join(distinct, "; "), limit)
}

// Remedies joins the advice of all objections, in at most limit bytes, and their commands. Several commands become
// one line for a shell, because all of them must run. If there are several objections, the advice names the
// policies.
func (v Verdict) Remedies(limit int) (remediation, command string) {
	if len(v.Others) == 0 {
		return Cut(v.Remediation, limit), v.Command
	}
	var advice, run []string
	for _, d := range named(v.Objections()) {
		if d.Command != "" {
			run = append(run, d.Command)
		}
		if d.Remediation != "" {
			advice = append(advice, fmt.Sprintf("for %s, %s", d.Policy, d.Remediation))
		}
	}
	return joinWithin(advice, "; ", limit), strings.Join(run, " && ")
}
