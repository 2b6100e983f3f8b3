package compile

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// steps bounds what finding the rules and verifiers for one image takes. The engine does
// that while the request waits.
type steps struct {
	total   int
	largest policy.ObjectRef // the policy that takes most, if there is one
	most    int
}

// checkSteps returns an error if policies and verifiers take more than [maxPlanSteps].
func checkSteps(policies []compiledPolicy, verifiers []verifier) error {
	var s steps
	s.add(verifiers, policies)
	return s.err()
}

// add adds what policies and the verifiers that they may ask for take.
func (s *steps) add(verifiers []verifier, lists ...[]compiledPolicy) {
	all := 0
	for _, v := range verifiers {
		all += costOf(v.Images)
	}
	none := true
	for _, policies := range lists {
		none = none && len(policies) == 0
		for i := range policies {
			s.policy(&policies[i], verifiers, all)
		}
	}
	if none {
		s.total += 2*all + scan(len(verifiers), len(verifiers))
	}
}

// policy adds what a policy takes; all is the cost of the patterns of all verifiers.
func (s *steps) policy(p *compiledPolicy, verifiers []verifier, all int) {
	patterns, demands := 0, 0
	for _, rule := range p.rules {
		patterns += costOf(rule.Images)
		demands = max(demands, demandsOf(rule, verifiers, all)) // one rule decides
	}
	s.total += patterns + demands
	if s.largest == (policy.ObjectRef{}) || patterns+demands > s.most {
		s.largest, s.most = p.source, patterns+demands
	}
}

// err returns an error if s is more than [maxPlanSteps].
func (s *steps) err() error {
	if s.total <= maxPlanSteps {
		return nil
	}
	which := "its Verifiers"
	if s.largest != (policy.ObjectRef{}) {
		which = s.largest.String()
	}
	return resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("finding the rules and Verifiers for one image may take %d steps, the limit is %d; most are by %s: "+
		"use fewer rules, fewer wildcards behind ** in images, or fewer Verifiers", s.total, maxPlanSteps, which))
}

// demandsOf bounds the steps for the requirements of a rule. all is the cost of the
// patterns of all verifiers.
func demandsOf(rule verify.Rule, verifiers []verifier, all int) (steps int) {
	for _, r := range rule.Require {
		switch {
		case len(r.Types) > 0 || r.Condition != nil:
			steps += 2*all + scan(len(verifiers), len(verifiers))
		default:
			names := slices.Concat(r.AnyOf, r.AllOf)
			steps += scan(len(names), len(verifiers))
			for _, v := range verifiers {
				if slices.Contains(names, v.Source.Name) {
					steps += costOf(v.Images)
				}
			}
		}
	}
	return steps
}

// scan bounds the steps to look up names in a list, which is done three times, half of the
// list each. Six names are compared in a step.
func scan(names, list int) int { return names * (1 + list/4) }

// limitSteps refuses the policies of the cluster if finding their rules takes too long,
// and its Verifiers if they alone do.
func (l *level) limitSteps() {
	alone := !slices.ContainsFunc(l.policies, compiledPolicy.decides) // without a policy every one must pass
	if err := checkSteps(nil, l.verifiers); err != nil && alone {
		l.verifiers = mapSlice(l.verifiers, func(v verifier) verifier {
			l.problem(v.Source, err)
			why := unusable(v.Source, err)
			return verifier{Verifier: &verify.Verifier{Source: v.Source, Type: v.Type, Broken: why}, uses: v.uses, fingerprint: digestOf([]string{v.fingerprint, why.Error()})}
		})
	}
	for _, list := range []*[]compiledPolicy{&l.policies, &l.mandatory} {
		if len(*list) == 0 {
			continue
		}
		if err := checkSteps(*list, l.verifiers); err != nil {
			*list = mapSlice(*list, func(p compiledPolicy) compiledPolicy {
				l.problem(p.source, err)
				return p.refuse(unusable(p.source, err))
			})
		}
	}
}

// limitSteps makes the view deny if the resources that apply take too many steps. It
// returns a problem for each of its own that has a part. The cluster's alone are limited
// where they are compiled.
func (v *view) limitSteps() []resource.Problem {
	if v.broken != nil || !slices.ContainsFunc(v.chain[:v.last()], func(l rung) bool { return len(l.policies)+len(l.verifiers) > 0 }) {
		return nil
	}
	var all steps
	for _, a := range v.applies {
		lists := [][]compiledPolicy{a.deciding.policies}
		for _, g := range a.warning {
			lists = append(lists, g.policies)
		}
		all.add(a.verifiers, lists...)
	}
	err := all.err()
	if err == nil {
		return nil
	}
	v.slow = fmt.Errorf("%s has too many rules or patterns: %w", v.own.objects.namespace.Describe(), err)
	for _, a := range v.applies {
		a.refuse(v.slow)
	}
	if !v.counts() {
		return nil
	}
	blamed := mapSlice(v.own.policies, sourceOf)
	if len(blamed) == 0 {
		blamed = mapSlice(v.own.verifiers, func(v verifier) policy.ObjectRef { return v.Source })
	}
	return mapSlice(blamed, func(source policy.ObjectRef) resource.Problem {
		return resource.Problem{Source: source, Reason: resource.ReasonOf(err), Message: err.Error()}
	})
}
