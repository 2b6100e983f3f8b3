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
func verifierProblems(policies []compile.Entry[v1beta1.VerificationPolicySpec], verifiers []compile.Verifier, allFaults bool) []resource.Problem {
	var problems []resource.Problem
	for _, e := range policies {
		if e.Broken != nil {
			continue
		}
		problems = append(problems, compile.ProblemsOf(e.Source, checkVerifierNames(e.Spec, verifiers), allFaults)...)
	}
	return problems
}

// checkVerifierNames returns an error for each verifier in spec that is missing or broken,
// joined.
func checkVerifierNames(spec v1beta1.VerificationPolicySpec, verifiers []compile.Verifier) error {
	var wrong []error
	for _, f := range resource.FieldsOfPolicy(spec) {
		k := slices.IndexFunc(verifiers, func(v compile.Verifier) bool { return v.Source.Name == f.Name })
		switch {
		case k < 0:
			wrong = append(wrong, resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s names Verifier %s, which does not exist among the Verifiers that apply%s", f.Path, f.Name, hidden(verifiers))))
		case verifiers[k].Broken != nil:
			wrong = append(wrong, resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("%s: %w", f.Path, verifiers[k].Broken)))
		}
	}
	return errors.Join(wrong...)
}

// hidden says that ClusterVerifiers do not apply where a namespace has Verifiers.
func hidden(verifiers []compile.Verifier) string {
	if len(verifiers) == 0 || verifiers[0].Source.Namespace == "" {
		return ""
	}
	return "; the namespace has Verifiers of its own, so those of further levels, its Tenant's home namespace and the cluster, do not apply there"
}

// homeOfVerifiers returns the home of v's Tenant if it has Verifiers and v is another
// namespace, else "".
func (v *View) homeOfVerifiers() string {
	i := slices.IndexFunc(v.Chain, func(r Rung) bool { return r.Label == LevelTenant })
	if i < 0 || v.Chain[i].Level == v.Own || len(v.Chain[i].Verifiers) == 0 {
		return ""
	}
	return string(v.Chain[i].Objects.Namespace)
}

// Stranded says which policy of another level denies images in the namespace of v because
// its Verifiers hide the one that the policy requires; "" if none does.
func (v *View) Stranded() string {
	if v.from >= len(v.Chain) || v.Chain[v.from].Level != v.Own {
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

// lacks returns a verifier without which some requirement of p cannot be met, "" if there
// is none.
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
