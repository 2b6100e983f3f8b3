package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/landwaiter/landwaiter/pkg/policy"
	"github.com/landwaiter/landwaiter/pkg/verify"
)

// printedResult is one image in JSON output.
type printedResult struct {
	Image     string     `json:"image"`
	Namespace string     `json:"namespace,omitempty"`
	Outcome   string     `json:"outcome"`
	Digest    string     `json:"digest,omitempty"`
	Policy    printedRef `json:"policy"`
	Reason    string     `json:"reason"`
	Warning   string     `json:"warning,omitempty"`
	// Verified says that the image is allowed because of what was verified, and not
	// because policies let it in without that.
	Verified bool             `json:"verified"`
	Findings []printedFinding `json:"findings"`
}

// printedRef names a resource.
type printedRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
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
	Extensions   map[string]any `json:"extensions,omitempty"`
}

// printedChoice says from which level the resources of one kind apply.
type printedChoice struct {
	Kind    string       `json:"kind"`
	Level   string       `json:"level"`
	Applied []printedRef `json:"applied"`
	Why     string       `json:"why"`
}

type printedStage struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"`
	Detail   string        `json:"detail,omitempty"`
}

func printable(arg string, r verify.Result) printedResult {
	v := r.Verdict
	return printedResult{Image: arg, Namespace: string(r.Namespace), Outcome: v.Outcome.String(), Digest: r.Digest.String(),
		Policy: printedRef(v.Policy), Reason: v.Reason, Warning: v.Warning, Verified: v.Outcome == policy.Allowed && !v.Unverified,
		Findings: mapped(r.Findings, printableFinding)}
}

func printableFinding(f policy.Finding) printedFinding {
	return printedFinding{Verifier: f.Verifier, Source: printedRef(f.Source), Type: f.Type, Result: f.Result.String(),
		Signer: f.Signer, Digest: f.Digest, ArtifactType: f.ArtifactType, Message: f.Message,
		Reason: string(f.Reason), Remediation: f.Remediation, Extensions: f.Extensions}
}

func printableStage(s verify.Stage) printedStage { return printedStage(s) }

// mapped applies convert to each entry. It never returns nil, which JSON would show
// as null.
func mapped[From, To any](list []From, convert func(From) To) []To {
	made := make([]To, len(list))
	for i, entry := range list {
		made[i] = convert(entry)
	}
	return made
}

func (r printedRef) String() string { return policy.ObjectRef(r).String() }

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

func printResults(out io.Writer, format string, args []string, results []verify.Result) error {
	printed := make([]printedResult, len(results))
	for i, r := range results {
		printed[i] = printable(args[i], r)
	}
	if format == "json" {
		return printJSON(out, printed)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tVERDICT\tDIGEST\tREASON")
	for _, p := range printed {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Image, p.headline(), short(p.Digest), p.Reason)
	}
	return table.Flush()
}

func printJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// short shortens a digest to the part that people compare.
func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19]
	}
	if digest == "" {
		return "-"
	}
	return digest
}
