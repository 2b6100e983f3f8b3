package breadth

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// example is a subject of a form that an identity accepts.
type example struct {
	subject string
	// fixed are the parts with their usual values where the identity accepts these, their expressions elsewhere.
	fixed []string
}

// pinned returns an example with as many usual values as the identity accepts, and false if it accepts no subject of
// the form.
func (j *judge) pinned(f form) (example, bool) {
	made := example{fixed: make([]string, len(f.parts))}
	for i, p := range f.parts {
		made.fixed[i] = p.values
	}
	subject := j.meant
	if made.subject = j.text(subject, made.fixed); made.subject == "" {
		subject = j.subject
		if made.subject = j.text(subject, made.fixed); made.subject == "" {
			return example{}, false
		}
	}
	for i, p := range f.parts {
		if p.usual == "" {
			continue
		}
		tried := slices.Clone(made.fixed)
		tried[i] = regexp.QuoteMeta(p.usual)
		if text := j.text(subject, tried); text != "" {
			made = example{text, tried}
		}
	}
	return made, true
}

// with returns a subject that the identity accepts and that is the example but for one part, or one that has other
// parts that differ if there is none.
func (j *judge) with(f form, like example, at int, values string) (string, bool) {
	tried := slices.Clone(like.fixed)
	tried[at] = values
	if subject, ok := j.common(language(tried)); ok && f.valid(subject) {
		return subject, true
	}
	for i, p := range f.parts {
		if i != at {
			tried[i] = p.values
		}
	}
	subject, ok := j.common(language(tried))
	return subject, ok && f.valid(subject)
}

// text returns a subject of parts that a pattern matches, "" if there is none.
func (j *judge) text(subject *cel.Pattern, parts []string) string {
	other, err := cel.NewPattern(language(parts))
	if err != nil {
		return ""
	}
	text, _ := subject.Common(other, j.steps)
	return text
}

// meant returns a pattern of an expression in which a dot that is not repeated stands for itself; otherwise if there
// is no such expression.
func meant(expression string, otherwise *cel.Pattern) *cel.Pattern {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || expression == "" {
		return otherwise
	}
	made, err := cel.NewPattern(literalDots(parsed).String())
	if err != nil {
		return otherwise
	}
	return made
}

// literalDots replaces the dots that are not repeated.
func literalDots(r *syntax.Regexp) *syntax.Regexp {
	switch r.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'.'}}
	case syntax.OpConcat, syntax.OpAlternate, syntax.OpCapture:
		for i, sub := range r.Sub {
			r.Sub[i] = literalDots(sub)
		}
	}
	return r
}

// common returns a subject that the identity and an expression match. What is too long to compare has none.
func (j *judge) common(expression string) (string, bool) {
	other, err := cel.NewPattern(expression)
	if err != nil {
		return "", false
	}
	return j.subject.Common(other, j.steps)
}

func language(parts []string) string { return "(?:" + strings.Join(parts, ")(?:") + ")" }

// expression matches the subjects of a form, with a group for each part.
func (f form) expression() *regexp.Regexp {
	var groups strings.Builder
	for _, p := range f.parts {
		groups.WriteString("(" + p.values + ")")
	}
	return regexp.MustCompile("^" + groups.String() + "$")
}

func (f form) valid(subject string) bool { return f.expression().MatchString(subject) }

// values returns the parts of an example.
func (f form) values(e example) []string {
	return f.expression().FindStringSubmatch(e.subject)[1:]
}

// shape shows how the subjects of a form look.
func shape(f form) string {
	var shown strings.Builder
	for _, p := range f.parts {
		switch {
		case p.name != "":
			shown.WriteString(strings.ToUpper(strings.ReplaceAll(p.name, " ", "-")))
		case p.usual != "":
			shown.WriteString(p.usual)
		default:
			shown.WriteString(unquoted(p.values))
		}
	}
	return shown.String()
}

// unquoted returns the text that an expression of [text] matches.
func unquoted(expression string) string { return strings.ReplaceAll(expression, `\`, "") }

// narrower returns an identity without strangers: parts that anybody could have are placeholders.
func (j *judge) narrower(f form, issuer string, values []string, open map[string]bool) cosign.Identity {
	made := cosign.Identity{Issuer: issuer, InsecureIgnoreIssuer: j.identity.InsecureIgnoreIssuer}
	if made.InsecureIgnoreIssuer {
		made.Issuer = ""
	}
	tagged := false
	var exact, expression strings.Builder
	for i, p := range f.parts {
		value := values[i]
		switch {
		case open[p.name] && p.name != "":
			value = p.given
		case p.name == "ref" && strings.HasPrefix(value, "refs/tags/") && j.acceptsTags(values, i):
			tagged = true
			exact.WriteString(value)
			expression.WriteString(`refs/tags/v[0-9].*`)
			continue
		case p.name != "" && value == p.usual && j.anyOf(values, i):
			value = p.given
		}
		exact.WriteString(value)
		expression.WriteString(regexp.QuoteMeta(value))
	}
	if tagged {
		made.SubjectRegExp = expression.String()
	} else {
		made.Subject = exact.String()
	}
	return made
}

// acceptsTags reports whether the identity accepts tags of several versions.
func (j *judge) acceptsTags(values []string, at int) bool {
	return j.anyOf(values, at) || j.replaced(values, at, "refs/tags/v1.2.3") && j.replaced(values, at, "refs/tags/v4.5.6")
}

// anyOf reports whether a part can be followed by more.
func (j *judge) anyOf(values []string, at int) bool { return j.replaced(values, at, values[at]+"1") }

func (j *judge) replaced(values []string, at int, value string) bool {
	tried := slices.Clone(values)
	tried[at] = value
	return j.accepts(j.at, strings.Join(tried, ""))
}

// closest returns the identity that was probably meant by one that accepts no subject of a form: the parts that its
// text gives, and placeholders.
func (j *judge) closest(f form) cosign.Identity {
	given := j.identity.Subject
	if given == "" {
		given = unquoted(strings.Trim(j.identity.SubjectRegExp, "^$"))
	}
	var made strings.Builder
	rest, following := given, true
	for i, p := range f.parts {
		if p.name == "" {
			fixed := p.usual
			if fixed == "" {
				fixed = unquoted(p.values)
			}
			if following {
				rest, following = strings.CutPrefix(rest, fixed)
			}
			made.WriteString(fixed)
			continue
		}
		value := ""
		if following {
			end := len(rest)
			if i+1 < len(f.parts) {
				if at := strings.Index(rest, unquoted(f.parts[i+1].values)); at >= 0 {
					end = at
				}
			}
			value, rest = rest[:end], rest[end:]
			if !regexp.MustCompile("^(?:" + p.values + ")$").MatchString(value) {
				value, following = "", false
			}
		}
		if value == "" {
			value = p.given
		}
		made.WriteString(value)
	}
	return cosign.Identity{Issuer: j.identity.Issuer, Subject: made.String()}
}
