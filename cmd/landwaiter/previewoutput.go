package main

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// printedPreview is the output of preview.
type printedPreview struct {
	// Images are those whose verdict would change or is unknown, and those that an exception of the change
	// names; with --all every one.
	Images []printedChange `json:"images"`
	Totals []printedTotal  `json:"totals"`
	// Missing are permissions to list pods and workloads that the person lacks: images may be
	// missing.
	Missing []string `json:"missing"`
	// Losses are rules that would no longer judge images that they judge now, even if no verdict changes.
	Losses     []live.Loss `json:"losses"`
	MoreLosses int         `json:"moreLosses,omitempty"`
	Breaks     int         `json:"breaks"`  // images that would be denied and are not denied now
	Unknown    int         `json:"unknown"` // images with an unknown verdict
}

// printedChange is one image of a namespace.
type printedChange struct {
	Namespace string        `json:"namespace"`
	Image     string        `json:"image"`
	Used      []string      `json:"used"`
	Pods      int           `json:"pods"`
	From      printedAnswer `json:"from"`
	To        printedAnswer `json:"to"`
}

// printedAnswer is the verdict on an image with the current or the previewed resources.
type printedAnswer struct {
	Answer      verify.Answer     `json:"answer"`
	Policy      printedRef        `json:"policy,omitzero"`
	Exception   *printedException `json:"exception,omitempty"`
	Reason      string            `json:"reason"`
	Warning     string            `json:"warning,omitempty"`
	Remediation string            `json:"remediation,omitempty"`
	Command     string            `json:"command,omitempty"`
	Contact     string            `json:"contact,omitempty"`
	Others      []printedOther    `json:"others,omitempty"`
	More        int               `json:"more,omitempty"`
}

func printablePreview(rows []live.Row, missing []live.Right, all bool) printedPreview {
	p := printedPreview{Images: []printedChange{}, Missing: mapped(missing, live.Right.String), Totals: live.Totals(rows)}
	p.Losses, p.MoreLosses = live.Losses(rows)
	for _, row := range rows {
		if row.Breaks() {
			p.Breaks++
		}
		if row.Unknown() {
			p.Unknown++
		}
		if all || row.Shows() {
			p.Images = append(p.Images, printedChange{Namespace: string(row.Namespace), Image: row.Image, Used: append([]string{}, row.Owners...),
				Pods: row.Pods, From: printableAnswer(row.Before), To: printableAnswer(row.After)})
		}
	}
	return p
}

func printableAnswer(r verify.Result) printedAnswer {
	v := r.Verdict
	return printedAnswer{Answer: live.AnswerOf(r), Policy: v.Policy, Exception: printableException(r), Reason: v.Reason, Warning: v.Warning,
		Remediation: v.Remediation,
		Command:     v.Command, Contact: v.Contact, Others: v.Others, More: v.More}
}

// text returns the reason and the fix, for a table.
func (a printedAnswer) text() string {
	text := a.Reason
	if a.Answer == verify.AnswerWarned {
		text = a.Warning
	}
	return policy.Verdict{Policy: a.Policy, Reason: text, Remediation: a.Remediation, Command: a.Command, Contact: a.Contact, Others: a.Others,
		More: a.More}.Text()
}

// why explains why the verdict would change: the reason of the new one, or of the old one if
// the new one allows.
func (c printedChange) why() string {
	switch {
	case c.From.Answer == live.Unknown && c.To.Answer != verify.AnswerDenied:
		return c.From.text()
	case c.To.Answer == verify.AnswerAllowed && c.From.Answer != verify.AnswerAllowed:
		return c.To.text() + " (now: " + c.From.text() + ")"
	}
	return c.To.text()
}

func (p printedPreview) show(s *screen) {
	switch {
	case len(p.Totals) == 0 && len(p.Missing) > 0:
		s.line("No image was verified.")
	case len(p.Totals) == 0:
		s.line("No image was verified: none runs there.")
	case len(p.Images) == 0:
		s.line("No verdict would change.")
	default:
		s.row("NAMESPACE", "USED BY", "IMAGE", "NOW", "THEN", "WHY")
	}
	for _, c := range p.Images {
		s.row(c.Namespace, used(live.Use{Owners: c.Used, Pods: c.Pods}), c.Image,
			strings.ToUpper(string(c.From.Answer)), strings.ToUpper(string(c.To.Answer)), c.why())
	}
	if len(p.Losses) > 0 {
		s.line("")
	}
	for _, loss := range p.Losses {
		s.line("%s", loss)
	}
	if p.MoreLosses > 0 {
		s.line("and %d more rules", p.MoreLosses)
	}
	if len(p.Totals) > 0 {
		s.line("")
		s.row("NAMESPACE", "IMAGES", "ALLOWED", "WARNED", "DENIED", "UNKNOWN", "NEWLY DENIED")
	}
	for _, t := range p.Totals {
		cells := []any{t.Namespace, t.Images}
		for _, answer := range []verify.Answer{verify.AnswerAllowed, verify.AnswerWarned, verify.AnswerDenied, live.Unknown} {
			cells = append(cells, moved(t.Before[answer], t.After[answer]))
		}
		s.row(append(cells, t.Breaks)...)
	}
	for _, right := range p.Missing {
		s.line("")
		s.line("There may be more images: %s", right)
	}
}

// moved shows a current and a previewed number.
func moved(from, to int) string {
	if from == to {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%d -> %d", from, to)
}

// exit ends the command: known breakages override unknown verdicts.
func (p printedPreview) exit() error {
	return program.Answered(p.Breaks > 0, p.Unknown > 0 || len(p.Missing) > 0,
		"this preview is incomplete: some images could not be verified, or you cannot read them")
}
