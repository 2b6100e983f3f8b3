package program

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// Exceptions are the flags about exceptions.
type Exceptions struct {
	Longest, LongestDelegation, LongestBreakGlass time.Duration
	BreakGlass                                    bool

	declared bool
}

// Register declares the flags.
func (e *Exceptions) Register(f *pflag.FlagSet) {
	e.declared = true
	f.DurationVar(&e.Longest, "max-exception", service.DefaultMaxException, "how long after its creation an Exception or ClusterException with images may end; longer ones allow nothing")
	f.DurationVar(&e.LongestDelegation, "max-delegation", service.DefaultMaxDelegation, "how long after its creation a ClusterException that delegates may end; longer ones delegate nothing")
	f.BoolVar(&e.BreakGlass, "break-glass", false, "let annotations of a Namespace allow every image there for a time; only with the guardrails, which keep teams from setting them")
	f.DurationVar(&e.LongestBreakGlass, "max-break-glass", service.DefaultMaxBreakGlass, "how long break-glass of a namespace may last; longer ones allow nothing")
}

// Limits returns what the flags allow. A time that is not more than 0 is an error.
func (e *Exceptions) Limits() (service.ExceptionLimits, error) {
	limits := service.ExceptionLimits{Max: e.Longest, Delegation: e.LongestDelegation}
	switch {
	case e.Longest <= 0:
		return limits, fmt.Errorf("--max-exception is %s, it must be more than 0", e.Longest)
	case e.LongestDelegation <= 0:
		return limits, fmt.Errorf("--max-delegation is %s, it must be more than 0", e.LongestDelegation)
	case e.LongestBreakGlass <= 0:
		return limits, fmt.Errorf("--max-break-glass is %s, it must be more than 0; leave --break-glass out to have none", e.LongestBreakGlass)
	case e.BreakGlass:
		limits.BreakGlass = e.LongestBreakGlass
	}
	return limits, nil
}
