package page

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// clusterModel is the view of the cluster, as far as the person may read it.
type clusterModel struct {
	Alarms     alarms
	Teams      []teamRow
	Namespaces []namespaceRow
	Pages      pages
	Team       string // the team of the rows, "" for all
	Ends       []endRow
	Resources  []attentionRow
	Findings   []findingRow
	Checking   bool // the findings are not known yet
	CheckedAt  string
	Unchecked  []string
	Notes      []string
	NotShown   []string
	Whole      bool   // Gatekeeper's actions are known
	Only       string // the only namespace shown because the person may not list namespaces, "" for all
}

// noTeam is the name for namespaces without a Tenant.
const noTeam = "(no Tenant)"

type teamRow struct {
	Name, Href string
	Namespaces int
	counts
	Stages []stageCount
	Bar    bar
}

type stageCount struct {
	Stage string
	Count int
}

type namespaceRow struct {
	Name, Href, Team, Stage string
	Opened                  bool // break-glass may be in force
	counts
}

type findingRow struct {
	Finding
	Message long
}

// stages are all stages in the order in which teams pass them.
func stages() []string {
	return []string{stageExempt, stageNone, stageDryRun, stageWarn, stageDeny, stageUnknown}
}

// clusterOf builds the view of a status. Given a team, it only lists the team's namespaces.
func clusterOf(s live.Status, checked Checked, team string, page int, now time.Time) clusterModel {
	m := clusterModel{Team: team, Whole: checked.Actions != nil, Ends: endRows(s.Ends, now, func(live.End) bool { return true }),
		Resources: attentionRows(s.Resources),
		Unchecked: checked.Unchecked, Notes: s.Notes(), NotShown: live.Grouped(s.Rights)}
	m.Ends = m.Ends[:min(len(m.Ends), rowsOfPage)]
	m.Alarms = alarmsOf(checked)
	for _, f := range checked.Findings {
		m.Findings = append(m.Findings, findingRow{Finding: f, Message: folded(f.Text)})
	}
	teams := map[string]*teamRow{}
	staged := map[string]map[string]int{}
	var rows []namespaceRow
	for _, n := range s.Namespaces {
		name := cmp.Or(n.Tenant, noTeam)
		stage, _ := stageOf(n, checked.Actions)
		row := namespaceRow{Name: string(n.Namespace), Href: namespaceHref(n.Namespace), Team: name, Stage: stage, Opened: n.BreakGlass.Opens(),
			counts: counted(n)}
		if teams[name] == nil {
			teams[name] = &teamRow{Name: name, Href: pathCluster + "?" + url.Values{"team": {name}}.Encode(), counts: counts{Missing: row.Missing}}
			staged[name] = map[string]int{}
		}
		t := teams[name]
		t.Namespaces++
		t.counts = t.plus(row.counts)
		staged[name][stage]++
		if team == "" || team == name {
			rows = append(rows, row)
		}
	}
	for name, t := range teams {
		for _, stage := range stages() {
			if count := staged[name][stage]; count > 0 {
				t.Stages = append(t.Stages, stageCount{stage, count})
			}
		}
		t.Bar = stageBar(t.Stages, t.Namespaces)
		m.Teams = append(m.Teams, *t)
	}
	slices.SortFunc(m.Teams, func(a, b teamRow) int {
		return cmp.Or(a.compare(b.counts), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(rows, func(a, b namespaceRow) int {
		return cmp.Or(a.compare(b.counts), cmp.Compare(a.Name, b.Name))
	})
	m.Namespaces, m.Pages = paged(rows, page, func(page int) string {
		query := url.Values{"page": {strconv.Itoa(page)}}
		if team != "" {
			query.Set("team", team)
		}
		return pathCluster + "?" + query.Encode()
	})
	return m
}

// alarmsOf says that no replica answers, which denies every new pod: it belongs wherever somebody
// looks for the cause.
func alarmsOf(checked Checked) (found alarms) {
	for _, f := range checked.Findings {
		if f.Down {
			found.Texts = append(found.Texts, f.Text)
		}
	}
	return found
}

// alarms are the causes for which every new pod is denied, as found by check, and when: check runs less often
// than other reads.
type alarms struct {
	Texts []string
	At    string
}

// clusterView answers the first address.
func (s *Site) clusterView(r *http.Request) view {
	b := s.base(r, "Cluster")
	if s.Files {
		b.Title = "Files"
	}
	status, trouble := s.widest(r)
	checked := s.check.get(r.Context(), patience/5)
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	m := clusterOf(status.Value, checked.Value, clip(r.URL.Query().Get("team")), page, s.now())
	if s.Files {
		m.Notes = nil // they are about reports
	}
	if s.Namespace != verify.Cluster && slices.ContainsFunc(status.Value.Rights, listsNamespaces) {
		m.Only = string(s.Namespace)
	}
	m.Checking = !checked.Known && checked.Err == nil
	if checked.Err == nil { // otherwise the known data is older
		m.CheckedAt = asOf(checked.At)
		m.Alarms.At = m.CheckedAt
	}
	b.AsOf, b.Trouble, b.Pending = asOf(status.At), trouble, !status.Known && len(trouble) == 0 || m.Checking
	if checked.Err != nil {
		b.Trouble = append(b.Trouble, "the installation could not be checked: "+said(checked.Err))
	}
	return view{template: "cluster.html", base: b, model: m}
}

// listsNamespaces reports whether a permission is to list all namespaces.
func listsNamespaces(r live.Right) bool {
	return r.Verb == "list" && r.Resource.Group == "" && r.Resource.Resource == "namespaces" && r.Namespace == ""
}

// widest returns the status of all namespaces, or of the person's own if the person may not list
// namespaces.
func (s *Site) widest(r *http.Request) (reading[live.Status], []string) {
	all := s.all.get(r.Context(), patience)
	var missing live.MissingError
	if errors.As(all.Err, &missing) {
		why := "not all namespaces are shown: " + missing.Error()
		if s.Namespace == verify.Cluster {
			return all, []string{why + "; or open one namespace by its address: " + pathNamespace + "NAME"}
		}
		own := s.single.of(string(s.Namespace)).get(r.Context(), patience)
		own.Value.Rights = append(slices.Clone(own.Value.Rights), missing.Right)
		return own, troubleOf(own)
	}
	return all, troubleOf(all)
}

// troubleOf says why a reading is old or missing.
func troubleOf[T any](r reading[T]) []string {
	switch {
	case r.Err == nil:
		return nil
	case r.Known:
		return []string{"what is shown is old, because it could not be read again: " + said(r.Err)}
	}
	return []string{said(r.Err)}
}

// clip shortens a text from an address.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxQuery)], "")
}
