package compile

import (
	"errors"
	"fmt"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// compiledPolicy is a compiled VerificationPolicy. A broken one denies.
type compiledPolicy struct {
	source      policy.ObjectRef
	rules       []verify.Rule
	fallback    v1beta1.DefaultAction // for images that no rule matches; empty is Deny
	tags        v1beta1.TagAction     // empty if the policy does not say
	mandatory   bool
	warns       bool // only adds warnings
	broken      error
	fingerprint string
}

// decides reports whether p can deny, and not only warn.
func (p compiledPolicy) decides() bool { return !p.warns }

func compilePolicy(e entry[v1beta1.VerificationPolicySpec]) (compiledPolicy, error) {
	p := compiledPolicy{source: e.source}
	err := p.read(e)
	if err != nil {
		p.rules, p.fallback = nil, v1beta1.DefaultActionDeny
		p.broken = refusal{text: unusable(e.source, err)}
	}
	p.fingerprint = fingerprint(e.source, e.spec, nil, err)
	return p, err
}

// read fills p from its spec. It reads scope, enforcement and tags first, so that a policy
// that is broken otherwise keeps them.
func (p *compiledPolicy) read(e entry[v1beta1.VerificationPolicySpec]) (err error) {
	if p.mandatory, err = isMandatory(e); err != nil {
		return err
	}
	if p.warns, err = warns(e.spec.EnforcementAction); err != nil {
		return err
	}
	if p.tags, err = tags(e.spec.Tags); err != nil {
		return err
	}
	if e.refused != nil {
		return e.refused
	}
	var none error
	p.rules, err = rules(e.source, e.spec.Rules)
	p.fallback, none = fallback(e.source, e.spec.DefaultAction)
	return errors.Join(err, none)
}

// isMandatory reports whether the policy applies to every namespace. If the scope is
// unknown, it returns an error, and true for a cluster policy: an unreadable mandatory policy
// must not vanish.
func isMandatory(e entry[v1beta1.VerificationPolicySpec]) (bool, error) {
	inCluster := e.source.Kind == v1beta1.KindClusterVerificationPolicy
	if e.broken != nil {
		return inCluster, e.broken
	}
	if !inCluster && e.spec.Scope != "" {
		return false, errors.New("only a ClusterVerificationPolicy has spec.scope; remove it")
	}
	switch e.spec.Scope {
	case "", v1beta1.PolicyScopeFallback:
		return false, nil
	case v1beta1.PolicyScopeMandatory:
		return true, nil
	}
	return inCluster, fmt.Errorf("spec.scope is %q, it must be Fallback or Mandatory", e.spec.Scope)
}

func warns(action v1beta1.EnforcementAction) (bool, error) {
	switch action {
	case "", v1beta1.EnforcementActionDeny:
		return false, nil
	case v1beta1.EnforcementActionWarn:
		return true, nil
	}
	return false, fmt.Errorf("spec.enforcementAction is %q, it must be Deny or Warn", action)
}

func fallback(source policy.ObjectRef, action v1beta1.DefaultAction) (v1beta1.DefaultAction, error) {
	switch action {
	case "", v1beta1.DefaultActionDeny:
		return v1beta1.DefaultActionDeny, nil
	case v1beta1.DefaultActionAllow:
		return action, nil
	case v1beta1.DefaultActionInherit:
		if source.Namespace == "" {
			return "", errors.New("spec.defaultAction is Inherit, but no level comes after the cluster's; it must be Deny or Allow")
		}
		return action, nil
	}
	return "", fmt.Errorf("spec.defaultAction is %q, it must be Deny, Allow or Inherit", action)
}

func rules(source policy.ObjectRef, specs []v1beta1.PolicyRule) ([]verify.Rule, error) {
	compiled := make([]verify.Rule, 0, len(specs))
	var wrong []error
	for i, spec := range specs {
		rule, err := compileRule(source, fmt.Sprintf("spec.rules[%d]", i), spec)
		compiled, wrong = append(compiled, rule), append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return compiled, nil
}

func compileRule(source policy.ObjectRef, field string, spec v1beta1.PolicyRule) (verify.Rule, error) {
	images, err := patterns(field+".images", spec.Images)
	wrong := []error{err}
	rule := verify.Rule{Source: source, Images: images}
	switch spec.Action {
	case "", v1beta1.RuleActionRequire:
	case v1beta1.RuleActionAllow:
		rule.Action = verify.Allow
	case v1beta1.RuleActionDeny:
		rule.Action = verify.Deny
	default:
		return verify.Rule{}, errors.Join(err, fmt.Errorf("%s.action is %q, it must be Require, Allow or Deny", field, spec.Action))
	}
	switch {
	case rule.Action == verify.Require && len(spec.Require) == 0:
		wrong = append(wrong, fmt.Errorf("%s.require is empty: a rule that requires nothing proves nothing; say action: Allow to allow the images without verification", field))
	case rule.Action != verify.Require && len(spec.Require) > 0:
		wrong = append(wrong, fmt.Errorf("%s.require is for action Require, and the action is %s; remove one of them", field, spec.Action))
	}
	switch spec.Index {
	case "", v1beta1.IndexModeItself:
	case v1beta1.IndexModeItselfOrEveryManifest:
		rule.IndexManifests = true
	default:
		wrong = append(wrong, fmt.Errorf("%s.index is %q, it must be Itself or ItselfOrEveryManifest", field, spec.Index))
	}
	for j, requirement := range spec.Require {
		compiled, err := compileRequirement(fmt.Sprintf("%s.require[%d]", field, j), requirement)
		rule.Require, wrong = append(rule.Require, compiled), append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return verify.Rule{}, err
	}
	return rule, nil
}

func compileRequirement(field string, r v1beta1.Requirement) (verify.Requirement, error) {
	compiled := verify.Requirement{AnyOf: r.AnyOf, AllOf: r.AllOf, AtLeast: 1}
	if err := exactlyOne(field, member{"anyOf", len(r.AnyOf) > 0}, member{"allOf", len(r.AllOf) > 0}, member{"types", len(r.Types) > 0}, member{"expression", r.Expression != ""}); err != nil {
		return verify.Requirement{}, err
	}
	for _, t := range r.Types {
		switch t {
		case v1beta1.VerifierTypeCosign, v1beta1.VerifierTypeNotation, v1beta1.VerifierTypeAttestation:
		default:
			return verify.Requirement{}, fmt.Errorf("%s.types has %q, it must be one of Cosign, Notation, Attestation", field, t)
		}
		compiled.Types = append(compiled.Types, string(t))
	}
	if r.Expression != "" {
		var err error
		if compiled.Condition, err = condition(r.Expression); err != nil {
			return verify.Requirement{}, fmt.Errorf("%s.expression: %w", field, err)
		}
	}
	if r.AtLeast != nil {
		compiled.AtLeast = int(*r.AtLeast)
	}
	if compiled.AtLeast < 1 {
		return verify.Requirement{}, fmt.Errorf("%s.atLeast is %d, it must be 1 or more", field, compiled.AtLeast)
	}
	return compiled, nil
}

// condition compiles an expression over the proven findings. CEL's cost limit bounds
// it, so it needs no deadline.
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
