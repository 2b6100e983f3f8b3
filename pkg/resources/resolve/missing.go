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
		problems = append(problems, compile.ProblemsOf(e.Source, checkVerifierNames(e.Spec, verifiers), allFaults)...)
	}
	return problems
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

// checkVerifierNames returns an error for each missing or broken Verifier that spec names, joined.
func checkVerifierNames(spec v1beta1.VerificationPolicySpec, verifiers []compile.Verifier) error {
	var wrong []error
	for _, f := range resource.FieldsOfPolicy(spec) {
		k := slices.IndexFunc(verifiers, func(v compile.Verifier) bool { return v.Source.Name == f.Name })
		switch {
		case k < 0:
			wrong = append(wrong,
				resource.Reasoned(policy.ReasonNotFound,
					fmt.Errorf("%s names Verifier %s, which does not exist among the Verifiers that apply%s", f.Path, f.Name, hidden(verifiers))))
		case verifiers[k].Broken != nil:
			wrong = append(wrong, resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("%s: %w", f.Path, verifiers[k].Broken)))
		}
	}
	return errors.Join(wrong...)
}

// hidden explains that ClusterVerifiers do not apply in a namespace with Verifiers.
func hidden(verifiers []compile.Verifier) string {
	if len(verifiers) == 0 || verifiers[0].Source.Namespace == "" {
		return ""
	}
	return "; the namespace has Verifiers of its own, so those of further levels, its Tenant's home namespace and the cluster, do " +
		"not apply there"
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
