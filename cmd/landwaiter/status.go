package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/cmd/internal/program"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// printedStatus is the output of status.
type printedStatus struct {
	Namespaces []printedNamespace `json:"namespaces"`
	Resources  []printedAttention `json:"resources"`
	Notes      []string           `json:"notes"`
	NotShown   []string           `json:"notShown"`

	rights []live.Right // of NotShown
	brief  bool         // whether the table only has namespaces that need attention, and totals of the others
}

// statusFlags are the flags of status.
type statusFlags struct {
	by            person
	all, problems bool
}

func newStatus(by person) *cobra.Command {
	f := statusFlags{by: by}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show denied images, running images that fail verification, and the rules that apply",
		Long: `Status reads the reports and resources of a namespace with your permissions, and changes nothing.
It shows running images that fail verification, and images of new pods that failed it in the last
seven days, with the reason and the fix. It shows registries about whose images Landwaiter could
not decide in the last hour, such as in an outage, how often and since when. It also shows
break-glass, exceptions in use and their expiry, resources that are not ready, not effective, need
a review or expire soon, and the level that applies for each kind. If you may read
Landwaiter's Lease and it is not renewed, a note says that Landwaiter may not answer, and how old
the reports are.

With -A, status shows the namespaces that need attention, and totals of the others. With
--problems, it shows only what needs attention. Status ignores problems in a namespace that is
exempt from Gatekeeper.

"serve --reports" writes the reports. Status ignores reports that anyone else has changed. To read
the reports of a namespace, you need the role view, edit or admin there. If you lack permissions,
the last lines list what is not shown.

Exit codes (64 and 69: see landwaiter --help):
  0  nothing needs attention
  1  something needs attention
  2  something could not be read, or the namespace does not exist`,
		Example: `  landwaiter status
  landwaiter status --namespace iris-green-web
  landwaiter status -A --problems
  landwaiter status -A -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	registerAll(cmd, &f.all)
	cmd.Flags().BoolVar(&f.problems, "problems", false, "show only what needs attention")
	uses(cmd, time.Minute, flagOutput, flagAccount)
	return cmd
}

func (f *statusFlags) run(cmd *cobra.Command) error {
	server := serviceFlags{by: f.by}
	if err := server.parseServed(); err != nil {
		return err
	}
	config, namespace, err := f.by.scope(f.all)
	if err != nil {
		return err
	}
	ctx, cancel, failed := bounded(cmd.Context(), config, f.by.within(cmd))
	defer cancel()
	reader, err := live.New(config, schema.Embedded())
	if err != nil {
		return program.Failed(err)
	}
	scope := live.Scope{All: namespace == verify.Cluster}
	if !scope.All {
		scope.Namespaces = []verify.Namespace{namespace}
	}
	if err := server.enforced(ctx, reader, &scope); err != nil {
		return failed(err)
	}
	status, err := reader.Status(ctx, scope, time.Now())
	if err != nil {
		return failed(err)
	}
	printed := printableStatus(status)
	printed.brief = f.all
	if f.problems {
		printed = printed.problems()
	}
	if err := f.by.output.print(cmd, printed); err != nil {
		return err
	}
	return statusExit(status)
}

// statusExit ends the command: known problems count more than unreadable objects.
func statusExit(status live.Status) error {
	return program.Answered(status.NeedsAttention(), status.Unknown() || len(status.Missing) > 0,
		`this status is incomplete: see the lines "note" and "not shown"`)
}

func printableStatus(s live.Status) printedStatus {
	return printedStatus{Namespaces: append([]printedNamespace{}, s.Namespaces...), Resources: append([]printedAttention{}, s.Resources...),
		Notes: s.Notes(), NotShown: mapped(s.Rights, live.Right.String), rights: s.Rights}
}

// problems keeps what needs attention.
func (p printedStatus) problems() printedStatus {
	p.Namespaces = slices.DeleteFunc(slices.Clone(p.Namespaces), func(n printedNamespace) bool { return !n.NeedsAttention() })
	p.Resources = slices.DeleteFunc(slices.Clone(p.Resources), func(a printedAttention) bool { return !a.NeedsAttention() })
	p.brief = len(p.Namespaces)+len(p.Resources) == 0
	return p
}

func (p printedStatus) show(s *screen) {
	var others []printedNamespace
	shown := 0
	for _, n := range p.Namespaces {
		if p.brief && !n.NeedsAttention() {
			others = append(others, n)
			continue
		}
		if shown++; shown > 1 {
			s.line("")
		}
		showNamespace(s, n)
	}
	if p.brief {
		showOthers(s, others, shown+len(p.Resources))
	}
	if len(p.Resources) > 0 {
		s.section("RESOURCES OF THE CLUSTER")
		showAttention(s, p.Resources)
	}
	for _, note := range p.Notes {
		s.line("note: %s", note)
	}
	for _, missing := range live.Grouped(p.rights) {
		s.wrapped("", "    ", "not shown: "+missing)
	}
}

func showAttention(s *screen, list []printedAttention) {
	s.row("RESOURCE", "CONDITION", "REASON", "MESSAGE")
	for _, a := range list {
		s.row(a.Source, live.ConditionShown(a.Condition, a.Partly), a.Reason, cmp.Or(a.Message, "-"))
	}
}

// showOthers shows totals of the namespaces without problems. Shown counts those with problems.
func showOthers(s *screen, others []printedNamespace, shown int) {
	if len(others) == 0 {
		if shown == 0 {
			s.line("nothing needs attention")
		}
		return
	}
	counts := map[string]int{}
	var exempt, unverified []string
	var allowed []unverifiedRow
	var running []printedNamespace // of exempt namespaces with images that fail
	for _, n := range others {
		if n.Exempt {
			if exempt = append(exempt, string(n.Namespace)); len(n.Running) > 0 {
				running = append(running, n)
			}
			continue
		}
		for result, count := range n.Counts {
			counts[result] += count
		}
		for _, r := range n.Unverified {
			allowed = append(allowed, unverifiedRow{string(n.Namespace), r})
		}
		if count := n.Counts[v1beta1.ReportSkip]; count > 0 {
			unverified = append(unverified, fmt.Sprintf("%s (%d)", n.Namespace, count))
		}
	}
	if shown > 0 {
		s.line("")
	}
	s.line("NAMESPACES WITHOUT PROBLEMS: %d", len(others))
	s.row("running", countsOf(counts))
	if len(unverified) > 0 {
		s.row("not verified", strings.Join(unverified, ", ")+": rules allow these images without a look at signatures")
	}
	if len(exempt) > 0 {
		s.row("exempt", strings.Join(exempt, ", ")+": Gatekeeper "+live.DoesToExempt)
	}
	showUnverified(s, allowed, true)
	if len(running) > 0 {
		s.section("RUNS IN EXEMPT NAMESPACES")
		s.row("NAMESPACE", "RESULT", "WORKLOAD", "IMAGE")
	}
	for _, n := range running {
		for _, r := range n.Running {
			s.row(string(n.Namespace), r.Result, cmp.Or(r.Workload, "-"), r.Image)
		}
	}
}

// countsOf shows the number of containers with each result.
func countsOf(of map[string]int) string {
	var counts []string
	for _, result := range []string{v1beta1.ReportPass, v1beta1.ReportWarn, v1beta1.ReportSkip, v1beta1.ReportError, v1beta1.ReportFail} {
		if count := of[result]; count > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count, cmp.Or(map[string]string{v1beta1.ReportSkip: "not verified"}[result], result)))
		}
	}
	return cmp.Or(strings.Join(counts, ", "), "-")
}

func showNamespace(s *screen, n printedNamespace) {
	s.line("NAMESPACE %s", n.Namespace)
	if n.BreakGlass != nil {
		s.row("break-glass", n.BreakGlass.String())
	}
	s.row("running", countsOf(n.Counts))
	if does := n.GatekeeperDoes(); does != "" {
		s.row("gatekeeper", does)
	}
	var unknown []string
	for _, c := range n.Rules {
		if c.Level == live.LevelUnknown {
			if c.Kind != v1beta1.KindClusterVerificationPolicy { // those are mandatory
				unknown = append(unknown, c.Kind)
			}
			continue
		}
		s.row(c.Kind, levelOf(c)+": "+
			cmp.Or(strings.Join(mapped(c.Applied, func(ref printedRef) string { return ref.String() + unusedIn(n, ref) }), ", "), c.Why))
	}
	if len(unknown) > 0 {
		s.row("not known", strings.Join(unknown, ", ")+": you cannot read all resources that may apply")
	}
	mandatory := cmp.Or(strings.Join(n.Mandatory, ", "), "-")
	if !n.Knows(v1beta1.KindClusterVerificationPolicy) {
		mandatory = "not known"
	}
	s.row("mandatory", mandatory)
	for _, c := range n.Contacts {
		s.row("ask about", c.Of.String()+": "+c.Contact)
	}
	showUndecided(s, n)
	showImages(s, n)
	showUnverified(s, mapped(n.Unverified, func(r printedRunning) unverifiedRow { return unverifiedRow{string(n.Namespace), r} }), false)
	if len(n.Exceptions) > 0 {
		s.section("EXCEPTIONS IN USE")
		s.row("EXCEPTION", "ENDS", "WORKLOAD", "IMAGE")
	}
	for _, e := range n.Exceptions {
		s.row(e.Exception, cmp.Or(e.Ends, "-"), cmp.Or(e.Workload, "-"), e.Image)
	}
	if len(n.Resources) > 0 {
		s.section("RESOURCES")
		showAttention(s, n.Resources)
	}
}

// showUndecided shows the registries with undecided images.
func showUndecided(s *screen, n printedNamespace) {
	if len(n.Undecided) > 0 {
		s.section("UNDECIDED IN THE LAST HOUR")
	}
	for _, u := range n.Undecided {
		s.line("%s", u.Of())
		if u.Over { // its fix is no longer relevant
			showDetails(s, u.When(), policy.Objection{Reason: u.Reason})
			continue
		}
		when := u.When()
		if u.Image != "" {
			when += "; last image " + u.Image
		}
		showDetails(s, when, policy.Objection{Reason: u.Reason, Remediation: u.Remediation, Command: u.Command, Contact: u.Contact})
	}
}

// showImages shows images in blocks: the fix is often a command to copy.
func showImages(s *screen, n printedNamespace) {
	if len(n.Running) > 0 {
		s.section("RUNS")
	}
	for _, r := range n.Running {
		s.line("%s %s: %s", r.Result, cmp.Or(r.Workload, "-"), r.Image)
		when := "since " + cmp.Or(r.Since, "an unknown time")
		if r.Looked != "" {
			when += "; last looked at " + r.Looked + " (a newer signature shows with the next pod, or the next look)"
		}
		if r.ExemptImage != "" {
			when += "; Gatekeeper admits it without asking Landwaiter, because exemptImages of the constraint has " + r.ExemptImage
		}
		showDetails(s, when, policy.Objection{Reason: r.Reason, Remediation: r.Remediation, Command: r.Command, Contact: r.Contact})
	}
	if len(n.Denied) > 0 {
		s.section("FAILED VERIFICATION IN THE LAST SEVEN DAYS")
	}
	for _, d := range n.Denied {
		s.line("%s", cmp.Or(d.Image, "(other images)"))
		when := amount(d.Count, "time") + ", last " + d.Last
		if d.Allowed != "" { // its cause is no longer relevant
			s.line("    %s; allowed by now, and runs since %s", when, d.Allowed)
			continue
		}
		if len(d.Workloads) > 0 {
			when += "; in " + strings.Join(d.Workloads, ", ")
		}
		showDetails(s, when, policy.Objection{Reason: d.Reason, Remediation: d.Remediation, Command: d.Command, Contact: d.Contact})
	}
}

// showDetails shows the details of an image below it.
func showDetails(s *screen, when string, d policy.Objection) {
	s.line("    %s", when)
	if d.Reason != "" {
		s.wrapped("    ", "    ", d.Reason)
	}
	showRemedy(s, "    ", d)
}

// showRemedy shows the contact and the fix. A command is not wrapped, and nothing follows it, so that it
// can be copied.
func showRemedy(s *screen, indent string, d policy.Objection) {
	if d.Contact != "" {
		s.line("%sAsk: %s", indent, d.Contact)
	}
	switch {
	case d.Remediation != "":
		s.wrapped(indent+policy.FixLead(d.Remediation, d.Command), indent, d.Remediation)
		if d.Command != "" {
			s.line("%s%s", indent, d.Command)
		}
	case d.Command != "":
		s.line("%s%s%s", indent, policy.FixLead("", d.Command), d.Command)
	}
}
