package compile

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// faultsOf returns the errors of one resource, in the order in which they were found: the
// errors that err itself joins, not one that it wraps. Conditions and denials show the first.
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

// Refusal is why images are denied. Unlike other errors, refusals with the same text are
// equal: a namespace is only linked again if its binding has changed.
type Refusal struct {
	Text string
	// Remedy is the advice for an external cause, "" if the cause is in the resource.
	Remedy string
}

// Error returns the reason.
func (r Refusal) Error() string { return r.Text }

// Outside implements the interface of [policy.OutsideOf].
func (r Refusal) Outside() string { return r.Remedy }

// RefusalOf returns err as a refusal.
func RefusalOf(err error) error { return Refusal{Cut(err.Error()), policy.OutsideOf(err)} }

// ProblemsOf returns a problem for the first fault of a resource or, if all is set, for each:
// a server keeps problems for every namespace, and a team chooses how many faults its
// resources have.
func ProblemsOf(source policy.ObjectRef, err error, all bool) []resource.Problem {
	if err == nil {
		return nil
	}
	faults := faultsOf(err)
	if !all {
		faults = faults[:1]
	}
	return MapSlice(faults, func(fault error) resource.Problem {
		message := fault.Error()
		if remedy := policy.OutsideOf(fault); remedy != "" {
			message += "; " + remedy
		}
		return resource.Problem{Source: source, Reason: resource.ReasonOf(fault), Message: Cut(message)}
	})
}

// TextOf returns the text of an error, "" if there is none.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// fieldError wraps err with the name of the field; nil stays nil.
func fieldError(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// Unusable returns the error that everyone sees to whom an unusable resource applies. Only
// the status of a cluster resource says why it is broken: that may name objects of other
// namespaces.
func Unusable(source policy.ObjectRef, err error) error {
	err = faultsOf(err)[0]
	if source.Namespace == "" {
		said := Refusal{Text: source.String() + " cannot be used; its condition Ready says why"}
		if policy.OutsideOf(err) != "" {
			said.Remedy = policy.Outside("ask a cluster admin to read that condition")
		}
		return said
	}
	return RefusalOf(fmt.Errorf("%s cannot be used: %w", source, err))
}

// unknown returns the error of a resource that a person cannot read completely: its images are undecided.
func unknown(source policy.ObjectRef, err error) error {
	return verify.Inconclusive(policy.ReasonUnreadable, fmt.Sprintf("%s: %s", source, Cut(err.Error())))
}

// Cut shortens a message to [maxMessage]: a tenant chooses parts of it, and the API server
// refuses a condition that is too long.
func Cut(message string) string { return policy.Cut(message, maxMessage) }

// JoinNames joins the first names of a list: at most [maxNames], and as many as fit in half a
// message.
func JoinNames(list []string) string {
	shown, size := 0, 0
	for shown < min(len(list), maxNames) && size+len(list[shown]) <= maxMessage/2 {
		size += len(list[shown])
		shown++
	}
	if shown == len(list) {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// notKnown returns an error for a field with an unknown value. Schemas refuse such values, so this only
// happens to new fields: an unknown value never lets an image in.
func notKnown(field string) error { return fmt.Errorf("%s has nothing that is known here", field) }
