package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// counts are the numbers of containers in some namespaces, by verdict.
type counts struct {
	Running, Verified, Unverified, Warned, ByException, Undecided, Fails int
	// LeftOut counts the results that did not fit into the reports: Running does not include
	// them.
	LeftOut int
	// Denied counts the images of new pods that failed verification in the last seven days and do not run now.
	Denied int
	// Unreached counts the registries whose images are undecided.
	Unreached int
	// Missing says why the numbers are unknown, "" if they are known: zeros would look as if
	// nothing ran. Unknown counts the namespaces without numbers, which are missing in sums.
	Missing string
	Unknown int
}

// counted counts a namespace. A warning because of an exception counts as allowed by
// exception.
func counted(n live.NamespaceStatus) (c counts) {
	switch {
	case n.Unread:
		c.Missing = "reports are not readable"
	case !n.Reported:
		c.Missing = "no report"
	}
	if c.Missing != "" {
		c.Unknown = 1
	}
	c.LeftOut = n.LeftOut
	for _, r := range n.All {
		c.Running++
		switch verdictOf(r) {
		case verdictAllowed:
			c.Verified++
		case verdictUnverified:
			c.Unverified++
		case verdictWarned:
			c.Warned++
		case verdictByException:
			c.ByException++
		case verdictUndecided:
			c.Undecided++
		default:
			c.Fails++
		}
	}
	for _, d := range n.Denied {
		if d.Allowed == "" {
			c.Denied++
		}
	}
	for _, u := range n.Undecided {
		if !u.Over {
			c.Unreached++
		}
	}
	return c
}

// plus adds counts. Missing is only set if both are missing.
func (c counts) plus(o counts) counts {
	sum := counts{Running: c.Running + o.Running, Verified: c.Verified + o.Verified, Unverified: c.Unverified + o.Unverified,
		LeftOut: c.LeftOut + o.LeftOut,
		Warned:  c.Warned + o.Warned, ByException: c.ByException + o.ByException, Undecided: c.Undecided + o.Undecided, Fails: c.Fails + o.Fails,
		Denied: c.Denied + o.Denied, Unreached: c.Unreached + o.Unreached, Unknown: c.Unknown + o.Unknown}
	if c.Missing != "" && o.Missing != "" {
		sum.Missing = c.Missing
	}
	return sum
}

// trouble counts problems that need action.
func (c counts) trouble() int { return c.Fails + c.Undecided + c.Denied + c.Unreached }

// compare orders rows: first those that need action, then those with unknown numbers.
func (c counts) compare(o counts) int {
	return cmp.Or(cmp.Compare(o.trouble(), c.trouble()), cmp.Compare(min(o.Unknown, 1), min(c.Unknown, 1)))
}

// The verdicts on running images.
const (
	verdictAllowed     = "allowed"
	verdictUnverified  = "allowed (not verified)"
	verdictWarned      = "warned"
	verdictByException = "excepted"
	verdictUndecided   = "undecided"
	verdictFails       = "fails" // Gatekeeper decides whether that stops a pod
)

// verdictOf names the result of a report as commands name verdicts.
func verdictOf(r live.Running) string {
	switch {
	case r.Result == "error":
		return verdictUndecided
	case r.Exception != "" && r.Result != "fail":
		return verdictByException
	case r.Result == "pass":
		return verdictAllowed
	case r.Result == "skip":
		return verdictUnverified
	case r.Result == "warn":
		return verdictWarned
	}
	return verdictFails
}

// The stages of enforcement, the weakest first.
const (
	stageExempt  = "exempt"
	stageNone    = "not asked"
	stageDryRun  = "dryrun"
	stageWarn    = "warn"
	stageDeny    = "deny"
	stageUnknown = "unknown"
)

// stageOf returns what happens to a pod with an image that is not allowed: the weaker of
// Gatekeeper's action and the policies' action. Whole says that Gatekeeper's action is known.
func stageOf(n live.NamespaceStatus, actions map[verify.Namespace]string) (stage string, whole bool) {
	if n.Exempt {
		return stageExempt, true
	}
	policies := policyStage(n)
	action, whole := actions[n.Namespace]
	if !whole || policies == stageUnknown {
		return policies, false
	}
	order := []string{stageNone, stageDryRun, stageWarn, stageDeny}
	return order[max(min(slices.Index(order, action), slices.Index(order, policies)), 0)], true
}

// policyStage returns stageWarn if policies apply and all of them only warn.
func policyStage(n live.NamespaceStatus) string {
	if !n.Knows(v1beta1.KindVerificationPolicy) {
		return stageUnknown
	}
	warns := false
	for _, l := range n.Levels {
		for _, p := range l.Resources {
			if p.Applies && p.Kind == "VerificationPolicy" {
				if !p.Warns {
					return stageDeny
				}
				warns = true
			}
		}
	}
	switch {
	case warns && !n.Knows(v1beta1.KindClusterVerificationPolicy):
		return stageUnknown // a mandatory policy may deny
	case warns:
		return stageWarn
	}
	return stageDeny
}

// remedy is the contact and the fix. Command is separate, so that it can be copied.
type remedy struct{ Ask, Advice, Command string }

// Lead precedes the advice, or the command without any.
func (r remedy) Lead() string { return strings.TrimSpace(policy.FixLead(r.Advice, r.Command)) }

// remedyOf returns the remedy of a verdict or a part of it.
func remedyOf(d policy.Objection) remedy { return remedy{d.Contact, d.Remediation, d.Command} }

// runningRow is one running container.
type runningRow struct {
	Namespace, Workload, Container, Image, Href, Verdict, Since, Looked string
	Reason                                                              long
	Fix                                                                 remedy
	Signers                                                             []string
	Exception, ExceptionEnds                                            string
}

// runningRows lists containers, those that need attention first.
func runningRows(n live.NamespaceStatus) []runningRow {
	order := []string{verdictFails, verdictUndecided, verdictWarned, verdictByException, verdictUnverified, verdictAllowed}
	rows := []runningRow{}
	for _, r := range n.All {
		rows = append(rows,
			runningRow{Namespace: string(n.Namespace), Workload: cmp.Or(r.Workload, "-"), Container: r.Container, Image: r.Image,
				Href:    imageHref(n.Namespace, r.Image),
				Verdict: verdictOf(r), Since: r.Since, Looked: r.Looked, Reason: folded(r.Reason), Fix: remedy{r.Contact, r.Remediation, r.Command},
				Signers: signersOf(r), Exception: r.Exception, ExceptionEnds: r.ExceptionEnds})
	}
	slices.SortStableFunc(rows, func(a, b runningRow) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Container, b.Container))
	})
	return rows
}

// signersOf returns the names of an image's signers. A report without them is from an older
// Landwaiter, or about an image that needs no signature.
func signersOf(r live.Running) []string {
	if r.Signers == "" {
		return nil
	}
	return strings.Split(r.Signers, "; ")
}

// denialRow is one image that was denied.
type denialRow struct {
	Namespace, Image, Href, When, Workloads, Note string
	Allowed, Verdict                              string // since when it runs, if it does, and its current verdict
	Reason                                        long
	Fix                                           remedy
}

func denialRows(n live.NamespaceStatus) []denialRow {
	rows := []denialRow{}
	verdicts := map[string]string{}
	for _, r := range n.All {
		verdicts[live.Normalised(r.Image)] = verdictOf(r)
	}
	for _, d := range n.Denied {
		times := "times"
		if d.Count == 1 {
			times = "time"
		}
		row := denialRow{Namespace: string(n.Namespace), Image: cmp.Or(d.Image, "(other images)"),
			When:      fmt.Sprintf("%d %s, last %s", d.Count, times, d.Last),
			Workloads: strings.Join(d.Workloads, ", "), Allowed: d.Allowed, Verdict: cmp.Or(verdicts[live.Normalised(d.Image)], verdictAllowed),
			Note: d.Note, Reason: folded(d.Reason), Fix: remedy{d.Contact, d.Remediation, d.Command}}
		if d.Image != "" {
			row.Href = imageHref(n.Namespace, d.Image)
		}
		rows = append(rows, row)
	}
	return rows
}

// undecidedRow is a registry whose images were undecided.
type undecidedRow struct {
	Of, When, Image, Href string
	Over                  bool
	Reason                long
	Fix                   remedy
}

func undecidedRows(n live.NamespaceStatus) []undecidedRow {
	rows := []undecidedRow{}
	for _, u := range n.Undecided {
		row := undecidedRow{Of: u.Of(), When: u.When(), Image: u.Image, Over: u.Over, Reason: folded(u.Reason)}
		if u.Image != "" {
			row.Href = imageHref(n.Namespace, u.Image)
		}
		if !u.Over {
			row.Fix = remedy{u.Contact, u.Remediation, u.Command}
		}
		rows = append(rows, row)
	}
	return rows
}

// endRow is an expiry.
type endRow struct {
	What, Source, At, In, Why string
	Href                      string
	Over, Soon                bool
}

// endRows lists expiries, the next one first.
func endRows(ends []live.End, now time.Time, keep func(live.End) bool) []endRow {
	rows := []endRow{}
	for _, e := range ends {
		if !keep(e) {
			continue
		}
		left := e.At.Sub(now)
		row := endRow{What: e.What, Source: e.Source.String(), At: e.At.UTC().Format(time.RFC3339), In: countdown(left), Why: e.Why,
			Over: left <= 0, Soon: left < 30*24*time.Hour}
		if at := cmp.Or(e.Source.Namespace, map[bool]string{true: e.Source.Name}[e.Source.Kind == "Namespace"]); at != "" {
			row.Href = namespaceHref(verify.Namespace(at))
		}
		rows = append(rows, row)
	}
	return rows
}

// countdown returns a remaining time in its largest unit.
func countdown(left time.Duration) string {
	switch {
	case left <= 0:
		return "expired"
	case left < time.Hour:
		return fmt.Sprintf("in %d min", int(left.Minutes())+1)
	case left < 48*time.Hour:
		return fmt.Sprintf("in %d h", int(left.Hours()))
	}
	return fmt.Sprintf("in %d days", int(left.Hours()/24))
}

// attentionRow is a condition that needs attention, with its resources.
type attentionRow struct {
	Sources           []string
	More              int // resources that are not named
	Condition, Reason string
	Message           long
}

// Count is how many resources have the condition.
func (r attentionRow) Count() int { return len(r.Sources) + r.More }

// attentionRows groups resources with equal conditions: while no replica runs, all have the same
// one.
func attentionRows(list []live.Attention) []attentionRow {
	rows := []attentionRow{}
	at := map[live.Attention]int{}
	for _, a := range list {
		equal := a
		equal.Source = policy.ObjectRef{}
		if i, ok := at[equal]; ok {
			if row := &rows[i]; len(row.Sources) < rowsOfPage {
				row.Sources = append(row.Sources, a.Source.String())
			} else {
				row.More++
			}
			continue
		}
		at[equal] = len(rows)
		rows = append(rows,
			attentionRow{Sources: []string{a.Source.String()}, Condition: live.ConditionShown(a.Condition, a.Partly), Reason: a.Reason,
				Message: folded(a.Message)})
	}
	return rows
}

func namespaceHref(n verify.Namespace) string { return pathNamespace + url.PathEscape(string(n)) }

func imageHref(n verify.Namespace, image string) string {
	return pathImage + "?" + url.Values{"namespace": {string(n)}, "image": {image}}.Encode()
}

// pages are the links to the parts of a long table.
type pages struct {
	First, Last, Total int
	Prev, Next         string // addresses, "" without one
}

// paged returns the rows of one page, counted from 1. Address returns the address of another
// page.
func paged[T any](rows []T, page int, address func(page int) string) ([]T, pages) {
	last := max(1, (len(rows)+rowsOfPage-1)/rowsOfPage)
	page = min(max(page, 1), last)
	from, to := (page-1)*rowsOfPage, min(page*rowsOfPage, len(rows))
	p := pages{First: min(from+1, len(rows)), Last: to, Total: len(rows)}
	if page > 1 {
		p.Prev = address(page - 1)
	}
	if page < last {
		p.Next = address(page + 1)
	}
	return rows[from:to], p
}
