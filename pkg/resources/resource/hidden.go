package resource

import (
	"errors"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Hidden names something that whoever read the objects may not read: one object, or
// without a name all of a kind in a namespace or of the cluster. It is neither missing nor
// broken: what it says is unknown.
type Hidden struct {
	Source policy.ObjectRef
	// Why says which permission is missing, in one clause.
	Why string
	// Known is what is known of a kind all the same.
	Known Known
}

// HiddenName stands for the name of what is hidden, where a resource is named.
const HiddenName = "(unreadable)"

// hiddenError is the error of something that is [Hidden].
type hiddenError string

// Error returns which permission is missing.
func (e hiddenError) Error() string { return string(e) }

// HiddenError returns an error that says why something is hidden.
func HiddenError(why string) error {
	return Reasoned(policy.ReasonUnreadable, hiddenError(why))
}

// IsHidden reports whether err only says that something is hidden. Whatever it makes
// impossible is then unknown, and neither denied nor allowed.
func IsHidden(err error) bool {
	var hidden hiddenError
	return errors.As(err, &hidden)
}
