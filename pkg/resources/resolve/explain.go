package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// The levels that resources come from, nearest first.
const (
	LevelNamespace = "namespace"
	LevelTenant    = "tenant" // the home namespace of the namespace's Tenant
	LevelCluster   = "cluster"
	LevelNone      = "none"
)

// Choice explains which resources of one kind apply from one level.
type Choice struct {
	Kind    string
	Level   string // one of the levels above
	Tenant  string // the Tenant of [LevelTenant], "" for other levels
	Applied []policy.ObjectRef
	Why     string
	// Denies is the unusable policy among Applied that makes the level deny every image; the zero
	// value if there is none.
	Denies policy.ObjectRef
}

// verifierChoices explains which Verifiers apply.
func (v *View) verifierChoices() []Choice {
	const kind = v1beta1.KindVerifier
	var choices []Choice
	told := map[int]bool{} // levels whose Verifiers are in choices
	for _, a := range v.applies {
		applied := compile.MapSlice(a.Verifiers, func(v compile.Verifier) policy.ObjectRef { return v.Source })
		if len(applied) == 0 || told[a.from] {
			continue
		}
		told[a.from] = true
		why := ""
		if a == v.Applicable {
			why = v.whyAt(a.from, kind)
		} else {
			why = "for " + a.left()
		}
		choices = append(choices, v.choice(a.from, kind, applied, why))
	}
	switch {
	case len(choices) == 0:
		return []Choice{v.none(kind)}
	case len(choices) > 1 && len(v.Verifiers) > 0: // "no other applies" would be wrong
		choices[0].Why = fmt.Sprintf("%s has its own %s", v.name(v.from), kind)
	}
	return choices
}

// storeChoices explains which Stores apply.
func (v *View) storeChoices() []Choice {
	var choices []Choice
	told := map[policy.ObjectRef]bool{}
	for _, a := range v.applies {
		for _, c := range v.storesOf(a) {
			if c.Applied = slices.DeleteFunc(c.Applied, func(source policy.ObjectRef) bool { return told[source] }); len(c.Applied) == 0 {
				continue
			}
			for _, source := range c.Applied {
				told[source] = true
			}
			choices = append(choices, c)
		}
	}
	if len(choices) == 0 {
		return []Choice{v.none(v1beta1.KindStore)}
	}
	return choices
}

// storesOf explains the Stores of a. Stores that only lend access apply to other images
// anyway.
func (v *View) storesOf(a *Applicable) []Choice {
	levels := a.byHost
	return compile.MapSlice(levels, func(l storesAt) Choice {
		why := "for " + compile.JoinNames(l.hosts)
		switch {
		case a != v.Applicable:
			why = "for " + a.left()
		case l.at == v.last() && len(levels) == 1:
			why = v.whyAt(l.at, v1beta1.KindStore)
		case slices.ContainsFunc(l.stores, compile.Store.TakesAll):
			why = "one of them cannot be used and its registries are unknown, so it denies every registry that is not listed before it"
		case l.at > levels[0].at:
			why += ", which no nearer level lists"
		}
		return v.choice(l.at, v1beta1.KindStore, compile.MapSlice(l.stores, func(s compile.Store) policy.ObjectRef { return s.Source }), why)
	})
}

// policyChoices explains which policies decide and which only add warnings.
func (v *View) policyChoices() []Choice {
	const kind = v1beta1.KindVerificationPolicy
	var choices, warnings []Choice
	told := map[int]bool{} // levels whose policies are in choices
	if !v.Denies() {
		none := v.none(kind)
		if len(v.Warning) > 0 {
			none.Why = fmt.Sprintf("no %s that denies in %s", kind, v.names(v.last()+1))
		}
		choices = append(choices, none)
	}
	for _, a := range v.applies {
		g := a.Deciding
		if !a.Denies() || told[g.At] {
			continue
		}
		told[g.At] = true
		var why string
		switch {
		case a != v.Applicable:
			why = "it judges " + a.left()
		case compile.Strictest(g.Policies).Inherits(): // "no other applies" would be wrong
			why = fmt.Sprintf("%s has its own %s", v.name(g.At), kind)
		default:
			why = v.whyAt(g.At, kind)
		}
		made := v.choice(g.At, kind, compile.MapSlice(g.Policies, compile.SourceOf), why)
		if broken, ok := BrokenAmong(g.Policies); ok {
			made.Denies = broken.Source
			made.Why += fmt.Sprintf("; Landwaiter cannot use %s, so this level denies every image", broken.Source)
		}
		choices = append(choices, made)
	}
	for a := range v.Path() {
		for _, g := range a.Warning {
			warnings = append(warnings,
				v.choice(g.At, kind, compile.MapSlice(g.Policies, compile.SourceOf), "their enforcementAction is Warn, so they only add warnings"))
		}
	}
	return append(choices, warnings...)
}

// BrokenAmong returns the first unusable policy of a level: it might deny any image, so the
// deciding policies together deny every image.
func BrokenAmong(policies []compile.Policy) (compile.Policy, bool) {
	for _, p := range policies {
		if p.Broken != nil && p.Decides() {
			return p, true
		}
	}
	return compile.Policy{}, false
}

// choice returns a Choice of level i.
func (v *View) choice(i int, kind string, applied []policy.ObjectRef, why string) Choice {
	c := Choice{Kind: kind, Level: v.labelOf(i), Applied: applied, Why: why}
	if c.Level == LevelTenant {
		c.Tenant = v.Tenant
	}
	return c
}

// none returns the Choice of a kind without applicable resources.
func (v *View) none(kind string) Choice {
	why := fmt.Sprintf("no %s in %s", kind, v.names(v.last()+1))
	if v.Broken != nil {
		why = "not compiled; see the reason"
	}
	return Choice{Kind: kind, Level: LevelNone, Applied: []policy.ObjectRef{}, Why: why}
}

// names names the first levels.
func (v *View) names(levels int) string {
	var names []string
	for i := range levels {
		names = append(names, v.name(i))
	}
	return strings.Join(names, ", ")
}

func (v *View) labelOf(i int) string {
	if i == v.last() {
		return LevelCluster
	}
	return v.nearer[i].Label
}

// name names level i in a sentence.
func (v *View) name(i int) string {
	switch v.labelOf(i) {
	case LevelTenant:
		return "Tenant " + v.Tenant
	case LevelCluster:
		return "the cluster"
	}
	return "the namespace"
}

// whyAt explains why the resources of a kind at level i apply.
func (v *View) whyAt(i int, kind string) string {
	switch {
	case i == v.last() && i == 0:
		return "Tenant " + v.Tenant + " leaves decisions to the cluster"
	case i == v.last():
		return "no " + kind + " in " + v.names(i)
	case i+1 < v.last():
		return "the namespace has its own " + kind + ", so none of Tenant " + v.Tenant + " and no Cluster" + kind + " applies"
	}
	return v.name(i) + " has its own " + kind + ", so no Cluster" + kind + " applies"
}

// left names the images that are left to a.
func (a *Applicable) left() string {
	return fmt.Sprintf("images that %s leaves to the next level: none of its rules matches, and its defaultAction is Inherit", a.heir)
}
