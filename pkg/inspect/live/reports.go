package live

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// reportReader reads the reports of namespaces.
type reportReader struct {
	pages  reportPages
	now    time.Time
	only   string  // label value of the reports, "" for all
	none   bool    // the cluster has no such kind
	rights []Right // that are missing
	// unread says that the person may not read reports; where is the namespace, or all.
	unread map[verify.Namespace]bool
	found  map[verify.Namespace]*NamespaceStatus
	// looked is the number of reports that were read in each namespace, and total in all.
	looked map[verify.Namespace]int
	total  int
	// cut says that there are further reports; where is the namespace, or all.
	cut map[verify.Namespace]bool
}

// report is the part of a report that is read.
type report struct {
	metav1.ObjectMeta `json:"metadata"`
	Source            string         `json:"source"`
	Results           []reportResult `json:"results"`
}

type reportResult struct {
	Policy      string            `json:"policy"`
	Result      string            `json:"result"`
	Description string            `json:"message"`
	Properties  map[string]string `json:"properties"`
	Subjects    []struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"resources"`
}

// read reads the reports of a namespace, or of all.
func (r *reportReader) read(ctx context.Context, namespace verify.Namespace) error {
	limit := int64(firstReports)
	for next := ""; ; {
		page, err := r.page(ctx, namespace, limit, next)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			r.none = true
			return nil
		case apierrors.IsForbidden(err):
			r.unread[namespace] = true
			r.rights = append(r.rights, Right{Verb: "list", Resource: reportsResource(), Namespace: string(namespace)})
			return nil
		case err != nil:
			return fmt.Errorf("list reports: %w", err)
		}
		r.total += page.reports
		if next = page.next; next == "" || r.cut[namespace] {
			return nil
		}
		if r.total >= maxAllReports {
			r.cut[namespace] = true
			return nil
		}
		limit = nextLimit(limit, page)
	}
}

// page reads one page.
func (r *reportReader) page(ctx context.Context, namespace verify.Namespace, limit int64, next string) (listed, error) {
	page, err := r.pages(ctx, string(namespace), r.only, limit, next)
	if err != nil {
		return listed{}, err
	}
	defer func() { _ = page.Close() }() // it was read
	return readReports(page, func(read *report, broken error) {
		of := verify.Namespace(read.Namespace)
		if r.looked[of] >= maxReports {
			r.cut[of] = true
			return
		}
		r.looked[of]++
		if broken != nil {
			r.of(of).Ignored++ // not ours
			return
		}
		r.add(read)
	})
}

// newReportReader returns an empty reader.
func newReportReader(pages reportPages, now time.Time) *reportReader {
	return &reportReader{pages: pages, now: now, found: map[verify.Namespace]*NamespaceStatus{}, unread: map[verify.Namespace]bool{},
		looked: map[verify.Namespace]int{}, cut: map[verify.Namespace]bool{}}
}

// of returns the known data about a namespace.
func (r *reportReader) of(namespace verify.Namespace) *NamespaceStatus {
	n := r.found[namespace]
	if n == nil {
		n = &NamespaceStatus{Namespace: namespace, Counts: map[string]int{}, Running: []Running{}, Unverified: []Running{},
			Undecided: []Undecided{}, Denied: []Denial{}, Exceptions: []ExceptionUse{}, Resources: []Attention{}, Rules: []Choice{},
			Contacts: []Contact{}}
		r.found[namespace] = n
	}
	n.Unread, n.Cut = r.unread[namespace] || r.unread[verify.Cluster], r.cut[namespace] || r.cut[verify.Cluster]
	return n
}

// add adds the content of one report.
func (r *reportReader) add(read *report) {
	n := r.of(verify.Namespace(read.Namespace))
	about := read.Labels[v1beta1.LabelReport]
	if about != v1beta1.ReportRunning && about != v1beta1.ReportDenied {
		return
	}
	if !v1beta1.IsOwnReport(read, read.Source) || len(read.Results) > maxResults {
		n.Ignored++
		return
	}
	n.Reported = true
	for _, entry := range read.ManagedFields {
		if entry.Time != nil && entry.Time.After(n.Written) {
			n.Written = entry.Time.Time
		}
	}
	for i := range read.Results {
		result := &read.Results[i]
		p := result.Properties
		if left := p[v1beta1.PropertyLeftOut]; left != "" {
			n.LeftOut += number(left)
			continue
		}
		if about == v1beta1.ReportRunning {
			n.running(result)
			continue
		}
		last, err := time.Parse(time.RFC3339, p[v1beta1.PropertyLast])
		switch ago := r.now.Sub(last); {
		case err != nil:
		case p[v1beta1.PropertyRegistry] != "":
			if ago <= undecidedKept {
				n.undecided(result, ago)
			}
		case ago <= denialsKept:
			n.denied(result)
		}
	}
}

// workloads names the workloads of a result. A result without any has the namespace as its
// subject.
func (r *reportResult) workloads() []string {
	names := []string{}
	for _, s := range r.Subjects {
		if s.Kind == v1beta1.ReportKindNamespace {
			continue
		}
		names = append(names, shown(s.Kind+"/"+s.Name))
	}
	return names
}

func (n *NamespaceStatus) running(r *reportResult) {
	p := r.Properties
	of := strings.Join(r.workloads(), ", ")
	n.Counts[shown(r.Result)]++
	if name := p[v1beta1.PropertyException]; name != "" {
		n.Exceptions = append(n.Exceptions,
			ExceptionUse{Exception: shown(name), Image: shown(p[v1beta1.PropertyImage]), Workload: of,
				Ends: moment(p[v1beta1.PropertyExceptionEnds])})
	}
	switch r.Result {
	case v1beta1.ReportPass, v1beta1.ReportSkip, v1beta1.ReportWarn:
		if n.allowed == nil {
			n.allowed = map[string]string{}
		}
		n.allowed[Normalised(p[v1beta1.PropertyImage])] = moment(p[v1beta1.PropertySince])
	}
	made := Running{Workload: of, Container: shown(p[v1beta1.PropertyContainer]), Image: shown(p[v1beta1.PropertyImage]),
		Digest: shown(p[v1beta1.PropertyDigest]),
		Result: shown(r.Result), Policy: shown(r.Policy), Reason: shown(r.Description), Remediation: shown(p[v1beta1.PropertyRemediation]),
		Command: shown(p[v1beta1.PropertyCommand]), Contact: shown(p[v1beta1.PropertyContact]), Since: moment(p[v1beta1.PropertySince]),
		Looked:  moment(p[v1beta1.PropertyLooked]),
		Signers: shown(p[v1beta1.PropertySigners]), Exception: shown(p[v1beta1.PropertyException]),
		ExceptionEnds: moment(p[v1beta1.PropertyExceptionEnds])}
	n.All = append(n.All, made)
	switch r.Result {
	case v1beta1.ReportPass:
	case v1beta1.ReportSkip:
		n.Unverified = append(n.Unverified, made)
	default:
		n.Running = append(n.Running, made)
	}
}

func (n *NamespaceStatus) denied(r *reportResult) {
	p := r.Properties
	n.Denied = append(n.Denied,
		Denial{Image: shown(p[v1beta1.PropertyImage]), Policy: shown(r.Policy), Reason: shown(r.Description),
			Remediation: shown(p[v1beta1.PropertyRemediation]),
			Command:     shown(p[v1beta1.PropertyCommand]), Contact: shown(p[v1beta1.PropertyContact]), TraceID: shown(p[v1beta1.PropertyTraceID]),
			Workloads: r.workloads(), Matched: shown(p[v1beta1.PropertyMatched]), Note: shown(p[v1beta1.PropertyNote]),
			Count: number(p[v1beta1.PropertyCount]), First: moment(p[v1beta1.PropertyFirst]), Last: moment(p[v1beta1.PropertyLast])})
}

// shown makes strangers' text fit for one line of a terminal.
func shown(text string) string { return policy.Shown(text, maxShownBytes) }
