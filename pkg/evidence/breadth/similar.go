package breadth

import (
	"regexp"
	"slices"
	"strings"
)

// similar returns a subject that the identity accepts and that differs from the example in a part, whose value is like
// the given one or like one that the author wrote.
func (j *judge) similar(f form, given example, at int, value string) (string, bool) {
	for _, name := range likeNames(f.parts[at], value) {
		if subject, ok := j.but(f, given, at, name); ok && j.accepts(j.at, subject) {
			return subject, true
		}
	}
	if j.condition != nil || f.parts[at].name == "workflow" || strings.HasPrefix(value, "refs/") && !strings.HasPrefix(value, "refs/heads/") {
		return "", false
	}
	names := j.spelled(f, given, at)
	if len(names) == 0 {
		names = []string{value}
	}
	for _, name := range names {
		for _, like := range edited(name, f.parts[at].near < Anyone) {
			if !slices.Contains(j.words, like) {
				if subject, ok := j.spelling(f, given, at, like); ok {
					return subject, true
				}
			}
		}
	}
	return "", false
}

// likeNames returns expressions for names that others can have and that are like a value of a part, or like another
// value that the identity accepts. Tags are not among them: people create new tags, and their expressions are for
// these.
func likeNames(p part, value string) (list []string) {
	name := p.values
	if strings.HasPrefix(name, "refs/") {
		name = "refs/heads/" + branch
	}
	if !strings.HasPrefix(value, "refs/") || strings.HasPrefix(value, "refs/heads/") {
		for _, like := range similar(value) {
			list = append(list, regexp.QuoteMeta(like))
		}
	}
	if p.first != "" {
		return append(list, "(?:"+p.first+")-evil(?:/"+p.first+")*")
	}
	return append(list, "(?:"+name+")-evil")
}

// similar returns names that others can have and that share the beginning or end of a name, or differ from it by
// the character at a dot.
func similar(name string) []string {
	list := []string{name + "-evil", "evil-" + name, name + "evil", "evil" + name, strange + "/" + name}
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		list = append(list, name[:at]+"-evil"+name[at:], name+".evil.example", "evil."+name) // domains
	}
	for i, c := range name {
		if c == '.' {
			list = append(list, name[:i]+"x"+name[i+1:])
		}
	}
	return list
}

// word matches what may be a name in an expression.
var word = regexp.MustCompile(`[0-9A-Za-z_./-]+`)

// wordsOf returns the names that the author of an expression wrote, with more that are none.
func wordsOf(expression string) []string {
	var list []string
	for _, text := range word.FindAllString(strings.ReplaceAll(expression, `\.`, "."), maxWords) {
		text = strings.Trim(text, "-_./")
		list = append(list, text, "refs/heads/"+text)
		for _, name := range append(strings.Split(text, "/"), strings.TrimPrefix(text, "refs/heads/")) {
			list = append(list, name, "refs/heads/"+name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// maxWords bounds the words of an expression that are tried as names.
const maxWords = 24

// spelled returns the values of a part that the identity accepts and that its author wrote, the shortest first.
func (j *judge) spelled(f form, given example, at int) (list []string) {
	for _, name := range j.words {
		if _, ok := j.spelling(f, given, at, name); ok {
			list = append(list, name)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
	return list[:min(len(list), maxSpelled)]
}

// spelling returns the example's subject with a name in a part, if the identity accepts it.
func (j *judge) spelling(f form, given example, at int, name string) (string, bool) {
	if *j.steps -= 1 + len(j.identity.SubjectRegExp)/8; *j.steps <= 0 {
		return "", false
	}
	parts := f.partsOf(given)
	parts[at] = name
	subject := strings.Join(parts, "")
	return subject, j.accepts(j.at, subject) && slices.Equal(f.subject.FindStringSubmatch(subject), append([]string{subject}, parts...))
}

// maxSpelled bounds the names for which similar ones are tried, and maxEdited the end of a name that is varied.
const (
	maxSpelled = 3
	maxEdited  = 24
)

// edited returns names that differ from a name by one character: a glob in an expression, as in "acme*" and "acme?",
// accepts such names. If numbered, names with other numbers are expected, and missing.
func edited(name string, numbered bool) (list []string) {
	add := func(before string, c byte, after string) {
		if c >= '0' && c <= '9' && numbered {
			return
		}
		list = append(list, before+string(c)+after)
	}
	for i := max(0, len(name)-maxEdited, len("refs/heads/")*strings.Count(name, "refs/heads/")); i <= len(name); i++ {
		before, after := name[:i], name[i:]
		for _, c := range []byte("x0-") {
			add(before, c, after)
		}
		if after == "" {
			break
		}
		c := after[0]
		add(before+after[:1], c, after[1:])
		for _, other := range []byte{c - 1, c + 1, 'x', '0', '-'} { // neighbours, for classes such as [ab]
			if other != c {
				add(before, other, after[1:])
			}
		}
		if c < '0' || c > '9' || !numbered {
			list = append(list, before+after[1:])
		}
	}
	return list
}
