package compile

import (
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/cel"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// compiledPolicy is one VerificationPolicy; broken ones deny.
type compiledPolicy struct {
	source      policy.ObjectRef
	rules       []verify.Rule
	fallback    policy.Outcome // for images that no rule matches
	floor       bool
	warns       bool // what it does not allow is allowed with a warning
	broken      string
	fingerprint string
}

func compilePolicy(r entry[v1alpha1.ClusterVerificationPolicySpec]) (compiledPolicy, error) {
	p := compiledPolicy{source: r.source}
	floor, err := isFloor(r)
	p.floor = floor
	if err == nil {
		p.warns, err = warns(r.spec.Mode)
	}
	if err == nil {
		p.rules, err = rules(r.source, r.spec.Rules, p.warns)
	}
	if err == nil {
		p.fallback, err = fallback(r.spec.Default)
	}
	if err != nil {
		p.rules, p.fallback, p.warns = nil, policy.Denied, false
		p.broken = fmt.Sprintf("%s cannot be used: %v", r.source, err)
	}
	p.fingerprint = fingerprint(r.source, r.spec, nil, err)
	return p, err
}

// isFloor reports whether the policy binds every namespace. The error says that
// it cannot be told; then a cluster policy does, because a floor that became
// unreadable must not vanish.
func isFloor(r entry[v1alpha1.ClusterVerificationPolicySpec]) (bool, error) {
	inCluster := r.source.Kind == clusterPrefix+kindPolicy
	if r.broken != nil {
		return inCluster, r.broken
	}
	switch r.spec.Enforcement {
	case "", v1alpha1.EnforcementDefault:
		return false, nil
	case v1alpha1.EnforcementFloor:
		return true, nil
	}
	return inCluster, fmt.Errorf("spec.enforcement is %q, it must be Default or Floor", r.spec.Enforcement)
}

func warns(mode v1alpha1.PolicyMode) (bool, error) {
	switch mode {
	case "", v1alpha1.ModeEnforce:
		return false, nil
	case v1alpha1.ModeWarn:
		return true, nil
	}
	return false, fmt.Errorf("spec.mode is %q, it must be Enforce or Warn", mode)
}

func fallback(action v1alpha1.DefaultAction) (policy.Outcome, error) {
	switch action {
	case "", v1alpha1.DefaultDeny:
		return policy.Denied, nil
	case v1alpha1.DefaultAllow:
		return policy.Allowed, nil
	}
	return policy.Denied, fmt.Errorf("spec.default is %q, it must be Deny or Allow", action)
}

func rules(source policy.ObjectRef, specs []v1alpha1.PolicyRule, warns bool) ([]verify.Rule, error) {
	compiled := make([]verify.Rule, 0, len(specs))
	for i, spec := range specs {
		field := fmt.Sprintf("spec.rules[%d]", i)
		images, err := patterns(field+".images", spec.Images, false)
		if err != nil {
			return nil, err
		}
		if len(spec.Require) == 0 {
			return nil, fmt.Errorf("%s.require is empty: a rule that requires nothing proves nothing", field)
		}
		rule := verify.Rule{Source: source, Images: images, Warns: warns}
		switch spec.Index {
		case "", v1alpha1.IndexItself:
		case v1alpha1.IndexOrManifests:
			rule.IndexManifests = true
		default:
			return nil, fmt.Errorf("%s.index is %q, it must be Itself or ItselfOrEveryManifest", field, spec.Index)
		}
		for j, requirement := range spec.Require {
			demand, err := demandOf(requirement)
			if err != nil {
				return nil, fmt.Errorf("%s.require[%d]: %w", field, j, err)
			}
			rule.Require = append(rule.Require, demand)
		}
		compiled = append(compiled, rule)
	}
	return compiled, nil
}

func demandOf(r v1alpha1.Requirement) (verify.Requirement, error) {
	demand := verify.Requirement{AnyOf: r.AnyOf, AllOf: r.AllOf, AtLeast: 1}
	given := 0
	for _, n := range []int{len(r.AnyOf), len(r.AllOf), len(r.Types), len(r.Expression)} {
		if n > 0 {
			given++
		}
	}
	if given != 1 {
		return verify.Requirement{}, fmt.Errorf("exactly one of anyOf, allOf, types, expression must be given and not empty; there are %d", given)
	}
	for _, t := range r.Types {
		switch t {
		case v1alpha1.TypeCosign, v1alpha1.TypeNotation, v1alpha1.TypeAttestation:
		default:
			return verify.Requirement{}, fmt.Errorf("type %q must be one of Cosign, Notation, Attestation", t)
		}
		demand.Types = append(demand.Types, string(t))
	}
	if r.Expression != "" {
		var err error
		if demand.Condition, err = condition(r.Expression); err != nil {
			return verify.Requirement{}, fmt.Errorf("expression: %w", err)
		}
	}
	if r.AtLeast != nil {
		demand.AtLeast = int(*r.AtLeast)
	}
	if demand.AtLeast < 1 {
		return verify.Requirement{}, fmt.Errorf("atLeast is %d, it must be 1 or more", demand.AtLeast)
	}
	return demand, nil
}

// condition compiles an expression over what was proven. Its cost is limited, so
// that it needs no deadline.
func condition(text string) (policy.Condition, error) {
	compiled, err := cel.Compile(text, cel.Variables{"findings": cel.Any})
	if err != nil {
		return nil, err
	}
	return func(proven []policy.Finding) (bool, error) {
		findings := make([]any, len(proven))
		for i, f := range proven {
			findings[i] = f.Facts()
		}
		return compiled.Holds(map[string]any{"findings": findings})
	}, nil
}
