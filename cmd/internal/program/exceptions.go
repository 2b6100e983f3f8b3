package program

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Exceptions are the flags about exceptions.
type Exceptions struct {
	Longest, LongestDelegation time.Duration
	// BreakGlass is how long break-glass of a namespace may last; zero disables it.
	BreakGlass time.Duration

	declared bool
}

// Register declares the flags.
func (e *Exceptions) Register(f *pflag.FlagSet) {
	e.declared = true
	f.DurationVar(&e.Longest, "max-exception", resource.DefaultMaxException,
		"longest time from creation to expiry of an Exception or of a ClusterException with images")
	f.DurationVar(&e.LongestDelegation, "max-delegation", resource.DefaultMaxDelegation,
		"longest time from creation to expiry of a ClusterException that delegates")
	f.DurationVar(&e.BreakGlass, "break-glass", 0, "longest break-glass, in which annotations of a Namespace admit every image (0: never); "+
		"requires the guardrails")
}

// Limits returns the limits in the flags. A time of 0 or less is an error, except for
// break-glass, which may be 0.
func (e *Exceptions) Limits() (resource.ExceptionLimits, error) {
	limits := resource.ExceptionLimits{Max: e.Longest, Delegation: e.LongestDelegation, BreakGlass: e.BreakGlass}
	switch {
	case e.Longest <= 0:
		return limits, fmt.Errorf("--max-exception is %s, it must be more than 0", e.Longest)
	case e.LongestDelegation <= 0:
		return limits, fmt.Errorf("--max-delegation is %s, it must be more than 0", e.LongestDelegation)
	case e.BreakGlass < 0:
		return limits, fmt.Errorf("--break-glass is %s, it must be more than 0; leave it out to have none", e.BreakGlass)
	}
	return limits, nil
}
