package compile

import (
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// faultsOf returns what is wrong with one resource, in the order in which it was found: the
// errors that err itself joins, not one that it wraps. Conditions and denials say the first.
func faultsOf(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, faultsOf(e)...)
	}
	return all
}

// Refusal is why images are denied. Unlike other errors, refusals that say the same are equal:
// a namespace is only linked again if what it is bound to has changed.
type Refusal string

// Error returns the reason.
func (r Refusal) Error() string { return string(r) }

// RefusalOf returns err as a refusal. What is hidden stays so.
func RefusalOf(err error) error {
	if policy.IsHidden(err) {
		return policy.HiddenError(Cut(err.Error()))
	}
	return Refusal(Cut(err.Error()))
}

// ProblemsOf returns a problem for each fault of a resource or, unless all are wanted, for
// the first: a server keeps problems for every namespace, and a team chooses how many faults
// its resources have.
func ProblemsOf(source policy.ObjectRef, err error, all bool) []resource.Problem {
	if err == nil {
		return nil
	}
	faults := faultsOf(err)
	if !all {
		faults = faults[:1]
	}
	return MapSlice(faults, func(fault error) resource.Problem {
		return resource.Problem{Source: source, Reason: resource.ReasonOf(fault), Message: Cut(fault.Error())}
	})
}

// TextOf returns the text of an error, "" if there is none.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
