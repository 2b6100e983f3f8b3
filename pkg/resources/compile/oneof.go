package compile

import "fmt"

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

func countSet(of []member) (n int) {
	for _, m := range of {
		if m.set {
			n++
		}
	}
	return n
}

func namesOf(of []member) []string {
	return mapSlice(of, func(m member) string { return m.name })
}
