package breadth

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// example is a subject of a form that an identity accepts.
type example struct {
	subject string
	// fixed has the parts with their usual values where the identity accepts these, and their expressions
	// elsewhere.
	fixed []string
	// alternative is the alternative of the expression that the subject meets, nil if claims of any subject meet it.
	alternative []cel.Comparison
}

// pinned returns an example with as many usual values as the identity accepts, and false if it accepts no subject of
// the form. Parts are expressions for the parts of the form.
func (j *judge) pinned(f form, parts []string) (example, bool) {
	whole, made := f.whole, example{fixed: parts}
	if !slices.Equal(parts, values(f)) {
		var err error
		if whole, err = cel.NewPattern(language(parts)); err != nil {
			return example{}, false
		}
	}
	subject := j.meant
	var ok bool
	if made.subject, ok = subject.Common(whole, j.steps); !ok {
		subject = j.subject
		if made.subject, ok = subject.Common(whole, j.steps); !ok {
			return example{}, false
		}
	}
	for i, p := range f.parts {
		if p.usual == "" || parts[i] != p.values {
			continue
		}
		tried := slices.Clone(made.fixed)
		tried[i] = regexp.QuoteMeta(p.usual)
		// A ref with an @ may only look like the rest of a subject.
		if text := j.text(subject, tried); text != "" && strings.Count(text, "@") <= strings.Count(made.subject, "@") {
			made.subject, made.fixed = text, tried
		}
	}
	return made, true
}

// examples returns an example for each alternative of the expression. It also returns pinned if that meets the
// expression, or if no example does.
func (j *judge) examples(f form, pinned example) (list []example) {
	if j.condition == nil {
		return []example{pinned}
	}
	add := func(e example) {
		j.condition.ask(e.alternative, e.subject, j.steps)
		if j.accepts(j.at, e.subject) && !slices.ContainsFunc(list, func(known example) bool { return known.subject == e.subject }) {
			list = append(list, e)
		}
	}
	add(pinned)
	for _, alternative := range j.condition.alternatives {
		if e, ok := j.pinned(f, j.determined(f, alternative)); ok {
			e.alternative = alternative
			add(e)
		}
	}
	if len(list) == 0 {
		return []example{pinned}
	}
	return list
}

// determined returns expressions for the parts of a form. Parts that comparisons determine have one value.
func (j *judge) determined(f form, alternative []cel.Comparison) []string {
	fixed := values(f)
	for _, c := range alternative {
		at, ok := spanOf(c.Of)
		if len(f.parts) != workflowParts {
			at, ok = span{0, len(f.parts), ""}, c.Of == "subject"
		}
		if ok && at.to > 0 {
			j.determine(f, fixed, c, at)
		}
	}
	return fixed
}

// determine replaces the expressions of parts that a comparison determines. It changes nothing if no subject meets it.
func (j *judge) determine(f form, fixed []string, c cel.Comparison, at span) {
	text := ""
	for _, read := range []func(string) (*cel.Pattern, error){cel.NewMeantPattern, cel.NewPattern} {
		if p, err := read(c.Pattern); err == nil && text == "" {
			text = j.text(p, append(slices.Clone(fixed[at.from:at.to]), regexp.QuoteMeta(at.more)))
		}
	}
	if text == "" { // what is too large has none, and is not compiled
		return
	}
	met, err := regexp.Compile("^(?:" + c.Pattern + ")$")
	if err != nil {
		return
	}
	*j.steps -= stepsOfExpression
	parts := regexp.MustCompile("^(" + strings.Join(fixed[at.from:at.to], ")(") + ")" + regexp.QuoteMeta(at.more) + "$").
		FindStringSubmatch(text)
	if parts == nil {
		return
	}
	parts = parts[1:]
	for i := range parts {
		p, own := f.parts[at.from+i], parts[i]
		if p.name == "" || fixed[at.from+i] != p.values {
			continue
		}
		if parts[i] = p.usual; !met.MatchString(strings.Join(parts, "") + at.more) {
			parts[i], fixed[at.from+i] = own, regexp.QuoteMeta(own)
		}
	}
}

// values returns the expressions of the parts of a form.
func values(f form) []string {
	list := make([]string, len(f.parts))
	for i, p := range f.parts {
		list[i] = p.values
	}
	return list
}

// begins reports whether a text begins like all subjects of a form.
func (f form) begins(text string) bool {
	return f.parts[0].name == "" && strings.HasPrefix(text, unquoted(f.parts[0].values))
}

// but returns a subject that the identity accepts and that differs from the example only in
// one part.
func (j *judge) but(f form, like example, at int, values string) (string, bool) {
	tried := slices.Clone(like.fixed)
	tried[at] = values
	subject, ok := j.common(language(tried))
	return subject, ok && f.valid(subject)
}

// with returns a subject that the identity accepts, with a part that differs from the example's. Other parts may
// differ, too.
func (j *judge) with(f form, like example, at int, values string) (string, bool) {
	tried := slices.Clone(like.fixed)
	tried[at] = values
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
	if *j.steps <= 0 { // reading an expression takes time, too
		return ""
	}
	other, err := cel.NewPattern(language(parts))
	if err != nil {
		return ""
	}
	text, _ := subject.Common(other, j.steps)
	return text
}

// common returns a subject that the identity and an expression match. It returns none if they are too long
// to compare.
func (j *judge) common(expression string) (string, bool) {
	if *j.steps <= 0 {
		return "", false
	}
	other, err := cel.NewPattern(expression)
	if err != nil {
		return "", false
	}
	return j.subject.Common(other, j.steps)
}

func language(parts []string) string { return "(?:" + strings.Join(parts, ")(?:") + ")" }

func (f form) valid(subject string) bool { return f.subject.MatchString(subject) }

// partsOf returns the parts of an example.
func (f form) partsOf(e example) []string {
	return f.subject.FindStringSubmatch(e.subject)[1:]
}

// shape shows the format of a form's subjects.
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
func unquoted(expression string) string {
	return strings.NewReplacer(`\Q`, "", `\E`, "", `\`, "").Replace(expression)
}

// written returns the text of an expression without anchors and wildcards at its ends.
func written(expression string) string {
	for _, around := range [][2]string{{".*(?:", ").*"}, {"(?i)", ""}, {"^", "$"}, {"(?i)", ""}, {".*", ".*"}} {
		expression = strings.TrimSuffix(strings.TrimPrefix(expression, around[0]), around[1])
	}
	return unquoted(expression)
}

// narrower returns an identity without strangers. Parts that anybody could have become
// placeholders.
func (j *judge) narrower(f form, issuer string, values []string, open map[string]bool) cosign.Identity {
	made := cosign.Identity{Issuer: issuer, InsecureIgnoreIssuer: j.identity.InsecureIgnoreIssuer}
	if made.InsecureIgnoreIssuer {
		made.Issuer = ""
	}
	tagged := false
	spelled := written(j.identity.SubjectRegExp)
	var exact, expression strings.Builder
	for i, p := range f.parts {
		value := values[i]
		switch {
		case open[p.name] && p.name != "":
			value = p.given
		case p.name == "ref" && strings.HasPrefix(value, "refs/tags/") && j.tags(values, i) != "":
			tagged = true
			exact.WriteString(value)
			expression.WriteString(j.tags(values, i))
			continue
		case p.name != "" && value == p.usual && !slices.Contains(j.words, value) && j.anyOf(values, i):
			value = p.given
		case strings.Contains(j.identity.SubjectRegExp, "(?i"): // an exact subject keeps its author's spelling
			if at := strings.Index(strings.ToLower(spelled), strings.ToLower(value)); at >= 0 {
				value = spelled[at : at+len(value)]
			}
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

// anyEnd matches what may be anything at the end of an alternative, after a
// separator, as in "release-.*".
var anyEnd = regexp.MustCompile(`([-_./])\.([*+])(\||\)|\$?$)`)

// numbered returns the identity with numbers where its branches end in anything, if no stranger has that identity.
func (j *judge) numbered() (cosign.Identity, bool) {
	made := j.identity
	made.SubjectRegExp = anyEnd.ReplaceAllString(made.SubjectRegExp, "$1[0-9.]$2$3")
	if made == j.identity {
		return made, false
	}
	judged := Judge(made, "", j.steps)
	return made, len(judged.Strangers) == 0 && judged.Nobody == "" && *j.steps > 0
}

// tags returns an expression for the version tags that the identity accepts, "" if it accepts a single tag.
func (j *judge) tags(values []string, at int) string {
	for _, prefix := range []string{"refs/tags/v", "refs/tags/"} {
		if j.replaced(values, at, prefix+"1.2.3") && j.replaced(values, at, prefix+"4.5.6") {
			return prefix + "[0-9].*"
		}
	}
	if j.anyOf(values, at) {
		return regexp.QuoteMeta(values[at]) + ".*"
	}
	return ""
}

// anyOf reports whether more can follow a part.
func (j *judge) anyOf(values []string, at int) bool { return j.replaced(values, at, values[at]+"1") }

func (j *judge) replaced(values []string, at int, value string) bool {
	tried := slices.Clone(values)
	tried[at] = value
	return j.accepts(j.at, strings.Join(tried, ""))
}

// closest returns the identity that its author probably meant, although it accepts no subject of a form: the parts
// in its text, and placeholders.
func (j *judge) closest(f form) cosign.Identity {
	given := cmp.Or(j.identity.Subject, written(j.identity.SubjectRegExp))
	if as := claimed.FindStringSubmatch(given); as != nil && strings.HasPrefix(f.name, "GitHub") { // the claim sub, not the subject
		given = "https://github.com/" + as[1] + "/.github/workflows/?@" + as[2]
	}
	if as := account.FindStringSubmatch(given); as != nil {
		given = "https://kubernetes.io/namespaces/" + as[1] + "/serviceaccounts/" + as[2]
	}
	if as := pipeline.FindStringSubmatch(given); as != nil && strings.HasPrefix(f.name, "GitLab") {
		given = as[1] + "//" + cmp.Or(as[2], "?") + as[3]
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
			end, ends := len(rest), i+1 == len(f.parts)
			if !ends {
				before, _, _ := strings.Cut(rest, "//")
				at := strings.Index(rest, unquoted(f.parts[i+1].values))
				if p.name == "group" { // groups contain groups
					at = strings.LastIndex(before, "/")
				}
				if at >= 0 {
					end, ends = at, true
				}
			}
			value, rest = rest[:end], rest[end:]
			if p.name == "ref" && versioned.MatchString(value) {
				value = "refs/tags/" + value
			}
			if !regexp.MustCompile("^(?:" + p.values + ")$").MatchString(value) {
				if strings.HasPrefix(value, "refs/tags/") {
					return cosign.Identity{Issuer: j.identity.Issuer, SubjectRegExp: regexp.QuoteMeta(made.String()) + "refs/tags/v[0-9].*"}
				}
				value, following = "", ends
			}
		}
		if value == "" {
			value = p.given
		}
		made.WriteString(value)
	}
	return cosign.Identity{Issuer: j.identity.Issuer, Subject: made.String()}
}

// Values that people write for a subject: the claim sub of GitHub's and of a cluster's tokens, and GitLab's
// configuration without its two slashes or its file.
var (
	claimed   = regexp.MustCompile(`^repo:([^/:]+/[^/:]+)(?::ref:(.*))?`)
	account   = regexp.MustCompile(`^system:serviceaccount:([^:]+):(.*)$`)
	versioned = regexp.MustCompile(`^v[0-9]+\.`)
	pipeline  = regexp.MustCompile(`^(https://[^/]+/[^@]*?[^/@])(?:/(\.gitlab-ci\.yml))?(@refs/.*)$`)
)

// lowerCase returns the identity with the domain of its address in lower case, if that makes it a valid subject
// of the form.
func (j *judge) lowerCase(f form) (cosign.Identity, bool) {
	made := j.identity
	name, domain, ok := strings.Cut(made.Subject, "@")
	made.Subject = name + "@" + strings.ToLower(domain)
	return made, ok && f.valid(made.Subject)
}

// wrote reports whether the author of an identity wrote a complete value, and not only the beginning of
// several.
func (j *judge) wrote(value string, alternative []cel.Comparison) bool {
	if strings.ContainsAny(value[max(0, len(value)-1):], "-_./") {
		return false
	}
	if spelled := written(j.identity.SubjectRegExp); strings.Contains(spelled, "@"+value) && strings.HasSuffix(spelled, value) {
		return true
	}
	return slices.ContainsFunc(alternative, func(c cel.Comparison) bool {
		literal := strings.TrimSuffix(strings.TrimPrefix(unquoted(c.Pattern), ".*"), ".*")
		return strings.HasSuffix(literal, "/"+value) || literal == value
	})
}
