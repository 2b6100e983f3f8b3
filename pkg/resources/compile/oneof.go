package compile

import (
	"fmt"
	"slices"
	"strings"
)

// member is a field of a one-of, and whether it is set. A field without content is not.
type member struct {
	name string
	set  bool
}

// exactlyOne returns an error unless one member is set. It says what the CRD says.
func exactlyOne(field string, of ...member) error {
	if countSet(of) != 1 {
		return fmt.Errorf("%s: exactly one of the fields in %v must be set", field, namesOf(of))
	}
	return nil
}

// atMostOne returns an error if several members are set.
func atMostOne(field string, of ...member) error {
	if countSet(of) > 1 {
		return fmt.Errorf("%s: at most one of the fields in %v may be set", field, namesOf(of))
	}
	return nil
}

// KnownWord returns an error unless a word of an enum is among those that are known. Nothing that
// is not known lets an image in.
func KnownWord[W ~string](field string, said W, words ...W) error {
	if slices.Contains(words, said) {
		return nil
	}
	texts := make([]string, 0, len(words))
	for _, word := range words {
		if word != "" { // which means the default
			texts = append(texts, string(word))
		}
	}
	last := len(texts) - 1
	return fmt.Errorf("%s is %.40q, it must be %s or %s", field, said, strings.Join(texts[:last], ", "), texts[last])
}

func countSet(of []member) (n int) {
	for _, m := range of {
		if m.set {
			n++
		}
	}
	return n
}

func namesOf(of []member) []string {
	return MapSlice(of, func(m member) string { return m.name })
}
