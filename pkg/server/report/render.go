package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// Texts of every report.
const (
	matchedBy = "by namespace and image"
	decides   = "Gatekeeper decides whether that stops a pod" // a constraint may only warn, and a request may be a dry run
	noPolicy  = "no policy"
)

// having finds the workloads with an image.
type having func(image string) []workload.Ref

// render returns the reports of a namespace that fit.
func (s *space) render(namespace verify.Namespace, having having, room room) []*openreports.Report {
	var reports []*openreports.Report
	rows := s.runningRows()
	omitted := func(n int) openreports.ReportResult { return leftOut(namespace, v1beta1.ReportRunning, n) }
	for i, results := range split(len(rows), func(i int) openreports.ReportResult { return s.runningResult(namespace, rows[i]) }, omitted,
		room.running, s.rowsOut) {
		name := v1beta1.ReportNameRunning
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
		reports = append(reports, newReport(namespace, name, v1beta1.ReportRunning, results))
	}
	omitted = func(n int) openreports.ReportResult { return leftOut(namespace, v1beta1.ReportDenied, n) }
	results := slices.Concat(s.registryResults(namespace, having), s.deniedResults(namespace, having))
	if s.leftOut > 0 {
		results = append(results, omitted(s.leftOut))
	}
	for _, results := range split(len(results), func(i int) openreports.ReportResult { return results[i] }, omitted,
		min(room.denied, maxObjectBytes), 0) {
		reports = append(reports, newReport(namespace, v1beta1.ReportNameDenied, v1beta1.ReportDenied, results))
	}
	return reports
}

func newReport(namespace verify.Namespace, name, about string, results []openreports.ReportResult) *openreports.Report {
	r := &openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: string(namespace), Name: name, Labels: map[string]string{
		v1beta1.LabelReport: about, "app.kubernetes.io/managed-by": v1beta1.ReportSource}}, Source: v1beta1.ReportSource, Results: results}
	r.APIVersion, r.Kind = v1beta1.ReportGroup+"/"+v1beta1.ReportVersion, v1beta1.ReportKind
	for i := range results {
		if results[i].Properties[v1beta1.PropertyLeftOut] != "" {
			continue // it is not about a container and an image
		}
		switch results[i].Result {
		case v1beta1.ReportPass:
			r.Summary.Pass++
		case v1beta1.ReportFail:
			r.Summary.Fail++
		case v1beta1.ReportWarn:
			r.Summary.Warn++
		case v1beta1.ReportError:
			r.Summary.Error++
		case v1beta1.ReportSkip:
			r.Summary.Skip++
		}
	}
	return r
}

// runningRows returns the images of the containers with a result, the worst first.
func (s *space) runningRows() []workload.Running {
	rows := make([]workload.Running, 0, len(s.rows))
	for row := range s.rows {
		if s.images[row.Image].result != "" {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, byWorst(s.images))
	return rows
}

// runningResult returns the result for a container's image.
func (s *space) runningResult(namespace verify.Namespace, row workload.Running) openreports.ReportResult {
	st := s.images[row.Image]
	looked := time.Time{}
	if st.result == v1beta1.ReportFail { // nobody waits for another verification
		looked = st.looked
	}
	return newResult(v1beta1.ReportRunning, st.result, st.policy, st.reason, st.since, []workload.Ref{row.Of}, namespace, map[string]string{
		v1beta1.PropertyImage: row.Image, v1beta1.PropertyDigest: st.digest, v1beta1.PropertyContainer: row.Container,
		v1beta1.PropertyContainerType: string(row.ContainerType),
		v1beta1.PropertyRemediation:   st.remediation, v1beta1.PropertyCommand: st.command, v1beta1.PropertyContact: st.contact,
		v1beta1.PropertySince: stamp(st.since), v1beta1.PropertyLooked: stamp(looked), v1beta1.PropertyLastResult: st.lastResult,
		v1beta1.PropertyLastSince: stamp(st.lastSince),
		v1beta1.PropertySigners:   st.signers, v1beta1.PropertyException: st.exception, v1beta1.PropertyExceptionEnds: stamp(st.exceptionEnds),
	})
}

// deniedResults returns a result for each denied image, the latest one first.
func (s *space) deniedResults(namespace verify.Namespace, having having) []openreports.ReportResult {
	all := slices.SortedFunc(maps.Values(s.denials), func(a, b *denial) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.image, b.image))
	})
	results := make([]openreports.ReportResult, len(all))
	for i, d := range all {
		var of []workload.Ref
		matched, reason := "", d.reason
		if d.image == "" {
			reason = "more images failed verification than are counted apart"
		} else if of = having(d.image); len(of) > 0 {
			matched = matchedBy
		}
		results[i] = newResult(v1beta1.ReportDenied, v1beta1.ReportFail, d.policy, reason, d.last, of, namespace, map[string]string{
			v1beta1.PropertyImage: d.image, v1beta1.PropertyDigest: d.digest, v1beta1.PropertyRemediation: d.remediation,
			v1beta1.PropertyCommand: d.command, v1beta1.PropertyContact: d.contact, v1beta1.PropertyCount: strconv.Itoa(d.count()),
			v1beta1.PropertyFirst: stamp(d.first), v1beta1.PropertyLast: stamp(d.last), v1beta1.PropertyTraceID: d.traceID,
			v1beta1.PropertyMatched: matched, v1beta1.PropertyNote: decides, v1beta1.PropertyCounters: d.store(),
		})
	}
	return results
}

func newResult(rule, result, policy, reason string, at time.Time, of []workload.Ref, namespace verify.Namespace,
	properties map[string]string) openreports.ReportResult {
	for name, value := range properties {
		if value == "" {
			delete(properties, name)
		}
	}
	r := openreports.ReportResult{Source: v1beta1.ReportSource, Policy: cmp.Or(policy, noPolicy), Rule: rule, Category: v1beta1.ReportCategory,
		Severity:  severityOf(result),
		Timestamp: metav1.Timestamp{Seconds: at.Unix()}, Result: openreports.Result(result), Scored: true, Description: reason,
		Properties: properties}
	for _, ref := range of {
		r.Subjects = append(r.Subjects, reference(namespace, ref))
	}
	identify(namespace, &r)
	return r
}

// identify gives a result its ID, and a resource if it has none. Policy Reporter sends results
// without a resource to every team, and stores only one of several results with the same ID.
func identify(namespace verify.Namespace, r *openreports.ReportResult) {
	if len(r.Subjects) == 0 {
		r.Subjects = []corev1.ObjectReference{{APIVersion: "v1", Kind: v1beta1.ReportKindNamespace, Namespace: string(namespace),
			Name: string(namespace)}}
	}
	p := r.Properties
	parts := []string{string(namespace), r.Rule, p[v1beta1.PropertyImage], r.Policy, string(r.Result), r.Description}
	if r.Rule == v1beta1.ReportUndecided { // an outage keeps its ID, whichever image is refused
		parts = []string{string(namespace), r.Rule, p[v1beta1.PropertyRegistry]}
	}
	if of := r.Subjects[0]; r.Rule == v1beta1.ReportRunning { // a denial keeps its ID when its workload is found
		parts = append(parts, of.APIVersion, of.Kind, of.Name, string(of.UID), p[v1beta1.PropertyContainerType], p[v1beta1.PropertyContainer])
	}
	p[v1beta1.PropertyResultID] = resource.ResultID(parts...)
}

// reference returns a workload as an object reference.
func reference(namespace verify.Namespace, ref workload.Ref) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: string(namespace), Name: ref.Name, UID: ref.UID}
}

func severityOf(result string) openreports.ResultSeverity {
	switch result {
	case v1beta1.ReportFail:
		return "high"
	case v1beta1.ReportError, v1beta1.ReportWarn:
		return "medium"
	}
	return "info"
}

// leftOut returns the result with the number of results that do not fit.
func leftOut(namespace verify.Namespace, rule string, n int) openreports.ReportResult {
	r := openreports.ReportResult{Source: v1beta1.ReportSource, Policy: noPolicy, Rule: rule, Category: v1beta1.ReportCategory,
		Severity: "info", Result: v1beta1.ReportSkip,
		Description: fmt.Sprintf("%d results are left out: the quota owner has no more room for reports", n),
		Properties:  map[string]string{v1beta1.PropertyLeftOut: strconv.Itoa(n)}}
	identify(namespace, &r)
	return r
}

// split distributes results over objects of at most [maxObjectBytes] each and limit bytes in
// total. It builds a result when its turn comes, and only omits results that do not fit. The
// last result, from omitted, contains the number of omitted results, including the out earlier
// ones.
func split(count int, at, omitted func(i int) openreports.ReportResult, limit, out int) [][]openreports.ReportResult {
	var parts [][]openreports.ReportResult
	var part []openreports.ReportResult
	size, total := 0, 0
	for i := range count {
		if total+minResultBytes > limit {
			out += count - i
			break
		}
		result := at(i)
		text, err := json.Marshal(&result)
		if err != nil || total+len(text) > limit || len(text) > maxResultBytes {
			out++
			continue
		}
		if size+len(text) > maxObjectBytes {
			parts, part, size = append(parts, part), nil, 0
		}
		part = append(part, result)
		size, total = size+len(text), total+len(text)
	}
	if out > 0 {
		part = append(part, omitted(out))
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// stamp returns a time in the format of properties, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// parseStamp reads the output of stamp. Other text is the zero time.
func parseStamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
