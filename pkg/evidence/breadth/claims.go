package breadth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// Evaluating an expression costs stepsOfExpression, and stepsOfMore each time it checks the budget.
const (
	stepsOfExpression = 1 << 6
	stepsOfMore       = 1 << 10
)

var errSteps = errors.New("judging this identity takes too long")

// condition is an expression that certificates must also satisfy.
type condition struct {
	compiled     *cel.Expression
	steps        *int
	alternatives [][]cel.Comparison
	// asked are claims that the expression requires and that the subject like does not determine.
	asked map[string]string
	like  string
}

func newCondition(expression string, steps *int) (*condition, error) {
	compiled, err := cosign.CompileKeyless(expression)
	if err != nil {
		return nil, fmt.Errorf("compile the expression: %w", err)
	}
	return &condition{compiled: compiled, steps: steps, alternatives: cel.Alternatives(expression, cosign.KeylessVariables())}, nil
}

// meets evaluates the expression for a certificate of a workflow that another workflow, the caller, may have called.
func (c *condition) meets(issuer, subject, caller string) bool {
	cost := stepsOfExpression
	step := func() error {
		*c.steps -= cost
		if cost = stepsOfMore; *c.steps <= 0 {
			return errSteps
		}
		return nil
	}
	has := c.claims(issuer, caller)
	if _, ok := has["buildSignerURI"]; ok {
		has["buildSignerURI"] = subject
	}
	matched, err := c.compiled.Match(step, map[string]any{"issuer": issuer, "subject": subject, "claims": has})
	return err == nil && matched
}

// claims returns a stranger's claims. Where strangers can obtain the values that the expression requires, they have them.
func (c *condition) claims(issuer, subject string) map[string]any {
	made := claims(issuer, subject)
	if len(c.asked) == 0 || made["sourceRepositoryURI"] == nil {
		return made
	}
	like := claims(issuer, c.like)
	for name, value := range c.asked {
		switch name {
		case "runnerEnvironment", "sourceRepositoryVisibilityAtSigning", "githubWorkflowName": // strangers choose them
		case "buildTrigger", "githubWorkflowTrigger":
			if made[name] == "pull_request" {
				continue
			}
		case "deploymentEnvironment": // an environment says which refs of its repository it is for
			if made["sourceRepositoryURI"] == like["sourceRepositoryURI"] && subject != c.like {
				continue
			}
		case "sourceRepositoryOwnerIdentifier":
			if made["sourceRepositoryOwnerURI"] != like["sourceRepositoryOwnerURI"] {
				continue
			}
		case "sourceRepositoryIdentifier":
			if made["sourceRepositoryURI"] != like["sourceRepositoryURI"] {
				continue
			}
		default: // commits
			if subject != c.like {
				continue
			}
		}
		made[name] = value
	}
	return made
}

// ask keeps the claims that an alternative of the expression requires and that the subject does not determine.
func (c *condition) ask(alternative []cel.Comparison, like string, steps *int) {
	c.asked, c.like = map[string]string{}, like
	for _, compared := range alternative {
		name, ok := strings.CutPrefix(compared.Of, "claims.")
		if _, told := spanOf(compared.Of); !ok || told {
			continue
		}
		if p, err := cel.NewPattern(compared.Pattern); err == nil {
			if text, ok := p.Common(printable(), steps); ok {
				c.asked[name] = text
			}
		}
	}
}

// span is the range of parts of a subject that determine a text. more is the constant rest of the text.
type span struct {
	from, to int
	more     string
}

// spanOf returns the parts of a workflow's subject that determine a text.
func spanOf(of string) (span, bool) {
	switch strings.TrimPrefix(of, "claims.") {
	case "subject", "buildSignerURI", "buildConfigURI":
		return span{0, workflowParts, ""}, true
	case "sourceRepositoryOwnerURI":
		return span{0, 2, ""}, true
	case "sourceRepositoryURI":
		return span{0, 4, ""}, true
	case "runInvocationURI":
		return span{0, 4, "/actions/runs/1/attempts/1"}, true
	case "githubWorkflowRepository":
		return span{1, 4, ""}, true
	case "sourceRepositoryRef", "githubWorkflowRef":
		return span{workflowParts - 1, workflowParts, ""}, true
	case "issuer":
		return span{}, true
	}
	return span{}, false
}

// claims returns what Fulcio writes into a stranger's certificate.
func claims(issuer, subject string) map[string]any {
	made := map[string]any{"issuer": issuer}
	address, ref, ok := strings.Cut(subject, "@")
	if !ok || !strings.HasPrefix(address, "https://") {
		return made
	}
	repository, file, _ := strings.Cut(address, "/.github/workflows/")
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
		"sourceRepositoryURI": repository, "sourceRepositoryRef": ref, "sourceRepositoryOwnerURI": owner,
		"sourceRepositoryVisibilityAtSigning": "public",
		"sourceRepositoryIdentifier":          "999999999", "sourceRepositoryOwnerIdentifier": "99999999",
		"sourceRepositoryDigest": strings.Repeat("9", 40),
		"buildSignerDigest":      strings.Repeat("9", 40), "buildConfigDigest": strings.Repeat("9", 40), "deploymentEnvironment": "release",
		"runInvocationURI": repository + "/actions/runs/1/attempts/1", "githubWorkflowTrigger": event, "githubWorkflowName": file,
		"githubWorkflowRepository": strings.TrimPrefix(repository, "https://github.com/"), "githubWorkflowRef": ref,
		"githubWorkflowSHA": strings.Repeat("9", 40),
	} {
		made[name] = value
	}
	return made
}
