package compile

import (
	"fmt"
	"iter"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// group holds the policies of one level that are tried together, by name.
type group struct {
	at       int // index of the level in the chain
	policies []compiledPolicy
	rules    []verify.Rule // of policies, shared by all views; nil if that is not known
}

// applicable holds what applies if only some of a chain's levels are there: all of them or,
// for images that are left to the next level, the further ones.
type applicable struct {
	first     int              // the first of these levels
	heir      policy.ObjectRef // the policy that leaves images to these levels, if one does
	from      int              // the level of the Verifiers that apply
	verifiers []verifier
	byHost    []storesAt // nearest first, without those that only lend
	stores    []store    // in the order in which registries look for them
	// deciding are those of the nearest level with a policy that denies, empty if there is
	// none. Policies that warn only add warnings: a level that has only such policies counts
	// as having none.
	deciding group
	warning  []group // of the levels up to that of deciding
	client   verify.Registry
}

// apply returns what applies of the levels of chain from one on.
func apply(chain []rung, first int) applicable {
	a := applicable{first: first}
	a.from, a.verifiers = nearestVerifiers(chain, first)
	a.byHost, a.stores = storesByHost(chain, first)
	for i := first; i < len(chain) && len(a.deciding.policies) == 0; i++ {
		a.deciding = group{at: i, rules: chain[i].rules}
		warning := group{at: i}
		for _, p := range chain[i].policies {
			if p.decides() {
				a.deciding.policies = append(a.deciding.policies, p)
			}
			if !p.decides() || policy.IsHidden(p.broken) {
				warning.policies = append(warning.policies, p) // a hidden one may warn, too
			}
		}
		if len(warning.policies) > 0 {
			a.warning = append(a.warning, warning)
		}
	}
	return a
}

// denies reports whether a has a policy that denies.
func (a *applicable) denies() bool { return len(a.deciding.policies) > 0 }

// all yields every policy of a, those that decide first.
func (a *applicable) all() iter.Seq[compiledPolicy] {
	return func(yield func(compiledPolicy) bool) {
		for _, p := range a.deciding.policies {
			if !yield(p) {
				return
			}
		}
		for _, g := range a.warning {
			for _, p := range g.policies {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// refuse makes every policy of a deny, and says why.
func (a *applicable) refuse(why error) {
	refused := func(g group) group {
		g.policies = mapSlice(g.policies, func(p compiledPolicy) compiledPolicy { return p.refuse(why) })
		g.rules = nil
		return g
	}
	a.deciding, a.warning = refused(a.deciding), mapSlice(a.warning, refused)
}

// applyAll returns what applies in a chain of all levels and of those to which policies leave
// images, by the level from which on they count. The cluster's policies leave none to others.
func applyAll(chain []rung) []*applicable {
	all := make([]*applicable, len(chain)+1)
	var from func(first int, heir policy.ObjectRef)
	from = func(first int, heir policy.ObjectRef) {
		if all[first] != nil {
			return
		}
		a := apply(chain, first)
		a.heir = heir
		all[first] = &a
		if p := strictest(a.deciding.policies); p.inherits() {
			from(a.deciding.at+1, p.source)
		}
		for _, g := range a.warning {
			if i := slices.IndexFunc(g.policies, compiledPolicy.inherits); i >= 0 {
				from(g.at+1, g.policies[i].source)
			}
		}
	}
	from(0, policy.ObjectRef{})
	return slices.DeleteFunc(all, func(a *applicable) bool { return a == nil })
}

// policyChoices explains which policies decide and which only add warnings.
func (v *view) policyChoices() []Choice {
	const kind = v1beta1.KindVerificationPolicy
	var choices, warnings []Choice
	told := map[int]bool{} // levels whose policies are in choices
	if !v.denies() {
		none := v.none(kind)
		if len(v.warning) > 0 {
			none.Why = fmt.Sprintf("%s has a %s that denies", v.neither(v.chain), kind)
		}
		choices = append(choices, none)
	}
	for _, a := range v.applies {
		g := a.deciding
		if !a.denies() || told[g.at] {
			continue
		}
		told[g.at] = true
		var why string
		switch {
		case a != v.applicable:
			why = "it judges " + a.left()
		case strictest(g.policies).inherits(): // that no other applies would not be true
			why = fmt.Sprintf("%s has its own %s", v.name(v.chain[g.at]), kind)
		default:
			why = v.whyAt(g.at, kind)
		}
		choices = append(choices, v.choice(g.at, kind, mapSlice(g.policies, sourceOf), why))
	}
	for a := range v.path() {
		for _, g := range a.warning {
			warnings = append(warnings, v.choice(g.at, kind, mapSlice(g.policies, sourceOf), "their enforcementAction is Warn, so they only add warnings"))
		}
	}
	return append(choices, warnings...)
}

// lenient returns the policy of a nearer level than g that would decide in its place if it
// did not only warn, a zero value if there is none.
func (a *applicable) lenient(g group) policy.ObjectRef {
	if len(a.warning) == 0 || a.warning[0].at >= g.at {
		return policy.ObjectRef{}
	}
	return a.warning[0].policies[0].source
}

// left names the images that are left to a.
func (a *applicable) left() string {
	return fmt.Sprintf("what no rule of %s matches, whose defaultAction is Inherit", a.heir)
}
