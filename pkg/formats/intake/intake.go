// Package intake bounds what strangers send, and reads it once, before any library parses
// it. Evidence is not signed until it is verified, so whoever can push to a repository
// chooses its bytes. Scanning takes time in proportion to the bytes and memory in
// proportion to the allowed depth. The package is pure, and verifies no signature.
package intake

import (
	"errors"
	"fmt"
)

// Fault is the error of every function here. Its text repeats no evidence.
type Fault struct {
	limit bool
	text  string
}

// Error returns what is wrong, for use after "the …".
func (f *Fault) Error() string { return f.text }

// IsLimit reports whether err says that something was not read because it is past a limit.
// All other faults are malformed evidence.
func IsLimit(err error) bool {
	var fault *Fault
	return errors.As(err, &fault) && fault.limit
}

func malformed(format string, values ...any) error {
	return &Fault{text: fmt.Sprintf(format, values...)}
}

func pastLimit(format string, values ...any) error {
	return &Fault{limit: true, text: fmt.Sprintf(format, values...)}
}
