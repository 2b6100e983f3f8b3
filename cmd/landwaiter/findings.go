package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/inspect/isolation"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// printedFindings is the output of every command with findings.
type printedFindings struct {
	Findings  []printedFault     `json:"findings"`
	Unchecked []printedUnchecked `json:"unchecked"`
	Checked   printedChecked     `json:"checked"`
}

// printedChecked is what was checked in addition to a cluster.
type printedChecked struct {
	// Resources counts the resources in files, Ignored the objects of kinds that Landwaiter does
	// not use.
	Resources int `json:"resources,omitempty"`
	Ignored   int `json:"ignored,omitempty"`
	// Kustomizations counts those of a tree, Clusters are the folders at which Flux starts.
	Kustomizations int      `json:"kustomizations,omitempty"`
	Clusters       []string `json:"clusters,omitempty"`
	// Cases are what --isolation tried.
	Cases []printedCase `json:"cases,omitempty"`
}

// whole replaces nil lists by empty ones.
func (p printedFindings) whole() printedFindings {
	p.Findings, p.Unchecked = append([]printedFault{}, p.Findings...), append([]printedUnchecked{}, p.Unchecked...)
	return p
}

// exit ends a command: notes only count if they are requested.
func (p printedFindings) exit(strict bool) error {
	return program.Answered(slices.ContainsFunc(p.Findings, func(f printedFault) bool { return strict || f.Severity != resource.Note }),
		slices.ContainsFunc(p.Unchecked, func(u printedUnchecked) bool { return !u.Unpublished }),
		`not everything could be checked: see the lines "not checked"`)
}

// show prints a line for each finding in a file, as compilers do, and a paragraph for each other.
// It does not wrap commands, so that they can be copied.
func (p printedFindings) show(s *screen) {
	showCases(s, p.Checked.Cases)
	for _, f := range p.Findings {
		if f.File != "" {
			s.line("%s: %s %s: %s", place(f), f.Severity, f.ID, f.Remedied())
			continue
		}
		s.wrapped("", "      ", fmt.Sprintf("%s %s: %s.", f.Severity, f.ID, f)) // deeper than the following lines, which no message may imitate
		for _, line := range [][2]string{{"fix:", f.Fix}, {"fix:", f.Command}, {"permanent fix:", f.Keep}} {
			if line[1] != "" {
				s.line("  %s %s", line[0], line[1])
			}
		}
		s.line("")
	}
	lacking, unknown := false, sets.New[string]()
	for _, u := range p.Unchecked {
		lacking = lacking || u.Missing != "" && u.Role == ""
		unknown.Insert(u.IDs...)
		s.line("not checked: %s:", u.Why)
		s.wrapped("    ", "    ", strings.Join(u.IDs, ", "))
	}
	if lacking {
		s.line("Only those who look after the installation can check this: a cluster admin gives them ClusterRole landwaiter-checker, which " +
			"reads the rules of all teams.")
	}
	var checked []string
	for _, counted := range []struct {
		n    int
		noun string
	}{{p.Checked.Resources, "resource"}, {p.Checked.Kustomizations, "kustomization"}, {len(p.Checked.Cases), "case"}} {
		if counted.n > 0 {
			checked = append(checked, amount(counted.n, counted.noun)+" checked")
		}
	}
	if p.Checked.Ignored > 0 {
		checked = append(checked, amount(p.Checked.Ignored, "object")+" of other kinds")
	}
	checked = append(checked, amount(len(p.Findings), "finding"))
	if len(checked) == 1 || unknown.Len() > 0 { // files are always checked completely
		checked = append(checked, amount(unknown.Len(), "kind")+" not checked")
	}
	s.line("%s", strings.Join(checked, ", "))
}

// place is the position of a finding in files.
func place(f printedFault) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// printableCases returns the cases with empty lists in place of none.
func printableCases(results []isolation.Result) []printedCase {
	cases := append([]printedCase{}, results...)
	for i := range cases {
		cases[i].By = append([]string{}, cases[i].By...)
	}
	return cases
}

// showCases shows one row for each case and team that held, with what refused.
func showCases(s *screen, cases []printedCase) {
	if len(cases) > 0 {
		s.row("CASE", "TENANT", "WHAT WAS TRIED, AND WHO REFUSED")
	}
	for i := 0; i < len(cases); {
		first := cases[i]
		var by []string
		held := true
		for ; i < len(cases) && cases[i].Case == first.Case && cases[i].Tenant == first.Tenant; i++ {
			held = held && cases[i].Outcome == isolation.Held
			for _, who := range cases[i].By {
				if !slices.Contains(by, who) {
					by = append(by, who)
				}
			}
		}
		if held {
			s.row(first.Case, teamsOf(first), first.Tries+": "+strings.Join(by, ", "))
		}
	}
	if len(cases) == 0 {
		return
	}
	count := map[isolation.Outcome]int{}
	for _, c := range cases {
		count[c.Outcome]++
	}
	s.line("%d held, %d not held, %d not tried; nothing was written", count[isolation.Held], count[isolation.NotHeld],
		count[isolation.NotTried])
	s.line("")
}

// teamsOf names who tries to reach whom.
func teamsOf(c printedCase) string {
	switch {
	case c.Tenant == "":
		return "-"
	case c.Other == "":
		return c.Tenant
	}
	return c.Tenant + " > " + c.Other
}
