package resolve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// verifierProblems returns a problem for each policy that names a missing or broken
// verifier. Problems of the policy itself are reported when it is compiled.
func verifierProblems(o *Objects, verifiers []compile.Verifier, allFaults bool) []resource.Problem {
	var problems []resource.Problem
	for _, e := range EntriesOf[v1beta1.VerificationPolicySpec](o) {
		if e.Broken != nil {
			continue
		}
		wrong := checkVerifierNames(e.Spec, verifiers)
		if found := compile.ProblemsOf(e.Source, errors.Join(wrong.errs...), allFaults); len(found) > 0 {
			found[0].Message = compile.Cut(found[0].Message + wrong.others(allFaults))
			problems = append(problems, found...)
		}
	}
	return problems
}

// maxUnusable bounds the further Verifiers that a problem names.
const maxUnusable = 5

// unusable are the missing or broken Verifiers that a policy names, in its order.
type unusable struct {
	errs   []error
	fields []resource.Field
}

// others names the Verifiers after the first one, each once with its first field, unless every fault is a separate
// problem.
func (u unusable) others(allFaults bool) string {
	if allFaults || len(u.fields) < 2 {
		return ""
	}
	seen := map[string]bool{u.fields[0].Name: true}
	var named []string
	for _, f := range u.fields[1:] {
		if !seen[f.Name] {
			named = append(named, fmt.Sprintf("%s (%s)", f.Name, f.Path))
		}
		seen[f.Name] = true
	}
	if len(named) == 0 {
		return ""
	}
	if more := len(named) - maxUnusable; more > 0 {
		named = append(named[:maxUnusable], fmt.Sprintf("%d more", more))
	}
	return "; Landwaiter cannot use these Verifiers either: " + compile.JoinNames(named)
}

// Partly describes what an otherwise usable policy cannot use: the missing or broken Verifiers that it names, and the
// rules that no image can pass because of them.
func Partly(p compile.Policy, verifiers []compile.Verifier) (names, rules []string) {
	broken := map[string]bool{} // of those that apply
	some := false
	for _, v := range verifiers {
		broken[v.Source.Name] = v.Broken != nil
		some = some || v.Broken != nil
	}
	gone := func(name string) bool {
		is, applies := broken[name]
		if (is || !applies) && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return is || !applies
	}
	for i, rule := range p.Rules {
		fails := false
		for _, r := range rule.Require {
			usable := 0
			for _, name := range slices.Concat(r.AnyOf, r.AllOf) {
				if !gone(name) {
					usable++
				}
			}
			fails = fails || len(r.AllOf) > usable || len(r.AnyOf) > 0 && usable == 0 || r.Condition != nil && some
		}
		if fails {
			rules = append(rules, fmt.Sprintf("spec.rules[%d]", i))
		}
	}
	return names, rules
}

// checkVerifierNames returns the missing or broken Verifiers that spec names, with an error for each.
func checkVerifierNames(spec v1beta1.VerificationPolicySpec, verifiers []compile.Verifier) (wrong unusable) {
	for _, f := range resource.FieldsOfPolicy(spec) {
		k := slices.IndexFunc(verifiers, func(v compile.Verifier) bool { return v.Source.Name == f.Name })
		var err error
		switch {
		case k < 0:
			err = resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s names Verifier %s, which does not exist among the Verifiers that apply%s", f.Path, f.Name, hidden(verifiers)))
		case verifiers[k].Broken != nil:
			err = resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("%s: %w", f.Path, verifiers[k].Broken))
		default:
			continue
		}
		wrong.errs, wrong.fields = append(wrong.errs, err), append(wrong.fields, f)
	}
	return wrong
}

// hidden explains that ClusterVerifiers do not apply in a namespace with Verifiers.
func hidden(verifiers []compile.Verifier) string {
	if len(verifiers) == 0 || verifiers[0].Source.Namespace == "" {
		return ""
	}
	return "; the namespace has Verifiers of its own, so those of further levels, its Tenant's home namespace and the cluster, do not apply there"
}

// homeOfVerifiers returns the home namespace of v's Tenant if it has Verifiers and v is
// another namespace, else "".
func (v *View) homeOfVerifiers() string {
	i := slices.IndexFunc(v.nearer, func(l NamedLevel) bool { return l.Label == LevelTenant })
	if i < 0 || v.nearer[i].Level == v.Own || len(v.nearer[i].Verifiers) == 0 {
		return ""
	}
	return string(v.nearer[i].Objects.Namespace)
}

// Stranded says which policy of another level denies images in the namespace of v because the
// namespace's Verifiers hide the one that the policy requires; "" if none does.
func (v *View) Stranded() string {
	if v.from >= len(v.nearer) || v.nearer[v.from].Level != v.Own {
		return ""
	}
	instead := ""
	if lenient := v.lenient(v.Deciding); lenient != (policy.ObjectRef{}) {
		instead = fmt.Sprintf(", or set enforcementAction of %s to Deny and loosen its rules instead", lenient)
	}
	for _, p := range v.Deciding.Policies {
		if name := lacks(p, v.Verifiers); p.Source.Namespace != string(v.Own.Objects.Namespace) && name != "" {
			return fmt.Sprintf("; %s requires %s, which does not apply where a namespace has Verifiers of its own, so images are denied: "+
				"create a VerificationPolicy in the namespace that requires its Verifiers%s", p.Source, name, instead)
		}
	}
	return ""
}

// lacks returns a missing verifier that makes some requirement of p impossible to meet, "" if
// there is none.
func lacks(p compile.Policy, verifiers []compile.Verifier) string {
	missing := func(name string) bool {
		return !slices.ContainsFunc(verifiers, func(v compile.Verifier) bool { return v.Source.Name == name })
	}
	for _, rule := range p.Rules {
		for _, r := range rule.Require {
			if i := slices.IndexFunc(r.AllOf, missing); i >= 0 {
				return r.AllOf[i]
			}
			if len(r.AnyOf) > 0 && !slices.ContainsFunc(r.AnyOf, func(name string) bool { return !missing(name) }) {
				return r.AnyOf[0]
			}
		}
	}
	return ""
}
