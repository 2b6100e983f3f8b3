package page

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// namespaceModel is the view of one namespace.
type namespaceModel struct {
	Alarms     alarms
	Name, Team string
	Contacts   []live.Contact
	Known      bool // its rules were read
	counts
	// BreakGlass is what break-glass does, "" if there is none.
	BreakGlass string
	Stage      string
	Never      string // the images about which Gatekeeper never asks, as the end of a sentence
	Whole      bool   // Gatekeeper's action is known
	Checking   bool   // it is being read
	Picture    picture
	Running    []runningRow
	Pages      pages
	Refused    []undecidedRow
	Denied     []denialRow
	DeniedNow  int // that do not run now
	Ends       []endRow
	Resources  []attentionRow
	// TenantsUnread says that a Tenant may hold the namespace, which is unknown.
	TenantsUnread bool
	Notes         []string
	NotShown      []string
	WhatIf        string
	Unread        bool // reports cannot be read
	NoReports     bool
}

// namespaceOf builds the view of one namespace from a status.
func namespaceOf(s live.Status, name verify.Namespace, actions map[verify.Namespace]string, page int, now time.Time) namespaceModel {
	m := namespaceModel{Name: string(name), NotShown: live.Grouped(s.Rights),
		WhatIf: pathWhatIf + "?" + url.Values{"namespace": {string(name)}}.Encode(), NoReports: s.NoReports}
	at := slices.IndexFunc(s.Namespaces, func(n live.NamespaceStatus) bool { return n.Namespace == name })
	if at < 0 {
		m.Notes = s.Notes()
		return m
	}
	n := s.Namespaces[at]
	only := live.Status{Namespaces: []live.NamespaceStatus{n}, NoReports: s.NoReports}
	m.Known, m.Team, m.counts, m.Unread, m.Notes = true, n.Tenant, counted(n), n.Unread, only.Notes()
	if n.BreakGlass != nil {
		m.BreakGlass = n.BreakGlass.String()
	}
	m.DeniedNow, m.Contacts = m.counts.Denied, n.Contacts
	m.Stage, m.Whole = stageOf(n, actions)
	m.Never = n.ButNotFor()
	m.TenantsUnread = slices.Contains(n.Unreadable, v1beta1.KindTenant)
	m.Picture = pictureOf(n)
	m.Running, m.Pages = paged(runningRows(n), page, func(page int) string {
		return namespaceHref(name) + "?" + url.Values{"page": {strconv.Itoa(page)}}.Encode()
	})
	m.Refused, m.Denied, m.Resources = undecidedRows(n), denialRows(n), attentionRows(n.Resources)
	m.Ends = endRows(s.Ends, now, func(e live.End) bool { return concerns(n, e) })
	return m
}

// concerns reports whether an expiry affects a namespace, its Tenant's home namespace, or trust that
// namespaces share. The cluster's exceptions are shown with the images that they allow.
func concerns(n live.NamespaceStatus, e live.End) bool {
	switch {
	case e.Source.Kind == "Namespace":
		return e.Source.Name == string(n.Namespace)
	case e.Source.Namespace == "":
		return e.What == live.EndOfTrust
	}
	return slices.ContainsFunc(n.Levels, func(l live.Level) bool { return string(l.Namespace) == e.Source.Namespace })
}

// namespaceView answers the address of a namespace.
func (s *Site) namespaceView(r *http.Request, name string) view {
	b := s.base(r, "Namespace "+clip(name))
	namespace, err := verify.ParseNamespace(name)
	if err != nil {
		b.Live = false
		return view{template: "fail.html", status: http.StatusNotFound, base: b, model: "No namespace has this name."}
	}
	status := s.statusOf(r, namespace)
	b.AsOf, b.Trouble = asOf(status.At), troubleOf(status)
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	checked := s.check.get(r.Context(), patience/5)
	m := namespaceOf(status.Value, namespace, checked.Value.Actions, page, s.now())
	m.Alarms, m.Checking = alarmsOf(checked.Value), !checked.Known && checked.Err == nil
	if checked.Err == nil {
		m.Alarms.At = asOf(checked.At)
	}
	b.Pending = !status.Known && status.Err == nil || m.Checking
	if s.Files {
		m.Notes = nil // they are about reports
	}
	v := view{template: "namespace.html", base: b, model: m}
	if status.Known && !m.Known {
		v.status = http.StatusNotFound
	}
	return v
}

// statusOf returns a status that contains a namespace: the status of all namespaces if it has
// everything, else one that is read for this namespace, because people may have more permissions in
// their own.
func (s *Site) statusOf(r *http.Request, namespace verify.Namespace) reading[live.Status] {
	if all := s.all.get(r.Context(), patience); all.Known && (s.Files || complete(all.Value, namespace)) {
		return all
	}
	return s.single.of(string(namespace)).get(r.Context(), patience)
}

// complete reports whether a status has everything about a namespace.
func complete(s live.Status, namespace verify.Namespace) bool {
	return slices.ContainsFunc(s.Namespaces, func(n live.NamespaceStatus) bool {
		return n.Namespace == namespace && !n.Unread && len(n.Unreadable) == 0
	})
}

// searchModel lists the results of a search.
type searchModel struct {
	Query      string
	Namespaces []namespaceRow
	Images     []hit
	More       bool
}

// hit is an image in a namespace, and the workload whose name was searched for.
type hit struct{ Namespace, Image, Href, Verdict, Workload string }

// searchIn returns the namespaces, images and workloads whose names contain a text, ignoring case.
func searchIn(s live.Status, query string) searchModel {
	m := searchModel{Query: query}
	if query == "" {
		return m
	}
	wanted := strings.ToLower(query)
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), wanted) }
	for _, n := range s.Namespaces {
		if has(string(n.Namespace)) || has(n.Tenant) {
			m.Namespaces = append(m.Namespaces,
				namespaceRow{Name: string(n.Namespace), Href: namespaceHref(n.Namespace), Team: n.Tenant, counts: counted(n)})
		}
		seen := map[string]bool{}
		add := func(image, verdict string, workloads ...string) {
			of := slices.IndexFunc(workloads, has)
			if image == "" || seen[image] || of < 0 && !has(image) {
				return
			}
			seen[image] = true
			found := hit{Namespace: string(n.Namespace), Image: image, Href: imageHref(n.Namespace, image), Verdict: verdict}
			if of >= 0 {
				found.Workload = workloads[of]
			}
			m.Images = append(m.Images, found)
		}
		for _, row := range runningRows(n) {
			add(row.Image, row.Verdict, row.Workload)
		}
		for _, d := range n.Denied {
			if d.Allowed == "" {
				add(d.Image, verdictFails, d.Workloads...)
			} else {
				add(d.Image, verdictAllowed, d.Workloads...)
			}
		}
	}
	m.More = len(m.Namespaces) > maxHits || len(m.Images) > maxHits
	m.Namespaces, m.Images = m.Namespaces[:min(len(m.Namespaces), maxHits)], m.Images[:min(len(m.Images), maxHits)]
	return m
}

// searchView answers a search.
func (s *Site) searchView(r *http.Request) view {
	query := strings.TrimSpace(clip(r.URL.Query().Get("q")))
	b := s.base(r, "Search")
	status, trouble := s.widest(r)
	b.AsOf, b.Trouble, b.Query, b.Pending = asOf(status.At), trouble, query, !status.Known && len(trouble) == 0
	return view{template: "search.html", base: b, model: searchIn(status.Value, query)}
}
