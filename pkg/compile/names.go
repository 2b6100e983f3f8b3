package compile

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/resource"
)

// verifierProblems returns a problem for each policy that names a missing or broken
// verifier. Problems of the policy itself are reported when it is compiled.
func verifierProblems(policies []entry[v1alpha1.ClusterVerificationPolicySpec], verifiers []verifier) []resource.Problem {
	var problems []resource.Problem
	for _, e := range policies {
		if e.broken != nil {
			continue
		}
		if err := checkVerifierNames(e.spec, verifiers); err != nil {
			problems = append(problems, resource.Problem{Source: e.source, Reason: resource.ReasonOf(err), Message: cut(err.Error())})
		}
	}
	return problems
}

// checkVerifierNames returns an error for the first verifier in spec that is missing
// or broken.
func checkVerifierNames(spec v1alpha1.ClusterVerificationPolicySpec, verifiers []verifier) error {
	for i, rule := range spec.Rules {
		for j, requirement := range rule.Require {
			for _, name := range slices.Concat(requirement.AnyOf, requirement.AllOf) {
				field := fmt.Sprintf("spec.rules[%d].require[%d]", i, j)
				k := slices.IndexFunc(verifiers, func(v verifier) bool { return v.Source.Name == name })
				switch {
				case k < 0:
					return resource.Reasoned(policy.ReasonNotFound, fmt.Errorf("%s names Verifier %s, which does not exist among the Verifiers that apply", field, name))
				case verifiers[k].Broken != "":
					return resource.Reasoned(policy.ReasonReferenceNotReady, fmt.Errorf("%s: %s", field, verifiers[k].Broken))
				}
			}
		}
	}
	return nil
}
