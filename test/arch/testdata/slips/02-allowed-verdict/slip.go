// Package slip makes a verdict that allows an image without proof, a rule or an exception.
package slip

import "github.com/landwaiter/landwaiter/pkg/decide/policy"

func allowed(v policy.Verdict) (policy.Verdict, policy.Verdict) {
	made := policy.Verdict{Outcome: policy.Allowed} // want "unknown field Outcome in struct literal of type policy.Verdict"
	v.Outcome = policy.Allowed                      // want "cannot assign to v.Outcome"
	return made, v
}
