package compile

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// group holds the policies of one level that are tried together, by name.
type group struct {
	at       int // index of the level in the chain
	policies []compiledPolicy
	rules    []verify.Rule // of policies, shared by all views; nil if that is not known
	// next judges what these policies inherit; for policies that warn, which are no part
	// of the chain of deciding ones.
	next []group
}

// applicable holds the policies that apply in a chain of levels.
type applicable struct {
	// deciding begins with the nearest level with a policy that denies. While a group's
	// default is Inherit, that of the next such level follows.
	deciding []group
	warning  []group // of the levels up to the last one of deciding
	// cluster reports whether the cluster's policies matter.
	cluster bool
}

// applyPolicies selects the policies that apply. Policies that warn only add warnings: a
// level that has only such policies counts as having none.
func applyPolicies(chain []rung) applicable {
	var a applicable
	for i, l := range chain {
		own, warning := group{at: i, rules: l.rules}, group{at: i}
		for _, p := range l.policies {
			if p.decides() {
				own.policies = append(own.policies, p)
			}
			if !p.decides() || p.hidden {
				warning.policies = append(warning.policies, p) // a hidden one may warn, too
			}
		}
		a.cluster = a.cluster || i == len(chain)-1
		if len(warning.policies) > 0 {
			if slices.ContainsFunc(warning.policies, compiledPolicy.inherits) {
				warning.next = decidingFrom(chain, i+1)
				a.cluster = true
			}
			a.warning = append(a.warning, warning)
		}
		if len(own.policies) > 0 {
			a.deciding = append(a.deciding, own)
			if !strictest(own.policies).inherits() {
				break
			}
		}
	}
	return a
}

// decidingFrom returns the groups that decide among the levels from one on.
func decidingFrom(chain []rung, from int) []group {
	found := applyPolicies(chain[from:]).deciding
	for i := range found {
		found[i].at += from
	}
	return found
}

// all returns every policy of a, also those that only policies that warn inherit.
func (a applicable) all() []compiledPolicy {
	var all []compiledPolicy
	for _, g := range slices.Concat(a.deciding, a.warning) {
		all = append(all, g.policies...)
		for _, next := range g.next {
			all = append(all, next.policies...)
		}
	}
	return all
}

// refuse makes every policy of a deny, and says why.
func (a applicable) refuse(why string) applicable {
	refused := func(g group) group {
		g.policies = mapSlice(g.policies, func(p compiledPolicy) compiledPolicy { return p.refuse(why) })
		g.rules, g.next = nil, nil // a refused policy inherits nothing
		return g
	}
	a.deciding, a.warning = mapSlice(a.deciding, refused), mapSlice(a.warning, refused)
	return a
}

// strictest returns the policy whose default applies to images that no rule of several
// policies matches: Deny wins over Inherit, and Inherit over Allow.
func strictest(policies []compiledPolicy) compiledPolicy {
	return slices.MinFunc(policies, func(x, y compiledPolicy) int { return x.leniency() - y.leniency() })
}

// leniency orders default actions, the strictest first.
func (p compiledPolicy) leniency() int {
	switch p.fallback {
	case v1alpha1.DefaultActionAllow:
		return 2
	case v1alpha1.DefaultActionInherit:
		return 1
	case v1alpha1.DefaultActionDeny:
	}
	return 0
}

// inherits reports whether the next level judges images that no rule of p matches.
func (p compiledPolicy) inherits() bool { return p.fallback == v1alpha1.DefaultActionInherit }

// policyChoices explains which policies decide and which only add warnings.
func (v *view) policyChoices() []Choice {
	const kind = v1alpha1.KindVerificationPolicy
	var choices []Choice
	for i, g := range v.policies.deciding {
		why := v.whyAt(g.at, kind)
		switch {
		case i == 0 && len(v.policies.deciding) > 1:
			why = fmt.Sprintf("%s has its own %s", v.name(v.chain[g.at]), kind)
		case i > 0:
			why = fmt.Sprintf("it judges what no rule of %s matches, whose defaultAction is Inherit", strictest(v.policies.deciding[i-1].policies).source)
		}
		choices = append(choices, v.choice(g.at, kind, mapSlice(g.policies, sourceOf), why))
	}
	if len(choices) == 0 {
		none := v.none(kind)
		if len(v.policies.warning) > 0 {
			none.Why = fmt.Sprintf("%s has a %s that denies", v.neither(v.chain), kind)
		}
		choices = append(choices, none)
	}
	for _, g := range v.policies.warning {
		choices = append(choices, v.choice(g.at, kind, mapSlice(g.policies, sourceOf), "their enforcementAction is Warn, so they only add warnings"))
	}
	return choices
}

func sourceOf(p compiledPolicy) policy.ObjectRef { return p.source }
