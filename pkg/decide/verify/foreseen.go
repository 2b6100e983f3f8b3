package verify

import (
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// MayAllow reports whether some evidence could get ref allowed, or any image at all if ref is
// the zero Reference. It is for files that are checked before a cluster has them, which lack
// Secrets: a verifier counts even if it is broken. It says nothing about what is allowed.
func (c *Config) MayAllow(ref image.Reference) bool {
	decides := false
	for _, l := range c.Layers {
		if !l.Warns && !l.mayAllow(ref) {
			return false
		}
		decides = decides || !l.Warns
	}
	return decides
}

// Foreseen returns what the rules of c alone say of ref, or only those of its mandatory policies. It returns
// false if that depends on evidence. Without mandatory policies nothing is denied by them.
func (c *Config) Foreseen(ref image.Reference, mandatory bool) (policy.Outcome, bool) {
	if mandatory && !slices.ContainsFunc(c.Layers, func(l Layer) bool { return l.Mandatory && !l.Warns }) {
		return policy.Allowed, true
	}
	verdict, ok := decided(part{Config: c, alone: mandatory}.plan(ref))
	return verdict.Outcome(), ok
}

// mayAllow plans ref as if all verifiers of l were sound, and any image with each rule.
func (l Layer) mayAllow(asked image.Reference) bool {
	ref, any := asked, asked == (image.Reference{})
	if any {
		ref = image.Reference{Host: "registry.example.com", Repository: "any"}
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
