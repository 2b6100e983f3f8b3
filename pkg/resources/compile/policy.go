package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Policy is a compiled VerificationPolicy. A broken one denies.
type Policy struct {
	Source      policy.ObjectRef
	Rules       []verify.Rule
	Fallback    verify.Default    // for images that no rule matches
	Tags        v1beta1.TagAction // empty if the policy does not say
	Mandatory   bool
	Warns       bool // only adds warnings
	Broken      error
	Fingerprint string
	// Contacts has the contact of the policy: one entry, or none.
	Contacts []verify.Contact
}

// Decides reports whether p can deny, and not only warn.
func (p Policy) Decides() bool { return !p.Warns }

// NewPolicy compiles a VerificationPolicy. A policy with an error denies.
func NewPolicy(e Entry[v1beta1.VerificationPolicySpec]) (Policy, error) {
	p := Policy{Source: e.Source}
	if contact := ContactOf(e.Spec.Contact); contact != "" {
		p.Contacts = []verify.Contact{{Policy: e.Source, Text: contact}}
	}
	err := p.read(e)
	if err != nil {
		p.Rules, p.Fallback = nil, verify.DefaultDeny
		p.Broken = Refusal{Text: Unusable(e.Source, err).Error()}
	}
	p.Fingerprint = Fingerprint(e.Source, e.Spec, nil, err)
	return p, err
}

// read fills p from its spec. It reads scope, enforcement and tags first, so that a policy
// with other errors keeps them.
func (p *Policy) read(e Entry[v1beta1.VerificationPolicySpec]) (err error) {
	if p.Mandatory, err = isMandatory(e); err != nil {
		return err
	}
	p.Warns = e.Spec.EnforcementAction == v1beta1.EnforcementActionWarn
	if p.Tags = e.Spec.Tags; p.Tags != "" && p.Tags != v1beta1.TagActionLeave {
		p.Tags = v1beta1.TagActionPin
	}
	if e.Refused != nil {
		return e.Refused
	}
	p.Fallback = fallback(e.Source, e.Spec.DefaultAction)
	p.Rules, err = rules(e.Source, e.Spec.Rules)
	return err
}

// ContactOf returns the contact as denials show it: files may have text that the CRD refuses.
func ContactOf(text v1beta1.Contact) string {
	return strings.TrimSpace(policy.Shown(string(text), maxContact))
}

// isMandatory reports whether the policy applies to every namespace. An unreadable cluster policy
// does: if it is mandatory, it must not vanish.
func isMandatory(e Entry[v1beta1.VerificationPolicySpec]) (bool, error) {
	inCluster := e.Source.Kind == v1beta1.KindClusterVerificationPolicy
	if e.Broken != nil {
		return inCluster, e.Broken
	}
	return inCluster && e.Spec.Scope != "" && e.Spec.Scope != v1beta1.PolicyScopeFallback, nil
}

func fallback(source policy.ObjectRef, action v1beta1.DefaultAction) verify.Default {
	switch {
	case action == v1beta1.DefaultActionAllow:
		return verify.DefaultAllow
	case action == v1beta1.DefaultActionInherit && source.Namespace != "":
		return verify.DefaultInherit
	}
	return verify.DefaultDeny
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
	rule := verify.Rule{Source: source, Images: images, IndexManifests: spec.Index == v1beta1.IndexModeItselfOrEveryManifest}
	switch spec.Action {
	case v1beta1.RuleActionAllow:
		rule.Action = verify.Allow
	case "", v1beta1.RuleActionRequire:
	case v1beta1.RuleActionDeny:
		fallthrough
	default:
		rule.Action = verify.Deny
	}
	if (rule.Action == verify.Require) != (len(spec.Require) > 0) {
		wrong = append(wrong, notKnown(field+".require"))
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
	compiled := verify.Requirement{AtLeast: 1}
	switch {
	case len(r.AllOf) > 0:
		compiled.AllOf = r.AllOf
	case len(r.AnyOf) > 0:
		compiled.AnyOf = r.AnyOf
	case len(r.Types) > 0:
		compiled.Types = MapSlice(r.Types, func(t v1beta1.VerifierType) string { return string(t) })
	case r.Expression != "":
		var err error
		if compiled.Condition, err = condition(r.Expression); err != nil {
			return verify.Requirement{}, fmt.Errorf("%s.expression: %w", field, err)
		}
	default:
		return verify.Requirement{}, notKnown(field)
	}
	if r.AtLeast != nil {
		compiled.AtLeast = int(*r.AtLeast)
	}
	if compiled.AtLeast < 1 {
		return verify.Requirement{}, fmt.Errorf("%s.atLeast is %d, it must be 1 or more", field, compiled.AtLeast)
	}
	return compiled, nil
}

// condition compiles an expression over the proven findings.
func condition(text string) (policy.Condition, error) {
	compiled, err := cel.Compile(text, cel.Variables{"findings": cel.Any},
		cel.Fields{Of: map[string][]string{"findings[]": policy.FindingFields()}, Nearest: policy.Nearest})
	if err != nil {
		return nil, err
	}
	return func(step func() error, proven []policy.Finding) (bool, error) {
		findings := make([]any, len(proven))
		for i, f := range proven {
			findings[i] = f.Facts()
		}
		return compiled.Match(step, map[string]any{"findings": findings})
	}, nil
}

// Strictest returns the policy whose default applies to images that no rule of several
// policies matches: Deny wins over Inherit, and Inherit over Allow. Without policies it
// returns the zero value.
func Strictest(policies []Policy) Policy {
	if len(policies) == 0 {
		return Policy{}
	}
	return slices.MinFunc(policies, func(x, y Policy) int { return cmp.Compare(x.Fallback, y.Fallback) })
}

// Inherits reports whether the next level judges images that no rule of p matches.
func (p Policy) Inherits() bool { return p.Fallback == verify.DefaultInherit }

// SourceOf returns the name of p.
func SourceOf(p Policy) policy.ObjectRef { return p.Source }

// CostOf bounds the steps to match an image with patterns.
func CostOf(patterns []image.Pattern) (steps int) {
	for _, p := range patterns {
		steps += p.Cost()
	}
	return steps
}

// Refuse returns p as a policy that denies with the reason why.
func (p Policy) Refuse(why error) Policy {
	p.Rules, p.Fallback, p.Broken = nil, verify.DefaultDeny, why
	p.Fingerprint = DigestOf([]string{p.Fingerprint, why.Error()})
	return p
}

// ExpressionBytes returns the memory of a compiled expression, in bytes; "" is none.
func ExpressionBytes(text string) int {
	if text == "" {
		return 0
	}
	return cel.Bytes(text)
}
