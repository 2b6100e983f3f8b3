package resource

import (
	"cmp"
	"time"
)

// DefaultMaxException is how long after its creation an exception may end, and
// DefaultMaxDelegation the same for a delegation, unless flags say otherwise: three months to
// replace an image, and a year until somebody asks whether a team still needs exceptions.
const (
	DefaultMaxException  = 90 * 24 * time.Hour
	DefaultMaxDelegation = 365 * 24 * time.Hour
)

// ExceptionLimits are an admin's limits on exceptions, by flags.
type ExceptionLimits struct {
	// Max is how long after its creation an exception may end; zero means
	// [DefaultMaxException].
	Max time.Duration
	// Delegation is how long after its creation a delegation may end; zero means
	// [DefaultMaxDelegation].
	Delegation time.Duration
	// BreakGlass is how long break-glass of a namespace may last; zero disables it.
	BreakGlass time.Duration
}

// Longest returns how long after its creation an exception may end.
func (l ExceptionLimits) Longest() time.Duration { return cmp.Or(l.Max, DefaultMaxException) }

// LongestDelegation returns how long after its creation a delegation may end.
func (l ExceptionLimits) LongestDelegation() time.Duration {
	return cmp.Or(l.Delegation, DefaultMaxDelegation)
}
