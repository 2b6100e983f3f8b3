package live

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
)

// Limit is the server's limit on the duration of break-glass.
type Limit struct {
	// Known says that Most is the server's limit, which is 0 if the server ignores break-glass. If it
	// is unknown, Why says why.
	Known bool
	Most  time.Duration
	Why   string
}

// The states of [BreakGlass].
const (
	BreakGlassOpen    = "open"    // every image is allowed now
	BreakGlassPlanned = "planned" // it begins later
	BreakGlassUnknown = "unknown" // it is open if the server accepts it
	BreakGlassOff     = "off"     // the annotations cannot be used
)

// BreakGlass is the current or planned break-glass of a Namespace, from its annotations.
type BreakGlass struct {
	State  string `json:"state"`
	From   string `json:"from,omitempty"`
	Until  string `json:"until,omitempty"`
	Reason string `json:"reason,omitempty"`
	// OverrideMandatory says that mandatory policies do not apply either.
	OverrideMandatory bool `json:"overrideMandatory"`
	// Why is why it is off, or not known to be open.
	Why string `json:"why,omitempty"`
}

// breakGlassOf returns break-glass of a namespace, nil without any or if it has ended.
func breakGlassOf(n *corev1.Namespace, limit Limit, now time.Time) *BreakGlass {
	if !slices.ContainsFunc(resolve.BreakGlassAnnotations(), func(key string) bool { _, has := n.Annotations[key]; return has }) {
		return nil
	}
	if until, err := time.Parse(time.RFC3339, n.Annotations[v1beta1.AnnotationBreakGlassUntil]); err == nil && !now.Before(until) {
		return nil
	}
	most := limit.Most
	if !limit.Known {
		most = math.MaxInt64
	}
	made, err := resolve.BreakGlass(verify.Namespace(n.Name), n.Annotations, most)
	if err != nil {
		return &BreakGlass{State: BreakGlassOff, Why: shown(err.Error())}
	}
	b := &BreakGlass{State: BreakGlassOpen, From: made.From.UTC().Format(time.RFC3339), Until: made.Until.UTC().Format(time.RFC3339),
		Reason: shown(made.Why), OverrideMandatory: made.OverrideMandatory}
	switch {
	case now.Before(made.From):
		b.State = BreakGlassPlanned
	case !limit.Known:
		b.State, b.Why = BreakGlassUnknown, shown(limit.Why)
	}
	return b
}

// Opens reports whether break-glass is open, as far as the person may know.
func (b *BreakGlass) Opens() bool {
	return b != nil && (b.State == BreakGlassOpen || b.State == BreakGlassUnknown)
}

// String describes the effect of break-glass.
func (b BreakGlass) String() string {
	which := "every image that no mandatory policy denies"
	if b.OverrideMandatory {
		which = "every image"
	}
	switch b.State {
	case BreakGlassOpen:
		return "open: allows " + which + " until " + b.Until + " (" + b.Reason + ")"
	case BreakGlassPlanned:
		return "planned: allows " + which + " from " + b.From + " until " + b.Until + " (" + b.Reason + ")"
	case BreakGlassUnknown:
		return "possibly open: if serve runs with --break-glass, allows " + which + " until " + b.Until + " (" + b.Reason +
			"); whether it does is unknown: " + b.Why
	}
	return "off: " + b.Why
}
