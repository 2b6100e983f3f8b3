package resolve

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// steps bounds the search for the rules and verifiers of one image, which the engine does
// while the request waits.
type steps struct {
	total   int
	largest policy.ObjectRef // the policy that takes the most steps, if any
	most    int
}

// checkSteps returns an error if policies and verifiers take more than [maxPlanSteps].
func checkSteps(policies []compile.Policy, verifiers []compile.Verifier) error {
	var s steps
	s.add(verifiers, policies)
	return s.err()
}

// add adds the steps of policies and of the verifiers that they may use.
func (s *steps) add(verifiers []compile.Verifier, lists ...[]compile.Policy) {
	all := 0
	for _, v := range verifiers {
		all += compile.CostOf(v.Images)
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

// policy adds the steps of a policy; all is the cost of the patterns of all verifiers.
func (s *steps) policy(p *compile.Policy, verifiers []compile.Verifier, all int) {
	patterns, demands := 0, 0
	for _, rule := range p.Rules {
		patterns += compile.CostOf(rule.Images)
		demands = max(demands, demandsOf(rule, verifiers, all)) // one rule decides
	}
	s.total += patterns + demands
	if s.largest == (policy.ObjectRef{}) || patterns+demands > s.most {
		s.largest, s.most = p.Source, patterns+demands
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
	return resource.Reasoned(policy.ReasonLimitExceeded,
		fmt.Errorf("finding the rules and Verifiers for one image may take %d steps, the limit is %d; most are by %s: "+
			"use fewer rules, fewer wildcards behind ** in images, or fewer Verifiers", s.total, maxPlanSteps, which))
}

// demandsOf bounds the steps for the requirements of a rule. all is the cost of the
// patterns of all verifiers.
func demandsOf(rule verify.Rule, verifiers []compile.Verifier, all int) (steps int) {
	for _, r := range rule.Require {
		switch {
		case len(r.Types) > 0 || r.Condition != nil:
			steps += 2*all + scan(len(verifiers), len(verifiers))
		default:
			names := slices.Concat(r.AnyOf, r.AllOf)
			steps += scan(len(names), len(verifiers))
			for _, v := range verifiers {
				if slices.Contains(names, v.Source.Name) {
					steps += compile.CostOf(v.Images)
				}
			}
		}
	}
	return steps
}

// scan bounds the steps to look up names in a list, which happens three times, half of the
// list each. Six names are compared in a step.
func scan(names, list int) int { return names * (1 + list/4) }

// limitSteps refuses the policies of the cluster if finding their rules takes too long, and
// also its Verifiers if those alone do.
func (l *Level) limitSteps() {
	alone := !slices.ContainsFunc(l.Policies, compile.Policy.Decides) // without a policy every one must pass
	if err := checkSteps(nil, l.Verifiers); err != nil && alone {
		l.Verifiers = compile.MapSlice(l.Verifiers, func(v compile.Verifier) compile.Verifier {
			l.problem(v.Source, err)
			why := compile.Unusable(v.Source, err)
			return compile.Verifier{Verifier: &verify.Verifier{Source: v.Source, Type: v.Type, Broken: why}, Uses: v.Uses,
				Fingerprint: compile.DigestOf([]string{v.Fingerprint, why.Error()})}
		})
	}
	for _, list := range []*[]compile.Policy{&l.Policies, &l.Mandatory} {
		if len(*list) == 0 {
			continue
		}
		if err := checkSteps(*list, l.Verifiers); err != nil {
			*list = compile.MapSlice(*list, func(p compile.Policy) compile.Policy {
				l.problem(p.Source, err)
				return p.Refuse(compile.Unusable(p.Source, err))
			})
		}
	}
}

// limitSteps makes the view deny if its resources take too many steps. It returns a problem
// for each own resource that contributes. Cluster resources alone are limited when they are
// compiled.
func (v *View) limitSteps() []resource.Problem {
	if v.Broken != nil || !slices.ContainsFunc(v.nearer, func(l NamedLevel) bool { return len(l.Policies)+len(l.Verifiers) > 0 }) {
		return nil
	}
	var all steps
	for _, a := range v.applies {
		lists := [][]compile.Policy{a.Deciding.Policies}
		for _, g := range a.Warning {
			lists = append(lists, g.Policies)
		}
		all.add(a.Verifiers, lists...)
	}
	err := all.err()
	if err == nil {
		return nil
	}
	v.slow = fmt.Errorf("%s has too many rules or patterns: %w", v.Own.Objects.Namespace.Describe(), err)
	for _, a := range v.applies {
		a.refuse(v.slow)
	}
	if !v.Counts() {
		return nil
	}
	blamed := compile.MapSlice(v.Own.Policies, compile.SourceOf)
	if len(blamed) == 0 {
		blamed = compile.MapSlice(v.Own.Verifiers, func(v compile.Verifier) policy.ObjectRef { return v.Source })
	}
	return compile.MapSlice(blamed, func(source policy.ObjectRef) resource.Problem {
		return resource.Problem{Source: source, Reason: resource.ReasonOf(err), Message: err.Error()}
	})
}
