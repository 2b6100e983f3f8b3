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
	for i := range c.Layers {
		if l := &c.Layers[i]; !l.Warns {
			decides = true
			if !l.mayAllow(ref) {
				return false
			}
		}
	}
	return decides
}

func (l *Layer) mayAllow(ref image.Reference) bool {
	switch {
	case l.Broken != "":
		return false
	case l.OnlyWarnings:
		return true
	case l.RequireMatching:
		return l.anyVerifier(ref, func(*Verifier) bool { return true })
	}
	for _, rule := range l.Rules {
		if ref == (image.Reference{}) {
			if l.mayMeet(rule, ref) {
				return true
			}
		} else if matchesAny(rule.Images, ref) {
			return l.mayMeet(rule, ref)
		}
	}
	if l.Inherits {
		return l.Next != nil && l.Next.mayAllow(ref)
	}
	return l.Default == policy.Allowed
}

// mayMeet reports whether a rule allows, or requires what some verifier could prove.
func (l *Layer) mayMeet(rule Rule, ref image.Reference) bool {
	switch rule.Action {
	case Allow:
		return true
	case Require:
		return len(rule.Require) > 0 && !slices.ContainsFunc(rule.Require, func(r Requirement) bool { return !l.mayProve(r, ref) })
	case Deny:
	}
	return false
}

func (l *Layer) mayProve(r Requirement, ref image.Reference) bool {
	named := func(name string) bool {
		return l.anyVerifier(ref, func(v *Verifier) bool { return v.Source.Name == name })
	}
	switch {
	case len(r.AllOf) > 0:
		return !slices.ContainsFunc(r.AllOf, func(name string) bool { return !named(name) })
	case len(r.AnyOf) > 0:
		return slices.ContainsFunc(r.AnyOf, named)
	case r.Condition != nil:
		return l.anyVerifier(ref, func(*Verifier) bool { return true })
	}
	return l.anyVerifier(ref, func(v *Verifier) bool { return v.Type == "" || slices.Contains(r.Types, v.Type) })
}

func (l *Layer) anyVerifier(ref image.Reference, wanted func(*Verifier) bool) bool {
	return slices.ContainsFunc(l.Verifiers, func(v *Verifier) bool {
		return wanted(v) && (ref == (image.Reference{}) || v.matches(ref))
	})
}
