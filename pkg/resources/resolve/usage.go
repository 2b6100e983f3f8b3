package resolve

import (
	"fmt"
	"maps"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
)

// Usage records which resources affect decisions in some namespaces.
type Usage struct {
	Applies map[policy.ObjectRef]bool // selected for a namespace
	Used    map[policy.ObjectRef]bool // verifiers that a policy requires, trust stores that a verifier names
	denies  map[policy.ObjectRef]bool // policies that deny every image of a namespace
	// Unmet has, for deciding policies, why no image can meet them, "" if images can in some
	// namespace.
	Unmet map[policy.ObjectRef]string
}

func newUsage() Usage {
	return Usage{Applies: map[policy.ObjectRef]bool{}, Used: map[policy.ObjectRef]bool{}, denies: map[policy.ObjectRef]bool{},
		Unmet: map[policy.ObjectRef]string{}}
}

// Usage returns the usage of all views together.
func (s *Snapshot) Usage(views []*View) Usage {
	u := newUsage()
	for _, v := range views {
		own := v.Usage()
		maps.Copy(u.Applies, own.Applies)
		maps.Copy(u.Used, own.Used)
		maps.Copy(u.denies, own.denies)
		for source, why := range own.Unmet {
			u.cannot(source, why)
		}
	}
	if len(s.cluster.Mandatory) > 0 {
		for _, v := range s.cluster.Verifiers {
			u.Applies[v.Source] = true
		}
		for _, st := range s.cluster.stores {
			u.Applies[st.Source] = true
		}
	}
	for _, v := range s.cluster.Verifiers {
		u.trust(v)
	}
	return u
}

// cannot records why no image can meet a policy somewhere, "" if images can.
func (u Usage) cannot(source policy.ObjectRef, why string) {
	if earlier, ok := u.Unmet[source]; !ok || earlier != "" {
		u.Unmet[source] = why
	}
}

// Usage computes the usage of one view, once: after a change of one namespace, the statuses
// of the cluster's resources must not require a new look at every other one.
func (v *View) Usage() Usage {
	v.counted.Do(func() {
		u := newUsage()
		for _, choice := range v.choices {
			for _, source := range choice.Applied {
				u.Applies[source] = true
			}
		}
		for i := range v.config.Tiers {
			for _, verifier := range v.config.Tiers[i].Required() {
				u.Used[verifier.Source] = true
			}
		}
		// A trust store counts as used even if no policy requires the verifier that
		// names it: deleting it would break that verifier.
		for _, l := range v.nearer {
			for _, verifier := range l.Verifiers {
				u.trust(verifier)
			}
		}
		if first := v.config.Tiers[0]; !first.Judge.Usable() {
			u.denies[first.Source] = true
		}
		for _, a := range v.applies {
			for _, p := range a.Deciding.Policies {
				u.cannot(p.Source, Unsatisfiable(p, a.Verifiers))
			}
		}
		v.usages = u
	})
	return v.usages
}

func (u Usage) trust(v compile.Verifier) {
	for _, source := range v.Uses {
		u.Used[source] = true
	}
}

// DecidesAnyway reports whether a broken policy that should only warn denies in some
// namespace because no other policy decides there.
func (u Usage) DecidesAnyway(p compile.Policy) bool {
	return p.Broken != nil && u.denies[p.Source]
}

// Unsatisfiable describes the first requirement of p that no image can meet, "" if
// there is none.
func Unsatisfiable(p compile.Policy, verifiers []compile.Verifier) string {
	for i, rule := range p.Rules {
		for j, r := range rule.Require {
			var candidates, usable []*verify.Verifier
			for _, v := range verifiers {
				if !r.Selects(v.Verifier) {
					continue
				}
				candidates = append(candidates, v.Verifier)
				if v.Broken == nil {
					usable = append(usable, v.Verifier)
				}
			}
			possible, bounded := verify.Trusted(usable)
			field := fmt.Sprintf("spec.rules[%d].require[%d]", i, j)
			switch {
			case len(candidates) == 0:
				return field + " can never be met: none of the Verifiers that it requires applies"
			case len(usable) == 0:
				return field + " can never be met: none of the Verifiers that it requires can be used"
			case bounded && possible < r.AtLeast:
				return fmt.Sprintf("%s can never be met: it asks for %d different signers, and the Verifiers that it asks for trust %d", field,
					r.AtLeast, possible)
			}
		}
	}
	return ""
}
