package compile

import (
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// ruling is a policy's verdict on images without evidence. The zero value means that it may deny
// some.
type ruling uint8

const (
	mayDeny ruling = iota
	allowsAll
	deniesAll
)

// Unsatisfiable reports whether no evidence can satisfy a rule of a policy for an image, or for any image if it is the zero
// Reference.
type Unsatisfiable func(source policy.ObjectRef, rule verify.Rule, ref image.Reference) bool

// Holding returns the mandatory policies that may deny images of x, which does not override them, and whether x lifts
// any denial: false if they deny all of its images, regardless of evidence.
func (x *Exception) Holding(mandatory []Policy, unsatisfiable Unsatisfiable) (holding []policy.ObjectRef, lifts bool) {
	if x.images == nil || x.OverrideMandatory {
		return nil, true
	}
	steps, named := maxOverrideSteps, x.Named()
	denied := make([]bool, max(len(named), 1)) // of each image, or of all if there are wildcards
	for _, p := range mandatory {
		if p.Warns {
			continue
		}
		holds := false
		for i := range denied {
			var said ruling
			if i < len(named) {
				said = p.on(named[i], unsatisfiable, &steps)
			} else {
				said = p.overall(x, unsatisfiable, &steps)
			}
			holds, denied[i] = holds || said != allowsAll, denied[i] || said == deniesAll
		}
		if holds {
			holding = append(holding, p.Source)
		}
	}
	return holding, slices.Contains(denied, false)
}

// Named returns the images of x, nil if it has wildcards or delegates.
func (x *Exception) Named() []image.Reference {
	if len(x.wild) > 0 {
		return nil
	}
	return x.exact
}

// overall returns p's verdict on every image of x, as far as the patterns of its rules can match some of them.
func (p Policy) overall(x *Exception, unsatisfiable Unsatisfiable, steps *int) ruling {
	said := p.rest()
	for _, rule := range slices.Backward(p.Rules) {
		if x.without(rule.Images, steps) {
			continue
		}
		switch own := p.says(rule, image.Reference{}, unsatisfiable, steps); {
		case x.within(rule.Images, steps):
			said = own // no image of x reaches the following rules
		case own != said:
			said = mayDeny
		}
	}
	return said
}

// within reports whether one of a list of patterns matches every image of x. It decrements steps.
func (x *Exception) within(list []image.Pattern, steps *int) bool {
	return len(x.images.Pinned) == 0 && !slices.ContainsFunc(x.images.Patterns, func(own image.Pattern) bool {
		return !slices.ContainsFunc(list, func(pattern image.Pattern) bool { return pattern.Covers(own, steps) })
	})
}

// says returns the verdict of a rule of p on an image, or on any image if ref is the zero
// Reference.
func (p Policy) says(rule verify.Rule, ref image.Reference, unsatisfiable Unsatisfiable, steps *int) ruling {
	if rule.Action == verify.Allow {
		return allowsAll
	}
	if *steps -= 1 + len(rule.Require); rule.Action == verify.Deny || *steps >= 0 && unsatisfiable(p.Source, rule, ref) {
		return deniesAll
	}
	return mayDeny
}

// without reports whether no image of x matches a list of patterns. It decrements steps.
func (x *Exception) without(list []image.Pattern, steps *int) bool {
	for _, pattern := range list {
		*steps -= len(x.images.Patterns) + len(x.images.Pinned)*pattern.Cost()
		if *steps < 0 || slices.ContainsFunc(x.images.Pinned, pattern.Match) ||
			slices.ContainsFunc(x.images.Patterns, func(own image.Pattern) bool { return !own.Apart(pattern) }) {
			return false
		}
	}
	return true
}

// on returns p's verdict on one image. It decrements steps.
func (p Policy) on(ref image.Reference, unsatisfiable Unsatisfiable, steps *int) ruling {
	for _, rule := range p.Rules {
		if *steps -= CostOf(rule.Images); *steps < 0 {
			return mayDeny
		}
		if slices.ContainsFunc(rule.Images, func(pattern image.Pattern) bool { return pattern.Match(ref) }) {
			return p.says(rule, ref, unsatisfiable, steps)
		}
	}
	return p.rest()
}

// rest returns p's verdict on images that no rule matches.
func (p Policy) rest() ruling {
	if p.Broken == nil && p.Fallback == verify.DefaultAllow {
		return allowsAll
	}
	return deniesAll
}
