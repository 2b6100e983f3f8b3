package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
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
	return printedLocation{Repository: l.Repository, Role: string(l.Role), Digest: l.Digest.String(), Manifests: l.Manifests, Signatures: l.Signatures, Error: l.Err, Lacks: l.Lacks}
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
	return &printedOrigin{Repository: c.Origin, Instead: append([]string{}, c.Instead...), Digest: c.Original.String(), Mirrored: c.Mirrored.String(),
		Missing: mapped(c.Missing, digest.Digest.String), Said: c.Sentences()}
}

// printedResults is the output of verify.
type printedResults struct {
	Results []printedResult `json:"results"`
}

func printable(arg string, r verify.Result) printedResult {
	v := r.Verdict
	return printedResult{Image: arg, Namespace: string(r.Namespace), Outcome: v.Outcome().String(), Digest: r.Digest.String(),
		Policy: v.Policy, Reason: v.Reason, Remediation: v.Remediation, Command: v.Command, Contact: v.Contact, Others: v.Others, More: v.More, Warning: v.Warning, Verified: v.Outcome() == policy.Allowed && !v.Unverified,
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

// format is the value of --output. One with a template begins with its name, as for kubectl:
// jsonpath={.results[0].reason}.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// add declares --output among flags.
func (f *format) add(flags *pflag.FlagSet) {
	*f = formatTable
	flags.VarP(f, "output", "o", "output format: table, json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE")
}

// String returns the value.
func (f *format) String() string { return string(*f) }

// Type returns what help calls the value.
func (f *format) Type() string { return "format" }

// Set refuses other values, and invalid templates.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatTable, formatJSON, formatYAML:
	default:
		if _, err := format(s).template(); err != nil {
			return err
		}
	}
	*f = format(s)
	return nil
}

// template returns kubectl's printer for a template.
func (f format) template() (printers.ResourcePrinter, error) {
	paths := &genericclioptions.JSONPathPrintFlags{}
	templates := &genericclioptions.GoTemplatePrintFlags{}
	for _, of := range []interface {
		ToPrinter(format string) (printers.ResourcePrinter, error)
	}{paths, templates} {
		printer, err := of.ToPrinter(string(f))
		if !genericclioptions.IsNoCompatiblePrinterError(err) {
			return printer, err
		}
	}
	return nil, errors.New("it must be table, json, yaml, jsonpath=TEMPLATE or go-template=TEMPLATE")
}

// print prints value in the format. Printed text never controls a terminal.
func (f *format) print(cmd *cobra.Command, value shown) error {
	out := cmd.OutOrStdout()
	if *f == formatTable {
		return program.Failed(show(out, value))
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return program.Failed(err)
	}
	text, err := buffer.Bytes(), error(nil)
	switch *f { //nolint:exhaustive // a table is printed above
	case formatJSON:
		text = escaped(text)
	case formatYAML:
		// YAML has no escape without quotes for the remaining characters, such as text from right to
		// left.
		text, err = yaml.JSONToYAML(escaped(text))
		text = plainLines(text)
	default:
		text, err = f.templated(text)
	}
	if err != nil {
		return err
	}
	return document(out, text)
}

// templated returns the output of a template for a result in JSON.
func (f *format) templated(encoded []byte) ([]byte, error) {
	printer, err := f.template()
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &result.Object); err != nil {
		return nil, program.Failed(err)
	}
	plainValues(result.Object)
	var made bytes.Buffer
	if err := printer.PrintObj(result, &made); err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	return plainLines(made.Bytes()), nil
}

// plainValues makes each text in a result one line, so that only a template begins lines. It
// changes and returns value.
func plainValues(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = plainValues(value[name])
		}
	case []any:
		for i := range value {
			value[i] = plainValues(value[i])
		}
	case string:
		return program.OneLine(value)
	}
	return value
}

// plainLines makes each line printable.
func plainLines(text []byte) []byte {
	lines := mapped(bytes.Split(text, []byte("\n")), func(line []byte) []byte { return []byte(program.OneLine(string(line))) })
	return bytes.Join(lines, []byte("\n"))
}

// escaped writes characters that control a terminal as JSON escapes: encoding/json only does
// so below U+0020.
func escaped(text []byte) []byte {
	made := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			made = utf8.AppendRune(made, r)
		case utf16.RuneLen(r) == 2:
			high, low := utf16.EncodeRune(r)
			made = fmt.Appendf(made, `\u%04x\u%04x`, high, low)
		default:
			made = fmt.Appendf(made, `\u%04x`, r)
		}
	}
	return made
}

// duration is a time that JSON contains in milliseconds with their unit, such as "12.5ms".
type duration time.Duration

// MarshalText returns the milliseconds, with at most three decimals.
func (d duration) MarshalText() ([]byte, error) { //nolint:unparam // encoding.TextMarshaler
	milliseconds := float64(time.Duration(d).Round(time.Microsecond)) / float64(time.Millisecond)
	return append(strconv.AppendFloat(nil, milliseconds, 'f', -1, 64), "ms"...), nil
}

// String returns the duration as people read it.
func (d duration) String() string { return time.Duration(d).Round(time.Microsecond).String() }
