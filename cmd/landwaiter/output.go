package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
	"github.com/landwaiter/landwaiter/pkg/tenancy/scaffold"
)

// printedResult is one image in JSON output.
type printedResult struct {
	Image     string     `json:"image"`
	Namespace string     `json:"namespace,omitempty"`
	Outcome   string     `json:"outcome"`
	Digest    string     `json:"digest,omitempty"`
	Policy    printedRef `json:"policy"`
	Reason    string     `json:"reason"`
	// Remediation says what to do about an image that is not allowed, and Command does it.
	Remediation string `json:"remediation,omitempty"`
	Command     string `json:"command,omitempty"`
	// Contact is the contact of the policy.
	Contact string `json:"contact,omitempty"`
	// Others are further policies and requirements that deny the image, and More counts those left out.
	Others  []printedOther `json:"others,omitempty"`
	More    int            `json:"more,omitempty"`
	Warning string         `json:"warning,omitempty"`
	// Verified says that the image is allowed because of verified evidence, and not because
	// policies require none.
	Verified bool `json:"verified"`
	// Exception allows the image although the policy denies it.
	Exception *printedException `json:"exception,omitempty"`
	Findings  []printedFinding  `json:"findings"`
	// Used lists the workloads with the image, with -f.
	Used []string `json:"used,omitempty"`
}

// Types of other packages, under the names by which docs/reference/commands promises their
// fields.
type (
	printedRef             = policy.ObjectRef
	printedOther           = policy.Objection
	printedNamespace       = live.NamespaceStatus
	printedRunning         = live.Running
	printedUndecided       = live.Undecided    //nolint:unused // a part of printedNamespace
	printedDenied          = live.Denial       //nolint:unused // a part of printedNamespace
	printedExcused         = live.ExceptionUse //nolint:unused // a part of printedNamespace
	printedContact         = live.Contact      //nolint:unused // a part of printedNamespace
	printedAttention       = live.Attention
	printedChoice          = live.Choice
	printedTotal           = live.Total
	printedFault           = resource.Finding
	printedUnchecked       = resource.Unchecked
	printedCase            = isolation.Result
	printedOutcome         = operator.Outcome
	printedProblem         = operator.Problem
	printedTenant          = operator.Row
	printedTenantNamespace = operator.NamespaceRow
	printedFile            = scaffold.Outcome
)

// printedException names the exception that allows an image, or the Namespace of a break-glass.
type printedException struct {
	printedRef
	Until string `json:"until"`
}

func printableException(r verify.Result) *printedException {
	if r.Exception == (policy.ObjectRef{}) {
		return nil
	}
	return &printedException{r.Exception, r.ExceptionEnds.UTC().Format(time.RFC3339)}
}

type printedFinding struct {
	Verifier     string         `json:"verifier"`
	Source       printedRef     `json:"source"`
	Type         string         `json:"type"`
	Result       string         `json:"result"`
	Signer       string         `json:"signer,omitempty"`
	Digest       string         `json:"digest,omitempty"`
	ArtifactType string         `json:"artifactType,omitempty"`
	Message      string         `json:"message"`
	Reason       string         `json:"reason,omitempty"`
	Remediation  string         `json:"remediation,omitempty"`
	Command      string         `json:"command,omitempty"`
	Extensions   map[string]any `json:"extensions,omitempty"`
}

// levelOf names the level in a table.
func levelOf(c printedChoice) string { return strings.TrimSpace(c.Level + " " + c.Tenant) }

type printedStage struct {
	Name     string   `json:"name"`
	Duration duration `json:"duration"`
	Detail   string   `json:"detail,omitempty"`
}

// printedLocation is the content of one repository for an image.
type printedLocation struct {
	Repository string `json:"repository"`
	Role       string `json:"role"`
	Digest     string `json:"digest"`
	Manifests  int    `json:"manifests"`
	Signatures int    `json:"signatures"` // of the manifests, those of a kind that a Verifier checks
	Error      string `json:"error,omitempty"`
	// Lacks names the features that the registry lacks.
	Lacks string `json:"lacks,omitempty"`
}

func printableLocation(l verify.Looked) printedLocation {
	return printedLocation{Repository: l.Repository, Role: string(l.Role), Digest: l.Digest.String(), Manifests: l.Manifests,
		Signatures: l.Signatures, Error: l.Err, Lacks: l.Lacks}
}

func (l printedLocation) note() string {
	if l.Error == "" && l.Lacks != "" {
		return "the registry lacks " + l.Lacks
	}
	return cmp.Or(l.Error, "-")
}

// printedOrigin lists what the registry in an image name has, and other repositories lack.
type printedOrigin struct {
	Repository string   `json:"repository"`
	Instead    []string `json:"instead"` // repositories that are read instead
	Digest     string   `json:"digest,omitempty"`
	Mirrored   string   `json:"mirrored,omitempty"`
	Missing    []string `json:"missing"` // evidence, by digest
	Said       []string `json:"said"`
}

func printableOrigin(c live.Comparison) *printedOrigin {
	return &printedOrigin{Repository: c.Origin, Instead: append([]string{}, c.Instead...), Digest: c.Original.String(),
		Mirrored: c.Mirrored.String(),
		Missing:  mapped(c.Missing, digest.Digest.String), Said: c.Sentences()}
}

// printedResults is the output of verify.
type printedResults struct {
	Results []printedResult `json:"results"`
}

func printable(arg string, r verify.Result) printedResult {
	v := r.Verdict
	return printedResult{Image: arg, Namespace: string(r.Namespace), Outcome: v.Outcome().String(), Digest: r.Digest.String(),
		Policy: v.Policy, Reason: v.Reason, Remediation: v.Remediation, Command: v.Command, Contact: v.Contact, Others: v.Others, More: v.More,
		Warning: v.Warning, Verified: v.Outcome() == policy.Allowed && !v.Unverified,
		Exception: printableException(r), Findings: mapped(r.Findings, printableFinding)}
}

func printableFinding(f policy.Finding) printedFinding {
	return printedFinding{Verifier: f.Verifier, Source: f.Source, Type: f.Type, Result: f.Result().String(),
		Signer: f.Signer(), Digest: f.Digest, ArtifactType: f.ArtifactType, Message: f.Message,
		Reason: string(f.Reason), Remediation: f.Remediation, Command: f.Command, Extensions: f.Extensions}
}

func printableStage(s verify.Stage) printedStage {
	return printedStage{Name: s.Name, Duration: duration(s.Duration), Detail: s.Detail}
}

// mapped applies convert to each entry. It never returns nil, which JSON would show
// as null.
func mapped[From, To any](list []From, convert func(From) To) []To {
	made := make([]To, len(list))
	for i, entry := range list {
		made[i] = convert(entry)
	}
	return made
}

// by names the verifier of a finding. A verifier that does not exist, or does not apply, has
// no resource.
func (f printedFinding) by() string {
	if f.Source == (printedRef{}) {
		return f.Verifier + " (does not apply)"
	}
	return f.Source.String()
}

// headline is the outcome as people read it.
func (r printedResult) headline() string {
	outcome := strings.ToUpper(r.Outcome)
	switch {
	case r.Warning != "":
		return outcome + " (warning)"
	case r.Outcome == policy.Allowed.String() && !r.Verified:
		return outcome + " (not verified)"
	}
	return outcome
}

func printableResults(questions []live.Use, results []verify.Result) printedResults {
	printed := printedResults{Results: make([]printedResult, len(results))}
	for i, r := range results {
		printed.Results[i] = printable(questions[i].Image, r)
		printed.Results[i].Used = questions[i].Owners
	}
	return printed
}

func (p printedResults) show(s *screen) {
	if slices.ContainsFunc(p.Results, func(r printedResult) bool { return len(r.Used) > 0 }) {
		p.showUses(s)
		return
	}
	s.row("IMAGE", "VERDICT", "DIGEST", "REASON")
	for _, r := range p.Results {
		s.row(r.Image, r.headline(), short(r.Digest), r.text())
	}
}

// showUses shows images with their workloads.
func (p printedResults) showUses(s *screen) {
	s.row("NAMESPACE", "USED BY", "IMAGE", "VERDICT", "REASON")
	for _, r := range p.Results {
		s.row(r.Namespace, used(live.Use{Owners: r.Used}), r.Image, r.headline(), r.text())
	}
}

// short shortens a digest to the part that people compare.
func short(digest string) string {
	return cmp.Or(digest[:min(len(digest), 19)], "-")
}
