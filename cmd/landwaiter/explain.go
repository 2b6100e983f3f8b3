package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// printedExplanation is the output of verify --explain for one image.
type printedExplanation struct {
	printedResult
	Resources []printedChoice `json:"resources"`
	// Locations lists every repository that was searched for evidence.
	Locations []printedLocation `json:"locations"`
	// Origin is set with --compare-origin.
	Origin     *printedOrigin `json:"origin,omitempty"`
	Generation string         `json:"configHash"`
	Stages     []printedStage `json:"stages"`
	Took       duration       `json:"took"`
}

// printedExplanations is the output of verify --explain.
type printedExplanations struct {
	Results []printedExplanation `json:"results"`
}

func (x printedExplanations) show(s *screen) {
	for i, e := range x.Results {
		if i > 0 {
			s.line("")
		}
		e.show(s)
	}
}

// explainAll verifies images, one after the other, each within timeout, and returns the explanation of each verdict.
// Invalid references are denied, as by the server.
func (f *verifyFlags) explainAll(ctx context.Context, by rules, questions []live.Use,
	timeout time.Duration) (printedExplanations, []verify.Result) {
	all := printedExplanations{Results: []printedExplanation{}}
	var results []verify.Result
	for _, q := range questions {
		e, result := f.explainOne(ctx, by, q, timeout)
		e.Image, e.Used = q.Image, q.Owners
		all.Results, results = append(all.Results, e), append(results, result)
	}
	return all, results
}

// explainOne verifies one image and returns the explanation.
func (f *verifyFlags) explainOne(ctx context.Context, by rules, q live.Use, timeout time.Duration) (printedExplanation, verify.Result) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	snapshot := by.Set().Snapshot()
	began := time.Now()
	result := by.verifyAll(ctx, []live.Use{q})[0]
	took := time.Since(began)
	e := printedExplanation{printedResult: printable(q.Image, result), Resources: live.Choices(snapshot, q.Namespace),
		Locations:  mapped(result.Looked, printableLocation),
		Generation: snapshot.For(q.Namespace).Generation, Stages: mapped(result.Stages, printableStage), Took: duration(took)}
	if ref, err := image.Parse(q.Image); f.compare && err == nil {
		e.Origin = printableOrigin(live.CompareOrigin(ctx, snapshot, q.Namespace, ref))
	}
	return e, result
}

// verdict returns the part of a verdict with the denials and the fix.
func (r printedResult) verdict() policy.Verdict {
	return policy.Verdict{Policy: r.Policy, Reason: r.Reason, Remediation: r.Remediation, Command: r.Command, Contact: r.Contact,
		Others: r.Others, More: r.More}
}

// text returns the denials and the fix, for a table.
func (r printedResult) text() string { return r.verdict().Text() }

// showRemedies shows the contact and the fix of each denial, with its policy if there are several.
func (e printedExplanation) showRemedies(s *screen) {
	all := e.verdict().Objections()
	for _, d := range all {
		if d.Remediation+d.Command+d.Contact == "" {
			continue
		}
		if len(all) > 1 {
			s.line("%s", d.Policy)
		}
		showRemedy(s, "", d)
		s.line("")
	}
}

func (e printedExplanation) show(s *screen) {
	s.row("image", e.Image)
	s.row("digest", e.Digest)
	s.row("namespace", cmp.Or(e.Namespace, "(none: cluster resources only)"))
	s.row("verdict", e.headline())
	s.row("reason", e.Reason)
	for _, other := range e.Others {
		s.row("also", other.Reason)
	}
	if e.More > 0 {
		s.row("also", fmt.Sprintf("%d more", e.More))
	}
	s.row("config hash", fmt.Sprintf("%.12s", e.Generation))
	s.line("")
	e.showRemedies(s)
	s.line("RESOURCES")
	s.row("KIND", "LEVEL", "APPLIED", "WHY")
	for _, c := range e.Resources {
		s.row(c.Kind, levelOf(c), cmp.Or(strings.Join(mapped(c.Applied, printedRef.String), ", "), "-"), c.Why)
	}
	if len(e.Locations) > 0 {
		s.section("LOCATIONS")
		s.row("REPOSITORY", "ROLE", "IMAGE", "MANIFESTS", "TO CHECK", "NOTE")
	}
	for _, l := range e.Locations {
		s.row(l.Repository, l.Role, short(l.Digest), l.Manifests, l.Signatures, l.note())
	}
	s.section("FOUND")
	s.row("VERIFIER", "RESULT", "EVIDENCE", "MESSAGE")
	for _, f := range e.Findings {
		s.row(f.by(), f.Result, short(f.Digest), f.Message)
	}
	if len(e.Findings) == 0 {
		s.row("-", "-", "-", "no signature was looked for; see the reason")
	}
	s.section("STAGES")
	s.row("STAGE", "TOOK", "OF")
	for _, stage := range e.Stages {
		s.row(stage.Name, stage.Duration, stage.Detail)
	}
	s.row("total", e.Took, "")
	if e.Origin == nil {
		return
	}
	s.section("COMPARED WITH %s", e.Origin.Repository)
	for _, said := range slices.Concat(e.Origin.Said, e.Origin.Missing) {
		s.line("%s", said)
	}
}
