package breadth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// stepsOfExpression is what an expression costs each time that it asks whether it may go on.
const stepsOfExpression = 1 << 10

var errSteps = errors.New("judging this identity takes too long")

// narrowed returns a matcher that asks the expression about a stranger's certificate too, for a workflow that another
// one, the caller, may have called. A claim that strangers choose has its usual value.
func narrowed(matches func(issuer, subject string) bool, expression string, steps *int) (func(issuer, subject, caller string) bool, error) {
	compiled, err := cosign.CompileKeyless(expression)
	if err != nil {
		return nil, fmt.Errorf("compile the expression: %w", err)
	}
	step := func() error {
		if *steps -= stepsOfExpression; *steps <= 0 {
			return errSteps
		}
		return nil
	}
	return func(issuer, subject, caller string) bool {
		if !matches(issuer, subject) {
			return false
		}
		has := claims(issuer, caller)
		if _, ok := has["buildSignerURI"]; ok {
			has["buildSignerURI"] = subject
		}
		matched, err := compiled.Match(step, map[string]any{"issuer": issuer, "subject": subject, "claims": has})
		return err == nil && matched
	}, nil
}

// claims returns what Fulcio writes into a stranger's certificate.
func claims(issuer, subject string) map[string]any {
	made := map[string]any{"issuer": issuer}
	address, ref, ok := strings.Cut(subject, "@")
	if !ok || !strings.HasPrefix(address, "https://") {
		return made
	}
	repository, file, _ := strings.Cut(address, "/.github/")
	if before, after, ok := strings.Cut(address, "//."); ok && strings.Contains(before, "://") {
		repository, file = before, after
	} else if at := strings.LastIndex(address, "//"); at > len("https://") {
		repository, file = address[:at], address[at+2:]
	}
	owner := repository[:max(0, strings.LastIndex(repository, "/"))]
	event := "push"
	if strings.HasPrefix(ref, "refs/pull/") || strings.HasPrefix(ref, "refs/merge-requests/") {
		event = "pull_request"
	}
	for name, value := range map[string]string{
		"buildSignerURI": subject, "buildConfigURI": subject, "buildTrigger": event, "runnerEnvironment": "github-hosted",
		"sourceRepositoryURI": repository, "sourceRepositoryRef": ref, "sourceRepositoryOwnerURI": owner, "sourceRepositoryVisibilityAtSigning": "public",
		"sourceRepositoryIdentifier": "999999999", "sourceRepositoryOwnerIdentifier": "99999999", "sourceRepositoryDigest": strings.Repeat("9", 40),
		"buildSignerDigest": strings.Repeat("9", 40), "buildConfigDigest": strings.Repeat("9", 40), "deploymentEnvironment": "release",
		"runInvocationURI": repository + "/actions/runs/1/attempts/1", "githubWorkflowTrigger": event, "githubWorkflowName": file,
		"githubWorkflowRepository": strings.TrimPrefix(repository, "https://github.com/"), "githubWorkflowRef": ref, "githubWorkflowSHA": strings.Repeat("9", 40),
	} {
		made[name] = value
	}
	return made
}
