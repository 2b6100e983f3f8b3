// Package breadth finds strangers who satisfy an identity of a keyless signer. It runs the code that decides
// about signatures on the subjects of strangers: another owner, another repository, a pull request. It
// verifies nothing.
package breadth

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// Reach ranks strangers.
type Reach int

// The reaches, the widest last.
const (
	// Nobody means that no stranger gets in.
	Nobody Reach = iota
	// Colleagues have an address of the same domain.
	Colleagues
	// Insiders can work in the same organization, repository or cluster.
	Insiders
	// Anyone can get an account of the identity provider.
	Anyone
)

// Stranger is somebody whose signatures count although the identity is probably not meant for
// them.
type Stranger struct {
	Reach Reach
	// Who describes them, such as "any other owner".
	Who string
	// Issuer and Subject are from a certificate that they can get.
	Issuer, Subject string
}

// Judgement is the result of [Judge] for an identity.
type Judgement struct {
	// Strangers get in, those with the widest reach first. None means that no tried stranger gets in.
	Strangers []Stranger
	// Nobody says why no signer can match, "" if one can.
	Nobody string
	// Narrower is a better identity, the zero value if there is no suggestion.
	Narrower cosign.Identity
	// Expression is the keyless.expression to use with it, "" if the expression need not change.
	Expression string
}

// MaxSteps is enough for any usual identity, or for 16 exact ones. A step takes about a microsecond.
const MaxSteps = 96 << 10

// Judge finds the strangers that satisfy an identity, and an expression unless that is "". An identity that cannot
// be used lets nobody in. Judge decrements steps. Strangers that it has not found when steps are used up are
// missing, and steps is then 0 or less.
func Judge(identity cosign.Identity, expression string, steps *int) Judgement {
	j, ok := newJudge(identity, expression, steps)
	if !ok {
		return Judgement{}
	}
	known := j.known()
	if len(known) == 0 {
		return j.unknown()
	}
	var judged Judgement
	matched, likely := false, ""
	for _, m := range known {
		found, some := j.form(m.form, m.issuer)
		if some && !matched {
			matched, likely = true, m.issuer
		}
		judged.add(found)
	}
	if !matched && identity.Issuer != "" {
		judged.Nobody = "no subject of " + known[0].form.name + " matches: they are " + shape(known[0].form)
		if strings.Contains(identity.Subject, "*") {
			judged.Nobody += " (a * in subject stands for itself)"
		}
		if f, issuer, ok := j.elsewhere(known[0].form); ok {
			judged.Nobody += "; such subjects are of " + f.name
			judged.Narrower, judged.Expression = from(identity, issuer, expression, steps)
		} else if lower, ok := j.lowerCase(known[0].form); ok {
			judged.Nobody += ", with the domain in lower case"
			judged.Narrower = lower
		} else {
			judged.Narrower = j.closest(known[0].form)
		}
	}
	if identity.IssuerRegExp != "" && j.accepts("https://issuer."+strange+".example", j.example) {
		judged.Strangers = append(
			[]Stranger{{Anyone, "whoever any identity provider vouches for", "https://issuer." + strange + ".example", j.example}},
			judged.Strangers...)
		if matched && judged.Narrower == (cosign.Identity{}) { // only the issuer is too broad
			judged.Narrower = j.identity
			judged.Narrower.Issuer, judged.Narrower.IssuerRegExp = likely, ""
		}
	}
	slices.SortStableFunc(judged.Strangers, func(a, b Stranger) int { return cmp.Compare(b.Reach, a.Reach) })
	return judged
}

// Who reports whether anybody can have an identity, and whether people who sign at a terminal can. It agrees with
// [Judge] about nobody at a fraction of its cost. If steps run out, it assumes that somebody can.
func Who(identity cosign.Identity, steps *int) (anybody, people bool) {
	j, exact := &judge{identity: identity, steps: steps}, identity == cosign.Identity{Issuer: identity.Issuer, Subject: identity.Subject} &&
		identity.Issuer != "" && identity.Subject != ""
	if !exact {
		var ok bool
		if j, ok = newJudge(identity, "", steps); !ok {
			return true, false
		}
	}
	is := func(f form) bool {
		if exact {
			return f.valid(identity.Subject)
		}
		_, ok := j.meant.Common(f.whole, steps)
		if !ok {
			_, ok = j.subject.Common(f.whole, steps)
		}
		return ok
	}
	known := j.known()
	if len(known) == 0 {
		return j.misspelt().Nobody == "", is(mail())
	}
	for _, m := range known {
		if is(m.form) {
			anybody, people = true, people || m.form.people()
		}
	}
	return anybody || identity.Issuer == "" || *steps <= 0, people
}

// elsewhere returns the public provider whose subjects an identity names with another provider's issuer.
func (j *judge) elsewhere(of form) (form, string, bool) {
	given := cmp.Or(j.identity.Subject, written(j.identity.SubjectRegExp))
	if of.begins(given) {
		return form{}, "", false
	}
	for _, f := range forms() {
		issuer := unquoted(f.issuers)
		if f.issuers != regexp.QuoteMeta(issuer) {
			continue // each customer has its own issuer
		}
		if f.begins(given) {
			return f, issuer, true
		}
		if _, ok := j.subject.Common(f.whole, j.steps); ok && f.parts[0].name != "" {
			return f, issuer, true
		}
	}
	return form{}, "", false
}

// from returns an identity with another issuer and its expression. If that identity lets strangers in, from
// returns the narrower one.
func from(identity cosign.Identity, issuer, expression string, steps *int) (cosign.Identity, string) {
	identity.Issuer = issuer
	judged := Judge(identity, expression, steps)
	if judged.Narrower == (cosign.Identity{}) {
		return identity, judged.Expression
	}
	return judged.Narrower, judged.Expression
}

// add adds the result for a form. The narrower identity is the one of the first form that lets a
// stranger in.
func (j *Judgement) add(found Judgement) {
	if len(j.Strangers) == 0 && len(found.Strangers) > 0 {
		j.Narrower, j.Expression = found.Narrower, found.Expression
	}
	j.Strangers = append(j.Strangers, found.Strangers...)
}

// judge judges one identity.
type judge struct {
	identity        cosign.Identity
	matches         func(issuer, subject string) bool // whatever the expression says
	accepts         func(issuer, subject string) bool
	acceptsCaller   func(issuer, subject, caller string) bool // of a workflow that another one calls
	condition       *condition                                // nil without an expression
	issuer, subject *cel.Pattern
	// meant is the subject as its author reads it: an unescaped dot is a dot.
	meant *cel.Pattern
	// words are what may be names in the text of the subject's expression.
	words []string
	steps *int
	// at is the issuer of the current form.
	at string
	// example is a subject that the identity accepts, if one was found.
	example string
}

func newJudge(identity cosign.Identity, expression string, steps *int) (*judge, bool) {
	matches, err := identity.Matcher()
	if err != nil {
		return nil, false
	}
	j := &judge{identity: identity, words: wordsOf(identity.SubjectRegExp), steps: steps, matches: matches, accepts: matches}
	j.acceptsCaller = func(issuer, subject, _ string) bool { return matches(issuer, subject) }
	if j.issuer, err = cel.NewPattern(orText(identity.IssuerRegExp, identity.Issuer)); err != nil {
		return nil, false
	}
	if identity.InsecureIgnoreIssuer {
		j.issuer = pattern(".*")
	}
	if j.subject, err = cel.NewPattern(orText(identity.SubjectRegExp, identity.Subject)); err != nil {
		return nil, false
	}
	if j.meant = j.subject; identity.SubjectRegExp != "" {
		if j.meant, err = cel.NewMeantPattern(identity.SubjectRegExp); err != nil {
			return nil, false
		}
	}
	if expression != "" {
		if j.condition, err = newCondition(expression, steps); err != nil {
			return nil, false
		}
		j.acceptsCaller = func(issuer, subject, caller string) bool {
			return matches(issuer, subject) && j.condition.meets(issuer, subject, caller)
		}
		j.accepts = func(issuer, subject string) bool { return j.acceptsCaller(issuer, subject, subject) }
	}
	j.example, _ = j.subject.Common(printable(), j.steps)
	return j, true
}

// orText returns an expression, or one for a text if there is none.
func orText(expression, text string) string {
	return cmp.Or(expression, regexp.QuoteMeta(text))
}

// pattern returns one of our own patterns, which always compile.
func pattern(expression string) *cel.Pattern {
	p, err := cel.NewPattern(expression)
	if err != nil {
		panic("breadth: " + err.Error())
	}
	return p
}

// match is a form with an issuer that an identity accepts.
type match struct {
	form   form
	issuer string
}

// known returns the public providers whose issuers the identity accepts.
func (j *judge) known() (list []match) {
	if j.identity.InsecureIgnoreIssuer {
		return nil // Sigstore's public CA is refused with it
	}
	for _, f := range forms() {
		if j.identity.IssuerRegExp == "" {
			if f.issued.MatchString(j.identity.Issuer) {
				list = append(list, match{f, j.identity.Issuer})
			}
		} else if issuer, ok := j.issuer.Common(f.issuer, j.steps); ok {
			list = append(list, match{f, issuer})
		}
	}
	return list
}

// unknown judges an identity of an unknown provider.
func (j *judge) unknown() Judgement {
	if judged := j.misspelt(); judged.Nobody != "" {
		return judged
	}
	issuer, _ := j.issuer.Common(printable(), j.steps)
	for _, f := range own(issuer) {
		if found, some := j.form(f, issuer); some {
			return found // it is unknown who can get an account of a private provider
		}
	}
	return Judgement{}
}

// form judges the subjects of one form. It returns false if the identity accepts none of them.
func (j *judge) form(f form, issuer string) (judged Judgement, some bool) {
	j.at = issuer
	pinned, ok := j.pinned(f, values(f))
	if !ok {
		return Judgement{}, false
	}
	for _, e := range j.examples(f, pinned) {
		found := j.around(f, issuer, e)
		found.Strangers = slices.DeleteFunc(found.Strangers, func(s Stranger) bool {
			return slices.ContainsFunc(judged.Strangers, func(known Stranger) bool { return known.Who == s.Who })
		})
		judged.add(found)
	}
	return judged, true
}

// closed takes the parts out of open whose values are enough once they are exact: those that the author wrote. It puts
// these into values.
func (j *judge) closed(f form, pinned example, values []string, open, near map[string]bool) {
	for i, p := range f.parts {
		if !near[p.name] {
			continue
		}
		if j.wrote(values[i], pinned.alternative) {
			delete(open, p.name) // escaped dots, or a slash after it, are enough
		} else if j.condition == nil {
			if names := j.spelled(f, pinned, i); len(names) > 0 {
				values[i] = names[0]
				delete(open, p.name)
			}
		}
	}
}

// around judges the subjects of a form that differ from an example.
func (j *judge) around(f form, issuer string, pinned example) (judged Judgement) {
	if j.condition != nil {
		j.condition.ask(pinned.alternative, pinned.subject, j.steps)
	}
	values := f.partsOf(pinned)
	open, near := map[string]bool{}, map[string]bool{} // near are the parts that only a similar value opens
	add := func(o other, part string, issuer, subject string) {
		if !f.public && part != "issuer" {
			o.reach = min(o.reach, Insiders)
		}
		judged.Strangers = append(judged.Strangers, Stranger{o.reach, o.who, issuer, subject})
	}
	if f.others != "" {
		if issuer, ok := j.issuer.Common(f.other, j.steps); ok && j.accepts(issuer, pinned.subject) {
			who := "a cluster of somebody else"
			if f.name == enterprise {
				who = "another enterprise"
			}
			open["issuer"] = true
			add(other{who: who, reach: Anyone}, "issuer", issuer, pinned.subject)
		}
	}
	for i, p := range f.parts {
		for _, o := range p.others {
			subject, alone := j.but(f, pinned, i, o.values)
			ok := false
			if !alone { // in such a subject, a branch may look like what the identity requires
				subject, ok = j.with(f, pinned, i, o.values)
			}
			if p.name == "domain" && subject == pinned.subject {
				continue // the address itself, which is one person's
			}
			if (alone || ok) && j.accepts(issuer, subject) {
				open[p.name] = open[p.name] || alone
				if o.reach == Colleagues && free.MatchString(subject) {
					o.reach = Anyone
				}
				add(o, p.name, issuer, subject)
			}
		}
		if p.similar == "" || open[p.name] || j.identity.SubjectRegExp == "" {
			continue
		}
		if subject, ok := j.similar(f, pinned, i, values[i]); ok {
			open[p.name], near[p.name] = !strings.HasPrefix(values[i], "refs/tags/"), true // tags stay
			add(other{who: p.similar, reach: p.near}, p.name, issuer, subject)
		}
	}
	if len(judged.Strangers) > 0 {
		const plain = "https://token.actions.githubusercontent.com"
		if f.name == enterprise && j.accepts(plain, pinned.subject) {
			issuer = plain // few enterprises have their own issuer
		}
		j.closed(f, pinned, values, open, near)
		judged.Narrower = j.narrower(f, issuer, values, open)
		if near["ref"] && len(judged.Strangers) == 1 {
			if numbered, ok := j.numbered(); ok {
				judged.Narrower = numbered
			}
		}
	}
	if s, ok := j.caller(f, issuer, pinned.subject); ok && !open["owner"] && !open["repository"] {
		if len(judged.Strangers) == 0 {
			judged.Narrower = j.identity
		}
		judged.Strangers, judged.Expression = append(judged.Strangers, s), calledFrom
	}
	return judged
}
