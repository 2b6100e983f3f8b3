package resolve

import (
	"iter"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// NamedLevel is a level in the chain of one namespace, with the name that users see.
type NamedLevel struct {
	*Level
	Label string
}

// nearerOf returns the levels that count in a namespace before the cluster's, nearest first.
func nearerOf(own *Level, b binding) []NamedLevel {
	if b.Tenant == "" {
		return []NamedLevel{{own, LevelNamespace}}
	}
	var chain []NamedLevel
	if b.PolicyLevel == v1beta1.PolicyLevelNamespace && b.Home != own {
		chain = append(chain, NamedLevel{own, LevelNamespace})
	}
	if b.PolicyLevel != v1beta1.PolicyLevelCluster && b.Home != nil {
		chain = append(chain, NamedLevel{b.Home, LevelTenant})
	}
	return chain
}

// group holds the policies of one level that are tried together, by name.
type group struct {
	At       int // index of the level in the chain
	Policies []compile.Policy
	rules    []verify.Rule // of policies, shared by all views; nil if unknown
}

// Applicable holds what applies on a part of a chain's levels: on all of them or, for images
// that are left to the next level, on the further ones.
type Applicable struct {
	first     int              // the first of these levels
	heir      policy.ObjectRef // the policy that leaves images to these levels, if any
	from      int              // the level of the Verifiers that apply
	Verifiers []compile.Verifier
	byHost    []storesAt      // nearest first, without those that only lend access
	stores    []compile.Store // in the order of the lookup
	// Deciding are the policies of the nearest level with a policy that denies, empty if there
	// is none. Policies that warn only add warnings: a level that has only such policies counts
	// as having none.
	Deciding group
	Warning  []group // of the levels up to the level of Deciding
	client   verify.Registry
}

// apply returns what applies on the levels of chain from first on.
func apply(chain []NamedLevel, first int) Applicable {
	a := Applicable{first: first}
	a.from, a.Verifiers = nearestVerifiers(chain, first)
	a.byHost, a.stores = storesByHost(chain, first)
	for i := first; i < len(chain) && len(a.Deciding.Policies) == 0; i++ {
		a.Deciding = group{At: i, rules: chain[i].rules}
		warning := group{At: i}
		for _, p := range chain[i].Policies {
			if p.Decides() {
				a.Deciding.Policies = append(a.Deciding.Policies, p)
			} else {
				warning.Policies = append(warning.Policies, p)
			}
		}
		if len(warning.Policies) > 0 {
			a.Warning = append(a.Warning, warning)
		}
	}
	return a
}

// Denies reports whether a has a policy that denies.
func (a *Applicable) Denies() bool { return len(a.Deciding.Policies) > 0 }

// all yields every policy of a, deciding ones first.
func (a *Applicable) all() iter.Seq[compile.Policy] {
	return func(yield func(compile.Policy) bool) {
		for _, p := range a.Deciding.Policies {
			if !yield(p) {
				return
			}
		}
		for _, g := range a.Warning {
			for _, p := range g.Policies {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// refuse makes every policy of a deny with the reason why.
func (a *Applicable) refuse(why error) {
	refused := func(g group) group {
		g.Policies = compile.MapSlice(g.Policies, func(p compile.Policy) compile.Policy { return p.Refuse(why) })
		g.rules = nil
		return g
	}
	a.Deciding, a.Warning = refused(a.Deciding), compile.MapSlice(a.Warning, refused)
}

// applyAll returns what applies on the whole chain, and on each rest of it to which policies
// leave images. The cluster's policies leave none.
func applyAll(chain []NamedLevel) []*Applicable {
	all := make([]*Applicable, len(chain)+1)
	var from func(first int, heir policy.ObjectRef)
	from = func(first int, heir policy.ObjectRef) {
		if all[first] != nil {
			return
		}
		a := apply(chain, first)
		a.heir = heir
		all[first] = &a
		if p := compile.Strictest(a.Deciding.Policies); p.Inherits() {
			from(a.Deciding.At+1, p.Source)
		}
		for _, g := range a.Warning {
			if i := slices.IndexFunc(g.Policies, compile.Policy.Inherits); i >= 0 {
				from(g.At+1, g.Policies[i].Source)
			}
		}
	}
	from(0, policy.ObjectRef{})
	return slices.DeleteFunc(all, func(a *Applicable) bool { return a == nil })
}

// lenient returns the policy of a nearer level than g that would decide in its place if it
// were enforced, a zero value if there is none.
func (a *Applicable) lenient(g group) policy.ObjectRef {
	if len(a.Warning) == 0 || a.Warning[0].At >= g.At {
		return policy.ObjectRef{}
	}
	return a.Warning[0].Policies[0].Source
}

// Counts reports whether the namespace's own resources apply in v.
func (v *View) Counts() bool {
	return slices.ContainsFunc(v.nearer, func(l NamedLevel) bool { return l.Level == v.Own })
}

// last returns the index of the cluster's level.
func (v *View) last() int { return len(v.nearer) }

// nearestVerifiers returns the Verifiers of the first level from first on that has any. The
// kind falls back as a whole, and only if nearer levels have none at all.
func nearestVerifiers(chain []NamedLevel, first int) (int, []compile.Verifier) {
	for i := first; i < len(chain); i++ {
		if l := chain[i]; len(l.Verifiers) > 0 {
			return i, l.Verifiers
		}
	}
	return len(chain), nil
}
