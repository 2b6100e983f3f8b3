package compile

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
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

// rung is a level under the name that it has for one namespace.
type rung struct {
	*level
	label string
}

// chainOf returns the levels that count in a namespace, nearest first and the cluster
// last.
func chainOf(own *level, b binding, cluster *level) []rung {
	last := rung{cluster, LevelCluster}
	if b.tenant == "" {
		return []rung{{own, LevelNamespace}, last}
	}
	var chain []rung
	if b.policyLevel == v1beta1.PolicyLevelNamespace && b.home != own {
		chain = append(chain, rung{own, LevelNamespace})
	}
	if b.policyLevel != v1beta1.PolicyLevelCluster && b.home != nil {
		chain = append(chain, rung{b.home, LevelTenant})
	}
	return append(chain, last)
}

// counts reports whether the namespace's own resources count in v.
func (v *view) counts() bool {
	return slices.ContainsFunc(v.chain, func(r rung) bool { return r.level == v.own })
}

// last returns the index of the cluster's level.
func (v *view) last() int { return len(v.chain) - 1 }

// choice returns a Choice of level i.
func (v *view) choice(i int, kind string, applied []policy.ObjectRef, why string) Choice {
	c := Choice{Kind: kind, Level: v.chain[i].label, Applied: applied, Why: why}
	if c.Level == LevelTenant {
		c.Tenant = v.tenant
	}
	return c
}

// none returns the Choice of a kind of which nothing applies.
func (v *view) none(kind string) Choice {
	return Choice{Kind: kind, Level: LevelNone, Applied: []policy.ObjectRef{}, Why: v.whyNone(kind)}
}

// nearestVerifiers returns the Verifiers of the first level from one on that has any. The
// kind falls back as a whole, and only if nearer levels have none at all.
func nearestVerifiers(chain []rung, first int) (int, []verifier) {
	for i := first; i < len(chain); i++ {
		if l := chain[i]; len(l.verifiers) > 0 || l.hiddenVerifiers() != "" {
			return i, l.verifiers
		}
	}
	return len(chain), nil
}

// whyNone explains why no resource of a kind applies.
func (v *view) whyNone(kind string) string {
	if v.broken != nil {
		return "not compiled; see the reason"
	}
	return fmt.Sprintf("%s has a %s", v.neither(v.chain), kind)
}

// neither names levels as those that lack something.
func (v *view) neither(levels []rung) string {
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
func (v *view) name(l rung) string {
	switch l.label {
	case LevelTenant:
		return "Tenant " + v.tenant
	case LevelCluster:
		return "the cluster"
	}
	return "the namespace"
}

// whyAt explains why the resources of a kind at level i apply.
func (v *view) whyAt(i int, kind string) string {
	lacking := v.chain[:i]
	switch {
	case i == v.last() && len(lacking) == 0:
		return fmt.Sprintf("Tenant %s leaves decisions to the cluster", v.tenant)
	case i == v.last() && len(lacking) == 1:
		return fmt.Sprintf("%s has no %s of its own", v.name(lacking[0]), kind)
	case i == v.last():
		return fmt.Sprintf("%s has a %s of its own", v.neither(lacking), kind)
	case i > 0:
		return fmt.Sprintf("the namespace has no %s of its own, and Tenant %s has one, so no Cluster%s applies", kind, v.tenant, kind)
	case i+2 < len(v.chain):
		return fmt.Sprintf("the namespace has its own %s, so none of Tenant %s and no Cluster%s applies", kind, v.tenant, kind)
	}
	return fmt.Sprintf("%s has its own %s, so no Cluster%s applies", v.name(v.chain[i]), kind, kind)
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
