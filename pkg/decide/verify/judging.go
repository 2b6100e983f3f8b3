package verify

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Judging is one rule that denies an image or requires something of it.
type Judging struct {
	Policy policy.ObjectRef
	Rule   int // counted from 1 in the policy
	Warns  bool

	demands string
}

// SameDemands reports whether j and other have the same requirements. All expressions count as
// equal.
func (j Judging) SameDemands(other Judging) bool { return j.demands == other.demands }

// Judging returns the rules that deny ref or require something of it, at most one for each tier. A tier whose
// policy cannot be used has none: it denies everything.
func (c *Config) Judging(ref image.Reference) (judging []Judging) {
	for i := range c.Tiers {
		if j, ok := c.Tiers[i].judging(ref); ok {
			judging = append(judging, j)
		}
	}
	return judging
}

func (l *Tier) judging(ref image.Reference) (Judging, bool) {
	if !l.Judge.Usable() || l.Judge.kind != byRules {
		return Judging{}, false
	}
	for i, rule := range l.Judge.rules {
		if !matchesAny(rule.Images, ref) {
			continue
		}
		before := slices.DeleteFunc(sources(l.Judge.rules[:i]), func(s policy.ObjectRef) bool { return s != rule.Source })
		return Judging{Policy: rule.Source, Rule: len(before) + 1, Warns: l.Warns, demands: rule.demands()}, rule.Action != Allow
	}
	if l.Judge.rest == DefaultInherit && l.Next != nil {
		return l.Next.judging(ref)
	}
	return Judging{}, false
}

// demands returns the requirements of r, for comparisons.
func (r Rule) demands() string {
	text := fmt.Sprint(r.Action, r.IndexManifests)
	for _, q := range r.Require {
		text += fmt.Sprintf(" %q %q %q %t %d", q.AnyOf, q.AllOf, q.Types, q.Condition != nil, q.AtLeast)
	}
	return text
}
