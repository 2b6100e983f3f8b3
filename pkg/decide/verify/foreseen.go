package verify

import (
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// MayAllow reports whether some evidence could get ref allowed, or any image if ref is the
// zero Reference. It is for files that are checked before they are in a cluster, which lack
// Secrets: a verifier counts even if it is broken. It does not say what is allowed.
func (c *Config) MayAllow(ref image.Reference) bool {
	decides := false
	for _, l := range c.Tiers {
		if !l.Warns && !l.mayAllow(ref) {
			return false
		}
		decides = decides || !l.Warns
	}
	return decides
}

// Foreseen returns the verdict of c's rules alone on ref. It returns false if that depends on
// evidence.
func (c *Config) Foreseen(ref image.Reference) (policy.Outcome, bool) {
	verdict, ok := decided(part{Config: c}.plan(ref))
	return verdict.Outcome(), ok
}

// Unsatisfiable reports whether no evidence can satisfy a rule of a mandatory policy for ref or, if ref is the zero
// Reference, for any image.
func (c *Config) Unsatisfiable(source policy.ObjectRef, rule Rule, ref image.Reference) bool {
	i := slices.IndexFunc(c.Tiers, func(l Tier) bool { return l.Mandatory && l.Source == source })
	if i < 0 {
		return false
	}
	l := c.Tiers[i]
	if ref == (image.Reference{}) {
		everything, err := image.ParsePattern("**")
		if err != nil {
			return false
		}
		ref, l.Verifiers = anyImage(), slices.Clone(l.Verifiers)
		for i, v := range l.Verifiers {
			all := *v
			all.Images = []image.Pattern{everything}
			l.Verifiers[i] = &all
		}
	}
	t := l.planRule(rule, ref)
	return t.known && t.verdict.Outcome() == policy.Denied
}

// anyImage represents an image of which only the rule is known.
func anyImage() image.Reference {
	return image.Reference{Host: "registry.example.com", Repository: "any"}
}

// mayAllow plans ref as if all verifiers of l were usable. For any image, it tries each rule.
func (l Tier) mayAllow(asked image.Reference) bool {
	ref, any := asked, asked == (image.Reference{})
	if any {
		ref = anyImage()
	}
	everything, err := image.ParsePattern("**")
	if err != nil {
		return false
	}
	sound := make([]*Verifier, len(l.Verifiers))
	for i, v := range l.Verifiers {
		sound[i] = &Verifier{Source: v.Source, Type: v.Type, Images: v.Images}
		if v.Broken == nil {
			sound[i].Signers = v.Signers
		}
		if any || len(v.Images) == 0 {
			sound[i].Images = []image.Pattern{everything}
		}
	}
	l.Verifiers = sound
	for _, rule := range l.Judge.rules {
		if any || matchesAny(rule.Images, ref) {
			if may := l.Judge.Usable() && l.planRule(rule, ref).mayAllow(); may || !any {
				return may
			}
		}
	}
	if l.Judge.Usable() && l.Judge.rest == DefaultInherit {
		return l.Next != nil && l.Next.mayAllow(asked)
	}
	l.Judge.rules = nil
	return l.plan(ref).mayAllow()
}

// mayAllow reports whether some evidence could get the image of t allowed.
func (t task) mayAllow() bool { return !t.known || t.verdict.Outcome() == policy.Allowed }
