// Package lint finds errors of resources in files, before they are in a cluster. It runs the
// checks of an API server with the CRDs of landwaiter.dev (schema, unknown fields, rules in
// CEL), then reports the errors of compiling, each with file, line and field. It decides
// nothing about images, makes no network requests, and never calls files without resources
// correct.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// TrustWithinReach is the ID of findings about who else can change trust material, OfRatify of findings about
// resources of Ratify, and NoObject of findings about patches of kustomizations. All other IDs are the reasons of
// conditions in a cluster.
const (
	TrustWithinReach = "TrustWithinReach"
	OfRatify         = "OfRatify"
	NoObject         = "NoObject"
)

// Report is the result of a check.
type Report struct {
	Findings []resource.Finding
	// Resources counts the checked resources of landwaiter.dev, Ignored the objects of other
	// kinds that Landwaiter does not use.
	Resources, Ignored int
}

// Check checks the resources in files and directories, as [configdir.Read] reads them in a namespace. problems
// returns the problems of compiling objects. Findings are sorted by file and line. It fails if a
// path cannot be read, and if there is nothing to check.
func Check(ctx context.Context, namespace string, paths []string, stdin io.Reader,
	problems func(resource.Objects) []resource.Problem) (Report, error) {
	files, err := configdir.Read(ctx, namespace, paths, stdin)
	if err != nil {
		return Report{}, err
	}
	return check(ctx, files, paths, problems, false)
}

// CheckCluster is [Check] for text with all resources of a cluster: a reference to anything outside
// the text is an error, except to Secrets and ConfigMaps, which others may create. A resource that
// allows every image is a warning, regardless of its author.
func CheckCluster(ctx context.Context, text string, problems func(resource.Objects) []resource.Problem) (Report, error) {
	paths := []string{configdir.Standard}
	files, err := configdir.Read(ctx, "", paths, strings.NewReader(text))
	if err != nil {
		return Report{}, err
	}
	// Every cluster has namespaces that no file names, so cluster resources apply somewhere.
	if !slices.Contains(files.Objects.InNamespaces(), metav1.NamespaceDefault) {
		files.Objects.Namespaces = append(files.Objects.Namespaces,
			corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}})
	}
	return check(ctx, files, paths, problems, true)
}

func check(ctx context.Context, files configdir.Files, paths []string, problems func(resource.Objects) []resource.Problem,
	whole bool) (Report, error) {
	c, err := declared(ctx, files.Declarations)
	if err != nil {
		return Report{}, err
	}
	c.whole = whole
	if c.report.Resources == 0 && len(c.report.Findings) == 0 && len(files.Patches) > 0 {
		return Report{}, fmt.Errorf("nothing to check: %s: %s; %s", files.Patches[0].File, patched(files.Patches), built(files.Patches))
	}
	if c.report.Resources == 0 && len(c.report.Findings) == 0 {
		if i := slices.Index(paths, configdir.Standard); i >= 0 && len(files.Declarations) == 0 {
			return Report{}, errors.New("nothing to check: " + configdir.EmptyInput)
		} else if i >= 0 {
			paths = slices.Replace(slices.Clone(paths), i, i+1, "standard input")
		}
		return Report{},
			fmt.Errorf("nothing to check: no resource of landwaiter.dev in %s; objects of other kinds: %d", strings.Join(paths, ", "),
				c.report.Ignored)
	}
	c.refused, c.first = maps.Clone(c.wrong), len(c.report.Findings)
	for _, p := range slices.Concat(files.Problems, problems(files.Lenient())) {
		if !c.unknowable(p, files.Objects.Resources) {
			c.problem(p)
		}
	}
	c.exposures(resource.Exposures(files.Objects.Resources...))
	if len(files.Patches) > 0 {
		c.report.Findings = append(c.report.Findings,
			resource.Finding{ID: NoObject, Severity: resource.Note, File: files.Patches[0].File, Message: patched(files.Patches),
				Fix: built(files.Patches)})
	}
	c.sort()
	return c.report, nil
}

// declared collects the errors with which an API server would refuse declarations by the CRDs, and
// objects that are declared more than once.
func declared(ctx context.Context, declarations []configdir.Declaration) (*checker, error) {
	schemas := schema.Embedded()
	c := &checker{places: map[policy.ObjectRef][]configdir.Declaration{}, wrong: map[policy.ObjectRef]bool{}}
	for _, d := range declarations {
		switch {
		case d.Ignored:
			c.report.Ignored++
			c.ofRatify(d)
			continue
		case d.JSON != nil:
			c.report.Resources++
		}
		if d.Source != (policy.ObjectRef{}) {
			c.places[d.Source] = append(c.places[d.Source], d)
		}
		found, err := validated(ctx, schemas, d)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			c.add(d, f)
		}
	}
	c.duplicates()
	c.sort()
	return c, nil
}

// patched adds a finding about files that are patches, at the first of them.
func patched(patches []configdir.Patch) string {
	text := fmt.Sprintf("it is a patch of %s, so what it contains is no object", patches[0].Kustomization)
	switch more := len(patches) - 1; more {
	case 0:
	case 1:
		text += "; 1 other file is a patch too"
	default:
		text += fmt.Sprintf("; %d other files are patches too", more)
	}
	return text
}

// built says how to check objects as patches change them.
func built(patches []configdir.Patch) string {
	return "to check what kustomizations build, run landwaiter platform check " + resource.ShellWord(patches[0].Root)
}

// checker collects findings.
type checker struct {
	report Report
	places map[policy.ObjectRef][]configdir.Declaration
	wrong  map[policy.ObjectRef]bool // resources with an error of their own
	// refused are the resources that an API server refuses, as the first findings say.
	refused map[policy.ObjectRef]bool
	first   int
	// whole says that the files have every resource that one of them may name.
	whole bool
}

// sort sorts the findings by file and line.
func (c *checker) sort() {
	slices.SortStableFunc(c.report.Findings, func(a, b resource.Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Object.String(), b.Object.String()),
			strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
}

// add adds a finding about d. The line is the line of the field, unless it is given.
func (c *checker) add(d configdir.Declaration, f resource.Finding) {
	f.File, f.Object = d.File, d.Source
	f.Severity = cmp.Or(f.Severity, resource.Error)
	if f.Line == 0 {
		f.Line = d.LineOf(f.Field)
	}
	if f.Severity == resource.Error {
		c.wrong[d.Source] = true
	}
	c.report.Findings = append(c.report.Findings, f)
}

// duplicates reports each position of an object that is declared more than once.
func (c *checker) duplicates() {
	for _, places := range c.places {
		for i, d := range places {
			var others []string
			for j, other := range places {
				if i != j {
					others = append(others, fmt.Sprintf("%s:%d", other.File, other.Line))
				}
			}
			if len(others) > 0 {
				c.add(d, resource.Finding{ID: string(policy.ReasonDuplicate), Message: "it is declared again at " + strings.Join(others, ", "),
					Fix: "remove all but one"})
			}
		}
	}
}

// exposures adds notes about who else can change the trust material of correct resources.
func (c *checker) exposures(found []resource.Exposure) {
	for _, f := range found {
		for _, d := range c.places[f.Resource] {
			if !c.wrong[f.Resource] {
				c.add(d, resource.Finding{ID: TrustWithinReach, Severity: resource.Note, Field: f.Field,
					Message: strings.TrimSuffix(f.String(), "; "+f.Fix), Fix: f.Fix})
			}
		}
	}
}

// problem adds a problem of compiling, unless the resource has a better error about the same
// field. Notes about a resource with an error are dropped.
func (c *checker) problem(p resource.Problem) {
	switch p.Reason {
	case policy.ReasonDuplicate, policy.ReasonIgnored: // found already, or counted
		return
	}
	f := explain(p)
	f.Severity = c.severity(p)
	if f.Severity == resource.Note && strings.Contains(p.Message, resource.NotFetched) {
		return // no file can fix it
	}
	switch {
	case c.wrong[p.Source] && (f.Severity == resource.Note && !isMissing(p.Reason) || resource.NeedsReview(p.Reason)),
		c.refused[p.Source] && c.said(p.Source, f.Field), p.Reason == policy.ReasonUnused && c.wrongIn(p.Source.Namespace):
		return
	}
	near, misspelt := c.misspelt(p)
	switch {
	case misspelt:
		f.Fix = "did you mean " + near + "?"
	case f.Severity == resource.Note && (f.Fix == "" || isMissing(p.Reason)):
		f.Fix = c.noteFix(p)
	}
	if isMissing(p.Reason) && f.Severity != resource.Error {
		f.Message = inFiles.Replace(f.Message)
	}
	for _, d := range c.places[p.Source] {
		c.add(d, f)
	}
}

// said reports whether an API server's error about a resource is about a field, a part of it, or
// an enclosing field. Everything is part of the resource.
func (c *checker) said(source policy.ObjectRef, field string) bool {
	within := func(part, whole string) bool {
		rest, ok := strings.CutPrefix(part, whole)
		return ok && (rest == "" || whole == "" || strings.ContainsRune(".[", rune(rest[0])))
	}
	return slices.ContainsFunc(c.report.Findings[:c.first], func(f resource.Finding) bool {
		return f.Object == source && f.Severity == resource.Error && (within(field, f.Field) || within(f.Field, field))
	})
}

// severity decides whether the files are at fault. A problem that depends on another resource
// is a note: that resource has a finding, or is not among the files.
func (c *checker) severity(p resource.Problem) resource.Severity {
	switch {
	case p.Reason == policy.ReasonPublishedKey:
		return resource.Note // everyone who tries a page has it
	case c.whole && p.Reason == policy.ReasonRuleTooBroad:
		return resource.Warning // a team may decide so, but here it is the platform's decision
	case resource.NeedsReview(p.Reason):
		return resource.ReviewSeverity(p.Source, p.Reason)
	}
	switch p.Reason {
	case policy.ReasonReferenceNotReady, policy.ReasonUnreadable, policy.ReasonAccessDenied, policy.ReasonUnused, policy.ReasonAppliesNowhere,
		policy.ReasonNeverReached, policy.ReasonExpired:
		return resource.Note
	case policy.ReasonUnsatisfiable:
		if c.unsure(p.Source) {
			return resource.Note
		}
	case policy.ReasonNotFound, policy.ReasonNotDelegated:
		return c.missing(p)
	}
	return resource.Error
}

// unsure reports whether more than the files determines what meets a policy.
func (c *checker) unsure(source policy.ObjectRef) bool {
	if !c.hasVerifiers(source) {
		return !c.whole
	}
	return slices.ContainsFunc(c.report.Findings, func(f resource.Finding) bool {
		kind := strings.TrimPrefix(f.Object.Kind, "Cluster")
		return (kind == "Verifier" || kind == "TrustStore") && (f.Object.Namespace == "" || f.Object.Namespace == source.Namespace)
	})
}

// hasVerifiers reports whether the files have the Verifiers that a policy may name.
func (c *checker) hasVerifiers(source policy.ObjectRef) bool {
	return c.has("ClusterVerifier", "") || source.Namespace != "" && c.has("Verifier", source.Namespace)
}

// wrongIn reports whether a resource of a namespace has an error: then others may only seem
// unused.
func (c *checker) wrongIn(namespace string) bool {
	for ref, wrong := range c.wrong {
		if wrong && ref.Namespace == namespace {
			return true
		}
	}
	return false
}

func (c *checker) has(kind, namespace string) bool {
	for ref := range c.places {
		if ref.Kind == kind && ref.Namespace == namespace {
			return true
		}
	}
	return false
}

// noteFix says what to do about a problem that depends on more than the files.
func (c *checker) noteFix(p resource.Problem) string {
	switch {
	case p.Reason == policy.ReasonNotFound && p.Source.Kind == v1beta1.KindTenant:
		return "landwaiter tenant add creates it; if you apply the file instead, create the namespace first"
	case isMissing(p.Reason), p.Reason == policy.ReasonUnsatisfiable && !c.hasVerifiers(p.Source):
		return "the cluster must have it; landwaiter preview looks there"
	case p.Reason == policy.ReasonReferenceNotReady, p.Reason == policy.ReasonUnsatisfiable:
		return "see the resources that it names"
	case p.Reason == policy.ReasonUnused && p.Source.Kind == v1beta1.KindTrustStore:
		return "if signatures by its keys should count, name it in a Verifier; otherwise remove it"
	case p.Reason == policy.ReasonUnused:
		return "if what it verifies should count, name it in a VerificationPolicy; otherwise remove it"
	case p.Reason == policy.ReasonAppliesNowhere:
		return "the cluster must have them; otherwise, correct spec.namespaces and spec.tenants"
	}
	return ""
}

var (
	fieldFirst = regexp.MustCompile(`^((?:spec|metadata)[\w.\[\]-]*)(: | )`)
	lineFirst  = regexp.MustCompile(`^(?:\S+ |standard input |unmarshal errors: )?line (\d+):? (?:has )?`)
	// imperative begins the part of a message that says what to do.
	imperative = regexp.MustCompile(`^(add|copy|correct|delete|did|give|leave|make|move|remove|run|say|separate|set|split|use|write)\b`)
)

// explain moves field and fix out of the message of a problem.
func explain(p resource.Problem) resource.Finding {
	f := resource.Finding{ID: string(p.Reason), Message: p.Message}
	if found := fieldFirst.FindStringSubmatch(f.Message); found != nil {
		f.Field, f.Message = strings.TrimRight(found[1], "."), f.Message[len(found[0]):]
		if found[2] == " " {
			f.Message = "it " + f.Message
		}
	}
	if i := strings.LastIndex(f.Message, "; "); i >= 0 && imperative.MatchString(f.Message[i+2:]) {
		f.Message, f.Fix = f.Message[:i], f.Message[i+2:]
	}
	return f
}

// unreadable returns the finding about an object that cannot be read. The error may begin
// with a line.
func unreadable(err error) resource.Finding {
	f := explain(resource.Problem{Reason: policy.ReasonInvalid, Message: err.Error()})
	if found := lineFirst.FindStringSubmatch(f.Message); found != nil {
		if line, err := strconv.Atoi(found[1]); err == nil {
			f.Line, f.Message = line, f.Message[len(found[0]):]
		}
	}
	if key := givenTwice.FindStringSubmatch(f.Message); key != nil {
		f.Message, f.Fix = fmt.Sprintf("the key %q is given twice", key[1]), "remove one"
	}
	return f
}
