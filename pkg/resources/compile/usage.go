package compile

import (
	"fmt"
	"maps"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// usage records which resources affect decisions in some namespaces.
type usage struct {
	applies map[policy.ObjectRef]bool // selected for a namespace
	used    map[policy.ObjectRef]bool // verifiers that a policy requires, trust stores that a verifier names
	denies  map[policy.ObjectRef]bool // policies that deny every image of a namespace
	// unmet says of policies that decide what no image can meet, "" where images can in
	// some namespace.
	unmet map[policy.ObjectRef]string
}

func newUsage() usage {
	return usage{applies: map[policy.ObjectRef]bool{}, used: map[policy.ObjectRef]bool{}, denies: map[policy.ObjectRef]bool{}, unmet: map[policy.ObjectRef]string{}}
}

// usage merges what the views know of themselves.
func (s *Snapshot) usage(views []*view) usage {
	u := newUsage()
	for _, v := range views {
		own := v.usage()
		maps.Copy(u.applies, own.applies)
		maps.Copy(u.used, own.used)
		maps.Copy(u.denies, own.denies)
		for source, why := range own.unmet {
			u.cannot(source, why)
		}
	}
	if len(s.cluster.mandatory) > 0 {
		for _, v := range s.cluster.verifiers {
			u.applies[v.Source] = true
		}
		for _, st := range s.cluster.stores {
			u.applies[st.Source] = true
		}
	}
	for _, v := range s.cluster.verifiers {
		u.trust(v)
	}
	return u
}

// cannot records what no image can meet somewhere, "" for a policy that images can meet.
func (u usage) cannot(source policy.ObjectRef, why string) {
	if earlier, ok := u.unmet[source]; !ok || earlier != "" {
		u.unmet[source] = why
	}
}

// usage computes the usage of one view, once: a change of one namespace must not cost
// the statuses of the cluster's resources a look at every other.
func (v *view) usage() usage {
	v.counted.Do(func() {
		u := newUsage()
		for _, choice := range v.choices {
			for _, source := range choice.Applied {
				u.applies[source] = true
			}
		}
		for i := range v.config.Layers {
			for _, verifier := range v.config.Layers[i].Required() {
				u.used[verifier.Source] = true
			}
		}
		// A trust store counts as used even if no policy requires the verifier that
		// names it: deleting it would break that verifier.
		for _, l := range v.chain[:v.last()] {
			for _, verifier := range l.verifiers {
				u.trust(verifier)
			}
		}
		if first := v.config.Layers[0]; !first.Judge.Usable() {
			u.denies[first.Source] = true
		}
		for _, a := range v.applies {
			for _, p := range a.deciding.policies {
				u.cannot(p.source, unsatisfiable(p, a.verifiers))
			}
		}
		v.usages = u
	})
	return v.usages
}

func (u usage) trust(v verifier) {
	for _, source := range v.uses {
		u.used[source] = true
	}
}

// decidesAnyway reports whether a broken policy that should only warn denies in some
// namespace because no other policy decides there.
func (u usage) decidesAnyway(p compiledPolicy) bool {
	return p.broken != nil && u.denies[p.source]
}

// unsatisfiable describes the first requirement of p that no image can meet, "" if
// there is none.
func unsatisfiable(p compiledPolicy, verifiers []verifier) string {
	for i, rule := range p.rules {
		for j, r := range rule.Require {
			possible, bounded := 0, true
			distinct := map[string]bool{}
			candidates, usable := 0, 0
			for _, v := range verifiers {
				if !r.Selects(v.Verifier) {
					continue
				}
				candidates++
				if v.Broken != nil {
					continue
				}
				usable++
				if v.signers == nil {
					bounded = false
				}
				for _, signer := range v.signers {
					distinct[signer] = true
				}
			}
			possible = len(distinct)
			field := fmt.Sprintf("spec.rules[%d].require[%d]", i, j)
			switch {
			case candidates == 0:
				return field + " can never be met: none of the Verifiers that it requires applies"
			case usable == 0:
				return field + " can never be met: none of the Verifiers that it requires can be used"
			case bounded && possible < r.AtLeast:
				return fmt.Sprintf("%s can never be met: it asks for %d different signers, and the Verifiers that it asks for trust %d", field, r.AtLeast, possible)
			}
		}
	}
	return ""
}
