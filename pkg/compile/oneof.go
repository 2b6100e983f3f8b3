package compile

import (
	"fmt"
	"strings"
)

// member is a field of a one-of, and whether it is set. A field without content is not.
type member struct {
	name string
	set  bool
}

// exactlyOne returns an error unless one member is set.
func exactlyOne(field string, of ...member) error {
	if n := countSet(of); n != 1 {
		return fmt.Errorf("%s must have exactly one of %s; it has %d", field, namesOf(of), n)
	}
	return nil
}

// atMostOne returns an error if several members are set.
func atMostOne(field string, of ...member) error {
	if n := countSet(of); n > 1 {
		return fmt.Errorf("%s must have at most one of %s; it has %d", field, namesOf(of), n)
	}
	return nil
}

func countSet(of []member) (n int) {
	for _, m := range of {
		if m.set {
			n++
		}
	}
	return n
}

func namesOf(of []member) string {
	return strings.Join(mapSlice(of, func(m member) string { return m.name }), ", ")
}
