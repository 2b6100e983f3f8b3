// Package judged makes verdicts and findings for tests that need some without an engine.
package judged

import "github.com/landwaiter/landwaiter/pkg/decide/policy"

// As returns v with an outcome.
func As(outcome policy.Outcome, v policy.Verdict) policy.Verdict {
	if outcome == policy.Undecided {
		made := policy.NotDecided(v.Policy, v.Reason)
		made.Remediation, made.Command, made.Cause = v.Remediation, v.Command, v.Cause
		return made
	}
	made, err := policy.Restore(outcome.String(), v)
	if err != nil {
		panic(err)
	}
	return made
}

// Proven returns f as proven by a signer.
func Proven(signer string, f policy.Finding) policy.Finding {
	made := policy.NewProof(signer, f.Message, f.Extensions).Finding()
	made.Verifier, made.Source, made.Type, made.Digest, made.ArtifactType = f.Verifier, f.Source, f.Type, f.Digest, f.ArtifactType
	made.Reason, made.Remediation, made.Command, made.Incomplete, made.Until = f.Reason, f.Remediation, f.Command, f.Incomplete, f.Until
	return made
}
