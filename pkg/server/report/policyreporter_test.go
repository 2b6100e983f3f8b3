package report

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/workload"
)

// These tests play Policy Reporter 3.9 by its published source. They do not run it: its module would
// bring databases and the clients of clouds. So they have its rules, not its code.

// row is a result in the database of Policy Reporter.
type row struct {
	id       string
	of       corev1.ObjectReference
	result   openreports.ReportResult
	existing bool // another result has its ID, so Policy Reporter ignores this one
}

// rows plays how Policy Reporter stores the results of reports of both API groups: a PolicyReport
// of the old group is the same after it is read.
func rows(t *testing.T, reports ...*openreports.Report) []row {
	t.Helper()
	taken, named := map[string]bool{}, map[string]bool{}
	var all []row
	for _, r := range reports {
		require.False(t, named[r.Namespace+"/"+r.Name], "a report of either group replaces one of the same name")
		named[r.Namespace+"/"+r.Name] = true
		for _, result := range r.Results {
			var of corev1.ObjectReference
			switch {
			case len(result.Subjects) > 0:
				of = result.Subjects[0] // further ones are not shown
			case r.Scope != nil:
				of = *r.Scope
			}
			id := cmp.Or(result.Properties["resultID"],
				strings.Join([]string{of.Name, string(of.UID), result.Policy, result.Rule, string(result.Result), result.Category, result.Description}, "|"))
			all = append(all, row{id, of, result, taken[id]})
			taken[id] = true
		}
	}
	return all
}

// sends plays whether Policy Reporter sends a result to a target that is only for a namespace.
func (r row) sends(namespace string) bool {
	return r.of == corev1.ObjectReference{} || r.of.Namespace == namespace
}

// everything returns all kinds of results of a namespace.
func everything(namespace verify.Namespace) []*openreports.Report {
	s := newSpace()
	s.renew([]workload.Running{runs(web, "main", imageOne), runs(web, "side", imageOne), runs(cron, "main", imageTwo)},
		map[string]finding{imageOne: {result: allowed, at: began}, imageTwo: {result: denied, at: began}}, began)
	s.fold(noteAt("r0-1", 5, began), began)
	s.rowsOut, s.leftOut = 3, 2
	return s.render(namespace, nobody, alone)
}

func TestPolicyReporterShowsEveryResult(t *testing.T) {
	text, err := json.Marshal(resource.Facts{Certificate: "PEM", List: []resource.Fact{{ID: resource.FactClockSkew, Bad: true, Message: "late"},
		{ID: resource.FactRegistryUnreachable, Bad: true, Message: "gone", About: "a.example.com"},
		{ID: resource.FactRegistryUnreachable, Bad: true, Message: "gone", About: "b.example.com"}}}.Report("landwaiter-system"))
	require.NoError(t, err)
	process := &openreports.Report{}
	require.NoError(t, json.Unmarshal(text, process))
	process.Namespace = "landwaiter-system"
	kyverno := &openreports.Report{
		Results: []openreports.ReportResult{{Source: "kyverno", Policy: "require-labels", Result: "fail", Category: "Image verification", Severity: "low",
			Timestamp: metav1.Timestamp{Seconds: 1},
			Subjects:  []corev1.ObjectReference{reference("team-a", web)}}}}
	kyverno.Namespace, kyverno.Name = "team-a", "5ad3"
	all := rows(t, append(append(everything("team-a"), everything("team-b")...), process, kyverno)...)
	require.Len(t, all, 17)
	for _, r := range all {
		require.False(t, r.existing, "%s %s of %s is ignored", r.result.Rule, r.result.Description, r.of.Namespace)
		require.NotEmpty(t, r.result.Source)
		require.NotEmpty(t, r.result.Category)
		require.Contains(t, []string{"info", "low", "medium", "high", "critical"}, string(r.result.Severity))
		require.NotEmpty(t, r.of.Kind)
		require.NotEmpty(t, r.of.Name)
		for _, namespace := range []string{"team-a", "team-b", "landwaiter-system"} {
			require.Equal(t, namespace == r.of.Namespace, r.sends(namespace), "no team is sent what is another's")
		}
		if r.result.Properties["leftOut"] == "" && r.of.Namespace != "landwaiter-system" {
			require.Positive(t, r.result.Timestamp.Seconds, "targets have a time")
		}
	}
}

func TestPolicyReporterNotifiesOfAResultOnce(t *testing.T) {
	s := newSpace()
	denial := func(having having) string {
		reports := s.render("team-a", having, alone)
		return rows(t, reports[len(reports)-1])[0].id
	}
	s.fold(noteAt("r0-1", 1, began), began)
	first := denial(nobody)
	s.fold(noteAt("r0-1", 2, at(1)), at(1))
	require.Equal(t, first, denial(nobody), "it is denied again")
	require.Equal(t, first, denial(func(string) []workload.Ref { return []workload.Ref{web} }), "its workload is found")

	running := []workload.Running{runs(web, "main", imageOne)}
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: began}}, began)
	passes := rows(t, s.all()[0])[0].id
	s.renew(running, map[string]finding{imageOne: {result: allowed, at: at(30)}}, at(30))
	require.Equal(t, passes, rows(t, s.all()[0])[0].id, "it is verified again")
	s.renew(running, map[string]finding{imageOne: {result: denied, at: at(31)}}, at(31))
	require.NotEqual(t, passes, rows(t, s.all()[0])[0].id, "a revoked image is news")
}
