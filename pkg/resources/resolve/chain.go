package resolve

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// The levels that resources come from, nearest first.
const (
	LevelNamespace = "namespace"
	LevelTenant    = "tenant" // what is in the home of the namespace's Tenant
	LevelCluster   = "cluster"
	LevelNone      = "none"
)

// Choice says which resources of one kind apply from one level.
type Choice struct {
	Kind    string
	Level   string // one of the levels above
	Tenant  string // the Tenant of [LevelTenant], "" for other levels
	Applied []policy.ObjectRef
	Why     string
}

// Rung is a level under the name that it has for one namespace.
type Rung struct {
	*Level
	Label string
}

// chainOf returns the levels that count in a namespace, nearest first and the cluster
// last.
func chainOf(own *Level, b binding, cluster *Level) []Rung {
	last := Rung{cluster, LevelCluster}
	if b.Tenant == "" {
		return []Rung{{own, LevelNamespace}, last}
	}
	var chain []Rung
	if b.PolicyLevel == v1beta1.PolicyLevelNamespace && b.Home != own {
		chain = append(chain, Rung{own, LevelNamespace})
	}
	if b.PolicyLevel != v1beta1.PolicyLevelCluster && b.Home != nil {
		chain = append(chain, Rung{b.Home, LevelTenant})
	}
	return append(chain, last)
}

// Counts reports whether the namespace's own resources count in v.
func (v *View) Counts() bool {
	return slices.ContainsFunc(v.Chain, func(r Rung) bool { return r.Level == v.Own })
}

// last returns the index of the cluster's level.
func (v *View) last() int { return len(v.Chain) - 1 }

// choice returns a Choice of level i.
func (v *View) choice(i int, kind string, applied []policy.ObjectRef, why string) Choice {
	c := Choice{Kind: kind, Level: v.Chain[i].Label, Applied: applied, Why: why}
	if c.Level == LevelTenant {
		c.Tenant = v.Tenant
	}
	return c
}

// none returns the Choice of a kind of which nothing applies.
func (v *View) none(kind string) Choice {
	return Choice{Kind: kind, Level: LevelNone, Applied: []policy.ObjectRef{}, Why: v.whyNone(kind)}
}

// nearestVerifiers returns the Verifiers of the first level from one on that has any. The
// kind falls back as a whole, and only if nearer levels have none at all.
func nearestVerifiers(chain []Rung, first int) (int, []compile.Verifier) {
	for i := first; i < len(chain); i++ {
		if l := chain[i]; len(l.Verifiers) > 0 || l.hiddenVerifiers() != "" {
			return i, l.Verifiers
		}
	}
	return len(chain), nil
}

// whyNone explains why no resource of a kind applies.
func (v *View) whyNone(kind string) string {
	if v.Broken != nil {
		return "not compiled; see the reason"
	}
	return fmt.Sprintf("%s has a %s", v.neither(v.Chain), kind)
}

// neither names levels as those that lack something.
func (v *View) neither(levels []Rung) string {
	var names []string
	for _, l := range levels {
		names = append(names, v.name(l))
	}
	switch last := len(names) - 1; last {
	case -1:
		return "no level"
	case 0:
		return "not even " + names[0]
	case 1:
		return "neither " + names[0] + " nor " + names[1]
	default:
		return "neither " + names[0] + ", " + names[1] + " nor " + names[last]
	}
}

// name names a level in a sentence.
func (v *View) name(l Rung) string {
	switch l.Label {
	case LevelTenant:
		return "Tenant " + v.Tenant
	case LevelCluster:
		return "the cluster"
	}
	return "the namespace"
}

// whyAt explains why the resources of a kind at level i apply.
func (v *View) whyAt(i int, kind string) string {
	lacking := v.Chain[:i]
	switch {
	case i == v.last() && len(lacking) == 0:
		return fmt.Sprintf("Tenant %s leaves decisions to the cluster", v.Tenant)
	case i == v.last() && len(lacking) == 1:
		return fmt.Sprintf("%s has no %s of its own", v.name(lacking[0]), kind)
	case i == v.last():
		return fmt.Sprintf("%s has a %s of its own", v.neither(lacking), kind)
	case i > 0:
		return fmt.Sprintf("the namespace has no %s of its own, and Tenant %s has one, so no Cluster%s applies", kind, v.Tenant, kind)
	case i+2 < len(v.Chain):
		return fmt.Sprintf("the namespace has its own %s, so none of Tenant %s and no Cluster%s applies", kind, v.Tenant, kind)
	}
	return fmt.Sprintf("%s has its own %s, so no Cluster%s applies", v.name(v.Chain[i]), kind, kind)
}

// StoreLevel returns the nearest level with a Store that applies in a namespace, or
// [LevelNone].
func (s *Snapshot) StoreLevel(namespace verify.Namespace) string {
	for _, c := range s.view(namespace).choices {
		if c.Kind == v1beta1.KindStore {
			return c.Level
		}
	}
	return LevelNone
}
