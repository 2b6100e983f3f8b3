package external

import (
	"context"
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/remote/egress"
)

// problem is an error in our own words. It may be shown to the owner of a resource,
// because it holds nothing that a server said, save numbers.
type problem string

// Error implements error.
func (p problem) Error() string { return string(p) }

func problemf(format string, values ...any) problem { return problem(fmt.Sprintf(format, values...)) }

// RefusedError says why the content of a TUF repository does not count: its keys did not
// sign it, it is incomplete, or it has expired.
type RefusedError struct{ why problem }

// Error implements error.
func (e *RefusedError) Error() string { return string(e.why) }

// Unwrap returns the reason, which may be shown.
func (e *RefusedError) Unwrap() error { return e.why }

// errUnusable stands for everything that is not said in our own words: the errors of
// libraries repeat what servers send.
const errUnusable = problem("its answer cannot be used")

// shown reduces an error to what the owner of a resource may read.
func shown(err error) error {
	var network *egress.Error
	var own problem
	var tokens ownWords
	switch {
	case errors.As(err, &tokens):
		return tokens
	case errors.As(err, &network):
		return network
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem("it took too long")
	}
	return errUnusable
}

// answered returns the error for an answer with the wrong status.
func answered(who string, status int) error {
	return problemf("%s answered with status %d", who, status)
}
