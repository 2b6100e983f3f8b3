package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
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

// compilePolicy compiles a VerificationPolicy. One with an error denies.
func compilePolicy(e entry[v1beta1.VerificationPolicySpec]) (compiledPolicy, error) {
	p := compiledPolicy{source: e.source}
	err := p.read(e)
	if err != nil {
		p.rules, p.fallback = nil, v1beta1.DefaultActionDeny
		p.broken = refusal(unusable(e.source, err).Error())
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
	p.warns = e.spec.EnforcementAction == v1beta1.EnforcementActionWarn
	if err := knownWord("spec.enforcementAction", e.spec.EnforcementAction, "", v1beta1.EnforcementActionDeny, v1beta1.EnforcementActionWarn); err != nil {
		return err
	}
	if err := knownWord("spec.tags", e.spec.Tags, "", v1beta1.TagActionPin, v1beta1.TagActionLeave); err != nil {
		return err
	}
	p.tags = e.spec.Tags
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
	if err := knownWord("spec.scope", e.spec.Scope, "", v1beta1.PolicyScopeFallback, v1beta1.PolicyScopeMandatory); err != nil {
		return inCluster, err
	}
	return e.spec.Scope == v1beta1.PolicyScopeMandatory, nil
}

func fallback(source policy.ObjectRef, action v1beta1.DefaultAction) (v1beta1.DefaultAction, error) {
	if action == v1beta1.DefaultActionInherit && source.Namespace == "" {
		return "", errors.New("spec.defaultAction is Inherit, but no level comes after the cluster's; it must be Deny or Allow")
	}
	action = cmp.Or(action, v1beta1.DefaultActionDeny)
	return action, knownWord("spec.defaultAction", action, v1beta1.DefaultActionDeny, v1beta1.DefaultActionAllow, v1beta1.DefaultActionInherit)
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
	if unknown := knownWord(field+".action", spec.Action, "", v1beta1.RuleActionRequire, v1beta1.RuleActionAllow, v1beta1.RuleActionDeny); unknown != nil {
		return verify.Rule{}, errors.Join(err, unknown)
	}
	wrong := []error{err, knownWord(field+".index", spec.Index, "", v1beta1.IndexModeItself, v1beta1.IndexModeItselfOrEveryManifest)}
	rule := verify.Rule{Source: source, Images: images, IndexManifests: spec.Index == v1beta1.IndexModeItselfOrEveryManifest}
	switch spec.Action {
	case v1beta1.RuleActionAllow:
		rule.Action = verify.Allow
	case v1beta1.RuleActionDeny:
		rule.Action = verify.Deny
	case "", v1beta1.RuleActionRequire:
	}
	switch {
	case rule.Action == verify.Require && len(spec.Require) == 0:
		wrong = append(wrong, fmt.Errorf("%s.require is empty: a rule that requires nothing proves nothing; say action: Allow to allow the images without verification", field))
	case rule.Action != verify.Require && len(spec.Require) > 0:
		wrong = append(wrong, fmt.Errorf("%s.require is for action Require, and the action is %s; remove one of them", field, spec.Action))
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

// strictest returns the policy whose default applies to images that no rule of several
// policies matches: Deny wins over Inherit, and Inherit over Allow. Of none it is the zero
// value.
func strictest(policies []compiledPolicy) compiledPolicy {
	if len(policies) == 0 {
		return compiledPolicy{}
	}
	return slices.MinFunc(policies, func(x, y compiledPolicy) int { return x.leniency() - y.leniency() })
}

// leniency orders default actions, the strictest first.
func (p compiledPolicy) leniency() int {
	switch p.fallback {
	case v1beta1.DefaultActionAllow:
		return 2
	case v1beta1.DefaultActionInherit:
		return 1
	case v1beta1.DefaultActionDeny:
	}
	return 0
}

// inherits reports whether the next level judges images that no rule of p matches.
func (p compiledPolicy) inherits() bool { return p.fallback == v1beta1.DefaultActionInherit }

// sourceOf returns which policy p is.
func sourceOf(p compiledPolicy) policy.ObjectRef { return p.source }

// costOf bounds the steps to match an image with patterns.
func costOf(patterns []image.Pattern) (steps int) {
	for _, p := range patterns {
		steps += p.Cost()
	}
	return steps
}

// refuse returns p as one that denies, and says why.
func (p compiledPolicy) refuse(why error) compiledPolicy {
	p.rules, p.fallback, p.broken = nil, "", why
	p.fingerprint = digestOf([]string{p.fingerprint, why.Error()})
	return p
}
