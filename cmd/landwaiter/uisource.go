package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/inspect/page"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/lint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
)

// explainTime bounds one verification of the page, as for verify.
const explainTime = 30 * time.Second

// clusterSource reads a cluster for the page as one person, with the code of the commands.
type clusterSource struct {
	flags   serviceFlags
	person  *live.Person
	schemas resource.Schemas
	config  *rest.Config // of person, which only reads
	within  string       // the namespace whose rules are checked if the person cannot list all rules
}

// own returns flags of one request: the server's settings are added to them.
func own(of serviceFlags) (*serviceFlags, error) {
	made := &serviceFlags{by: of.by, given: of.given, configDir: of.configDir}
	return made, made.parseServed()
}

// plainly returns an error without an exit code, which the page does not have.
func plainly(err error) error { return err }

// Status returns the result of status.
func (s *clusterSource) Status(ctx context.Context, namespace verify.Namespace) (live.Status, error) {
	scope := live.Scope{All: namespace == verify.Cluster}
	if !scope.All {
		scope.Namespaces = []verify.Namespace{namespace}
	}
	f, err := own(s.flags)
	if err != nil {
		return live.Status{}, err
	}
	if err := f.enforced(ctx, s.person, &scope); err != nil {
		return live.Status{}, err
	}
	return s.person.Status(ctx, scope, time.Now())
}

// Check returns the result of check.
func (s *clusterSource) Check(ctx context.Context) (page.Checked, error) {
	account, err := s.flags.by.landwaiter()
	if err != nil {
		return page.Checked{}, err
	}
	inventory, report, err := examined(ctx, s.person, s.config,
		check.Options{Namespace: account.Namespace, Within: s.within, Gatekeeper: "gatekeeper-system"}, s.schemas)
	if err != nil {
		return page.Checked{}, err
	}
	checked := page.Checked{Findings: mapped(report.Findings, pageFinding), Unchecked: mapped(report.Unchecked, unchecked)}
	if actions := inventory.Actions(); actions != nil {
		checked.Actions = map[verify.Namespace]string{}
		for name, action := range actions {
			checked.Actions[verify.Namespace(name)] = action
		}
	}
	return checked, nil
}

func pageFinding(f resource.Finding) page.Finding {
	text := f.String()
	if f.File != "" {
		text = place(f) + ": " + text
	}
	return page.Finding{ID: f.ID, Severity: string(f.Severity), Text: text, Fix: f.Fix, Command: f.Command, Keep: f.Keep,
		Down: check.Down(f.ID)}
}

// unchecked lists the checks that were not possible.
func unchecked(u resource.Unchecked) string {
	return fmt.Sprintf("%s: %s", strings.Join(u.IDs, ", "), u.Why)
}

// Explain returns the result of verify --explain.
func (s *clusterSource) Explain(ctx context.Context, namespace verify.Namespace, image string) (page.Explanation, error) {
	f, err := own(s.flags)
	if err != nil {
		return page.Explanation{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var notes bytes.Buffer
	question := live.Use{Namespace: namespace, Image: image}
	state, err := f.personState(ctx, &notes, s.person, []live.Use{question}, plainly)
	if err != nil {
		return page.Explanation{}, err
	}
	by, err := f.openRules(ctx, &notes, state)
	if err != nil {
		return page.Explanation{}, err
	}
	defer by.Close()
	return explanation(ctx, f, by, question, notes.String())
}

// explanation verifies one image.
func explanation(ctx context.Context, f *serviceFlags, by rules, q live.Use, notes string) (page.Explanation, error) {
	explained, result := (&verifyFlags{serviceFlags: *f}).explainOne(ctx, by, q, explainTime)
	var text bytes.Buffer
	if err := show(&text, explained); err != nil {
		return page.Explanation{}, err
	}
	return page.Explanation{Result: result, Took: time.Duration(explained.Took), Text: text.String(), Notes: linesOf(notes)}, nil
}

// linesOf returns the notes of a command in addition to its answer.
func linesOf(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// fieldWords are the words of the page for other namespaces.
func fieldWords() scopeWords {
	return scopeWords{"leave the field Namespace empty for the whole cluster", func(namespace string) string {
		return "enter " + namespace + " in the field Namespace, or leave the field empty"
	}}
}

// pasted matches the position of a pasted object in an error.
var pasted = regexp.MustCompile(`(?m)^standard input:(\d+): `)

// pasteError is why pasted objects cannot be used, by their lines.
func pasteError(err error) error {
	return errors.New(pasted.ReplaceAllString(err.Error(), "line $1: "))
}

// Preview returns the result of preview -f, or of preview -A.
func (s *clusterSource) Preview(ctx context.Context, namespace verify.Namespace, text string) (page.Preview, error) {
	f, err := own(s.flags)
	if err != nil {
		return page.Preview{}, err
	}
	flags := &previewFlags{service: *f}
	flags.service.files = []string{configdir.Standard}
	var notes bytes.Buffer
	change, err := flags.change(ctx, strings.NewReader(text), &notes, namespace)
	if err != nil {
		return page.Preview{}, pasteError(err)
	}
	l := &look{previewFlags: flags, stderr: &notes, progress: io.Discard, words: fieldWords(), person: s.person, change: change,
		failed: plainly}
	if err := l.all(ctx, namespace); err != nil {
		return page.Preview{}, err
	}
	return page.Preview{Rows: l.rows, Totals: live.Totals(l.rows), Missing: mapped(l.missing, live.Right.String),
		Notes: linesOf(notes.String())}, nil
}

// fileSource reads resources in files for the page.
type fileSource struct{ flags serviceFlags }

// Status returns the rules that apply in the namespaces of the files.
func (s *fileSource) Status(ctx context.Context, _ verify.Namespace) (live.Status, error) {
	objects, problems, err := configdir.Load(ctx, s.flags.configDir)
	if err != nil {
		return live.Status{}, err
	}
	problems = slices.DeleteFunc(problems, resource.Problem.IsIgnored)
	return live.StatusOf(objects, problems, time.Now()), nil
}

// Check returns the result of check with a directory.
func (s *fileSource) Check(ctx context.Context) (page.Checked, error) {
	report, err := lint.Check(ctx, "", []string{s.flags.configDir}, strings.NewReader(""), conditions.Check)
	if err != nil {
		return page.Checked{}, err
	}
	return page.Checked{Findings: mapped(report.Findings, pageFinding)}, nil
}

// Explain returns the result of verify --config-dir --explain.
func (s *fileSource) Explain(ctx context.Context, namespace verify.Namespace, image string) (page.Explanation, error) {
	f, err := own(s.flags)
	if err != nil {
		return page.Explanation{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options, err := f.Complete()
	if err != nil {
		return page.Explanation{}, err
	}
	loaded, found, err := service.Load(ctx, f.configDir, options)
	if err != nil {
		return page.Explanation{}, err
	}
	defer loaded.Close()
	var notes bytes.Buffer
	if err := f.report(&notes, namespace, found); err != nil {
		return page.Explanation{}, err
	}
	return explanation(ctx, f, rules{Service: loaded}, live.Use{Namespace: namespace, Image: image}, notes.String())
}

// errNoPreview says that files have nothing to preview.
var errNoPreview = errors.New("files have no running images to preview")

// Preview refuses: nothing runs in files.
func (s *fileSource) Preview(context.Context, verify.Namespace, string) (page.Preview, error) {
	return page.Preview{}, errNoPreview
}
