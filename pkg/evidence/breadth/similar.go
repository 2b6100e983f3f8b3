package breadth

import (
	"regexp"
	"strings"
)

// similar returns a subject that the identity accepts and that differs from the example in a part, whose value is like
// the given one.
func (j *judge) similar(f form, like example, at int, value string) (string, bool) {
	for _, name := range likeNames(f.parts[at], value) {
		if subject, ok := j.but(f, like, at, name); ok && j.accepts(j.at, subject) {
			return subject, true
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
