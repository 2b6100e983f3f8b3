package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Undecided is a registry with undecided images because it did not answer as it should, or a set of images that were
// undecided for another reason.
type Undecided struct {
	Registry string `json:"registry"` // or "*" or "-", as in reports
	// Count is how often images were undecided, First and Last when, and Image the last of them.
	Count       int    `json:"count"`
	First       string `json:"first"`
	Last        string `json:"last"`
	Image       string `json:"image,omitempty"`
	Reason      string `json:"reason"` // of the last one
	Remediation string `json:"remediation,omitempty"`
	// Remedy is the word for Remediation if that repairs the registry.
	Remedy  policy.Remedy `json:"remedy,omitempty"`
	Command string        `json:"command,omitempty"`
	Contact string        `json:"contact,omitempty"`
	TraceID string        `json:"traceID,omitempty"`
	// Answered is since when images of the registry are decided again, "" if unknown.
	Answered string `json:"answered,omitempty"`
	// Over says that images are decided again, or that none was undecided for 20 minutes.
	Over bool `json:"over"`
}

// Of says whose images were undecided, and asks about the spelling of a host that DNS does not know and that has
// never answered.
func (u Undecided) Of() string {
	if u.Mistyped() {
		return v1beta1.ImagesOf(u.Registry) + ": no such host, is it spelt right?"
	}
	return v1beta1.ImagesOf(u.Registry)
}

// Mistyped reports whether the registry's name is probably misspelt, which is not an outage.
func (u Undecided) Mistyped() bool { return u.Remedy == policy.RemedyNoSuchHost && u.Answered == "" }

// When says how often images were undecided, since when, and whether that is over.
func (u Undecided) When() string {
	often := "once"
	if u.Count != 1 {
		often = fmt.Sprintf("%d times", u.Count)
	}
	first, last := cmp.Or(u.First, "an unknown time"), cmp.Or(u.Last, "an unknown time")
	switch {
	case u.Answered != "":
		return fmt.Sprintf("%s from %s to %s; decided again since %s", often, first, last, u.Answered)
	case u.Over:
		return fmt.Sprintf("%s from %s to %s; none since then", often, first, last)
	}
	return fmt.Sprintf("%s since %s, last %s", often, first, last)
}

// Outage is a registry whose images are undecided in a namespace, because it does not answer as it should.
type Outage struct {
	Namespace verify.Namespace
	Undecided
}

// Outages returns the current outages of all namespaces, as far as the person may read reports. Answered is since
// when images of the registry are decided again in another namespace, if that is after the last refusal. Rights are
// missing permissions.
func (p *Person) Outages(ctx context.Context, now time.Time) (found []Outage, rights []Right, err error) {
	reports := newReportReader(p.reports, now)
	reports.only = v1beta1.ReportDenied
	if err := reports.read(ctx, verify.Cluster); err != nil {
		return nil, nil, err
	}
	answered := map[string]string{}
	for _, n := range reports.found {
		for _, u := range n.Undecided {
			answered[u.Registry] = max(answered[u.Registry], u.Answered)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(reports.found)) {
		for _, u := range reports.found[namespace].Undecided {
			if !u.Over && u.Registry != v1beta1.RegistriesNone {
				if again := answered[u.Registry]; again > u.Last && u.Registry != v1beta1.RegistriesOther {
					u.Answered = again
				}
				found = append(found, Outage{namespace, u})
			}
		}
	}
	return found, reports.rights, nil
}

// undecided adds a report's data about a registry, whose last image was undecided so long ago.
func (n *NamespaceStatus) undecided(r *reportResult, ago time.Duration) {
	p := r.Properties
	u := Undecided{Registry: shown(p[v1beta1.PropertyRegistry]), Count: number(p[v1beta1.PropertyCount]),
		First: moment(p[v1beta1.PropertyFirst]), Last: moment(p[v1beta1.PropertyLast]),
		Image: shown(p[v1beta1.PropertyImage]), Reason: shown(r.Description), Remediation: shown(p[v1beta1.PropertyRemediation]),
		Command: shown(p[v1beta1.PropertyCommand]), Contact: shown(p[v1beta1.PropertyContact]), TraceID: shown(p[v1beta1.PropertyTraceID]),
		Answered: moment(p[v1beta1.PropertyAnswered])}
	if u.Remedy = policy.Remedy(p[v1beta1.PropertyRemedy]); u.Remedy.At(u.Registry) == "" {
		u.Remedy = ""
	}
	u.Over = u.Answered != "" || ago > undecidedQuiet
	n.Undecided = append(n.Undecided, u)
}
