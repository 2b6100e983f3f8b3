package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// today is when statuses are asked for.
func today() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// reportOf makes a report that manager has written.
func reportOf(namespace, name, about, manager string, results ...any) *unstructured.Unstructured {
	r := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "openreports.io/v1alpha1", "kind": "Report", "source": "landwaiter", "results": results}}
	r.SetNamespace(namespace)
	r.SetName(name)
	r.SetLabels(map[string]string{v1beta1.LabelReport: about})
	r.SetManagedFields(
		[]metav1.ManagedFieldsEntry{{Manager: manager, Operation: "Update", APIVersion: "openreports.io/v1alpha1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1("{}")}})
	return r
}

func resultOf(result, message, of string, properties map[string]any) any {
	about := map[string]any{"kind": "Namespace", "name": "team"}
	if of != "" {
		about = map[string]any{"kind": "Deployment", "name": of}
	}
	return map[string]any{"policy": "VerificationPolicy team/p", "result": result, "message": message, "properties": properties, "resources": []any{about}}
}

func runsAs(image string) map[string]any { return map[string]any{v1beta1.PropertyImage: image} }

func deniedAt(image string, last time.Time) map[string]any {
	return map[string]any{v1beta1.PropertyImage: image, v1beta1.PropertyCount: "12", v1beta1.PropertyFirst: last.Format(time.RFC3339),
		v1beta1.PropertyLast:        last.Format(time.RFC3339),
		v1beta1.PropertyRemediation: "sign it"}
}

// reads returns somebody who reads objects, with all permissions but to list some kinds.
func reads(t *testing.T, unread []string, objects ...client.Object) *Person {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	for _, name := range []string{"team", "other"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	scheme.AddKnownTypeWithName(gvk("Report"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(gvk("ReportList"), &unstructured.UnstructuredList{})
	made := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
			if kind == "" {
				gvks, _, err := scheme.ObjectKinds(list)
				require.NoError(t, err)
				kind = strings.TrimSuffix(gvks[0].Kind, "List")
			}
			if slices.Contains(unread, kind) {
				return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource(strings.ToLower(kind)).GroupResource(), "", nil)
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return &Person{schemas: schema.Embedded(), client: made, reports: pagesOf(made)}
}

// pagesOf returns the pages of reports that a client lists.
func pagesOf(c client.Client) reportPages {
	return func(ctx context.Context, namespace, about string, limit int64, next string) (io.ReadCloser, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk("ReportList"))
		var selected client.ListOption = client.HasLabels{v1beta1.LabelReport}
		if about != "" {
			selected = client.MatchingLabels{v1beta1.LabelReport: about}
		}
		if err := c.List(ctx, list, client.InNamespace(namespace), selected, client.Limit(limit), client.Continue(next)); err != nil {
			return nil, err
		}
		text, err := json.Marshal(list)
		return io.NopCloser(bytes.NewReader(text)), err
	}
}

func gvk(kind string) (g runtimeschema.GroupVersionKind) {
	g.Group, g.Version, g.Kind = v1beta1.ReportGroup, v1beta1.ReportVersion, kind
	return g
}

func statusOf(t *testing.T, p *Person, scope Scope) Status {
	t.Helper()
	s, err := p.Status(t.Context(), scope, today())
	require.NoError(t, err)
	return s
}

func one(namespace verify.Namespace) Scope { return Scope{Namespaces: []verify.Namespace{namespace}} }

func TestStatusSaysWhatRunsAndWhatWasDenied(t *testing.T) {
	yesterday, before := today().Add(-24*time.Hour), today().Add(-8*24*time.Hour)
	excepted := runsAs("r/excepted")
	excepted[v1beta1.PropertyException], excepted[v1beta1.PropertyExceptionEnds] = "ClusterException move", "2026-12-01T00:00:00Z"
	good := runsAs("r/good")
	good[v1beta1.PropertySigners] = "sha256:a; https://issuer.example.com\nb"
	p := reads(t, nil,
		reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf("pass", "", "good", good),
			resultOf("skip", "allowed without verification: rule 2 of VerificationPolicy team/base", "free", runsAs("r/free")),
			resultOf("warn", "an exception", "excepted", excepted), resultOf("fail", "no\nsignature\x1b[31m", "bad", runsAs("r/bad"))),
		reportOf("team", "landwaiter-running-1", "running", "landwaiter", resultOf("skip", "", "", map[string]any{v1beta1.PropertyLeftOut: "7"})),
		reportOf("team", "landwaiter-denied", "denied", "landwaiter", resultOf("fail", "older", "", deniedAt("r/older", yesterday.Add(-time.Hour))),
			resultOf("fail", "late", "shop", deniedAt("r/shop", yesterday)), resultOf("fail", "over", "", deniedAt("r/over", before))),
		reportOf("other", "landwaiter-denied", "denied", "landwaiter", resultOf("fail", "secret", "", deniedAt("r/secret", yesterday))))
	s := statusOf(t, p, one("team"))
	require.Len(t, s.Namespaces, 1)
	n := s.Namespaces[0]
	require.Equal(t, map[string]int{"pass": 1, "skip": 1, "warn": 1, "fail": 1}, n.Counts)
	require.Len(t, n.Unverified, 1, "nobody is left out of the list")
	require.Equal(t, "r/free allowed without verification: rule 2 of VerificationPolicy team/base", n.Unverified[0].Image+" "+n.Unverified[0].Reason)
	require.Equal(t, 7, n.LeftOut)
	require.Equal(t, []string{"r/bad", "r/excepted"}, []string{n.Running[0].Image, n.Running[1].Image}, "the worst first")
	require.Equal(t, "no signature [31m", n.Running[0].Reason)
	require.Equal(t, "sha256:a; https://issuer.example.com b", n.All[slices.IndexFunc(n.All, func(r Running) bool { return r.Image == "r/good" })].Signers)
	require.Equal(t, []ExceptionUse{{Exception: "ClusterException move", Image: "r/excepted", Workload: "Deployment/excepted", Ends: "2026-12-01T00:00:00Z"}},
		n.Exceptions)
	require.Len(t, n.Denied, 2, "seven days")
	require.Equal(t, "r/shop", n.Denied[0].Image)
	require.Equal(t, 12, n.Denied[0].Count)
	require.Equal(t, []string{"Deployment/shop"}, n.Denied[0].Workloads)
	require.Empty(t, n.Denied[1].Workloads, "a namespace is no workload")
	require.True(t, s.NeedsAttention())
	require.False(t, s.Unknown())

	all := statusOf(t, p, Scope{All: true})
	require.Len(t, all.Namespaces, 2)
	require.Equal(t, "r/secret", all.Namespaces[0].Denied[0].Image)
	require.Len(t, all.Namespaces[1].Denied, 2)
}

// Anyone who has signed the image and sees it run need not look at the denial any more.
func TestADenialOfAnImageThatIsAllowedByNowNeedsNoAttention(t *testing.T) {
	denied := today().Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		result, image string
		since         time.Time
		attention     bool
	}{
		"it runs since":                {"pass", "docker.io/library/shop:1", denied.Add(time.Hour), false},
		"by another spelling":          {"pass", "shop:1", denied.Add(time.Hour), false},
		"it ran before":                {"pass", "shop:1", denied.Add(-time.Hour), true},
		"it fails":                     {"fail", "shop:1", denied.Add(time.Hour), true},
		"nobody knows":                 {"error", "shop:1", denied.Add(time.Hour), true},
		"another image runs":           {"pass", "shop:2", denied.Add(time.Hour), true},
		"it is not known since when":   {"pass", "shop:1", time.Time{}, true},
		"no rule requires anything":    {"skip", "shop:1", denied.Add(time.Hour), false},
		"another one was denied later": {"pass", "shop:1", denied, true},
	} {
		t.Run(name, func(t *testing.T) {
			runs := runsAs(c.image)
			if !c.since.IsZero() {
				runs[v1beta1.PropertySince] = c.since.Format(time.RFC3339)
			}
			s := statusOf(t, reads(t, nil, reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf(c.result, "", "shop", runs)),
				reportOf("team", "landwaiter-denied", "denied", "landwaiter", resultOf("fail", "nobody signed it", "shop", deniedAt("docker.io/library/shop:1", denied)))),
				one("team"))
			require.Len(t, s.Namespaces[0].Denied, 1, "it stays for seven days")
			require.Equal(t, c.attention, s.NeedsAttention())
		})
	}
}

func TestStatusBelievesNoReportThatSomebodyElseHasWritten(t *testing.T) {
	nameless := reportOf("team", "landwaiter-denied", "denied", "landwaiter", resultOf("fail", "forged", "", deniedAt("r/x", today())))
	nameless.SetManagedFields(nil)
	for name, forged := range map[string]*unstructured.Unstructured{
		"another writer":               reportOf("team", "landwaiter-running", "running", "kubectl", resultOf("fail", "forged", "x", runsAs("r/x"))),
		"another name":                 reportOf("team", "mine", "running", "landwaiter", resultOf("fail", "forged", "x", runsAs("r/x"))),
		"another label's name":         reportOf("team", "landwaiter-denied", "running", "landwaiter", resultOf("fail", "forged", "x", runsAs("r/x"))),
		"a name that begins like ours": reportOf("team", "landwaiter-running-x", "running", "landwaiter", resultOf("fail", "forged", "x", runsAs("r/x"))),
		"a number that we never give":  reportOf("team", "landwaiter-running-10", "running", "landwaiter", resultOf("fail", "forged", "x", runsAs("r/x"))),
		"no writer":                    nameless,
	} {
		t.Run(name, func(t *testing.T) {
			n := statusOf(t, reads(t, nil, forged), one("team")).Namespaces[0]
			require.Equal(t, 1, n.Ignored)
			require.False(t, n.Reported)
			require.Empty(t, n.Running)
			require.Empty(t, n.Denied)
		})
	}
}

func TestStatusReadsABoundedNumberOfReportsOfANamespaceAndSaysSo(t *testing.T) {
	var flood []client.Object
	for i := range maxReports {
		flood = append(flood, reportOf("team", fmt.Sprintf("forged-%d", i), "running", "other"))
	}
	theirs := reportOf("other", "landwaiter-running", "running", "landwaiter", resultOf("fail", "x", "x", runsAs("r/x")))
	require.False(t, statusOf(t, reads(t, nil, append(flood, theirs)...), one("team")).Namespaces[0].Cut)
	flood = append(flood, theirs, reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf("fail", "x", "x", runsAs("r/x"))))
	for _, scope := range []Scope{one("team"), {All: true}} {
		s := statusOf(t, reads(t, nil, flood...), scope)
		team := s.Namespaces[len(s.Namespaces)-1]
		require.True(t, team.Cut)
		require.Equal(t, maxReports, team.Ignored)
		require.True(t, s.Unknown())
		if scope.All {
			require.False(t, s.Namespaces[0].Cut, "another namespace's are all read")
			require.Len(t, s.Namespaces[0].Running, 1)
		}
	}
}

func TestStatusNamesTheRightsThatAreMissing(t *testing.T) {
	s := statusOf(t, reads(t, []string{"Report", "ClusterVerificationPolicy", "Tenant"}), one("team"))
	require.True(t, s.Unknown())
	var missing []string
	for _, right := range s.Rights {
		missing = append(missing, right.String())
	}
	text := strings.Join(missing, "\n")
	require.Contains(t, text, "you cannot list reports.openreports.io in namespace team")
	require.Contains(t, text, "you cannot list clusterverificationpolicies.landwaiter.dev")
	require.Equal(t, []string{"ClusterVerificationPolicy", "Tenant"}, s.Namespaces[0].Unreadable)
	require.True(t, s.Namespaces[0].Unread)

	_, err := reads(t, []string{"Namespace"}).Status(t.Context(), Scope{All: true}, today())
	require.ErrorContains(t, err, "you cannot list namespaces")
}

// The server looks at the time once an hour.
func TestStatusSaysThatAnExceptionHasExpiredWhateverItsConditionsSay(t *testing.T) {
	x := &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: "old"},
		Spec: v1beta1.ExceptionSpec{Images: []string{"**"}, Namespaces: []string{"team"}, Reason: "OPS-1", Until: today().Add(-time.Minute).Format(time.RFC3339)}}
	x.Status.Conditions = []metav1.Condition{{Type: "Effective", Status: metav1.ConditionTrue},
		{Type: "NeedsReview", Status: metav1.ConditionTrue, Reason: "RuleTooBroad"}}
	found := statusOf(t, reads(t, nil, x), Scope{All: true}).Resources
	require.Len(t, found, 1)
	require.Equal(t, "Expired", found[0].Reason)
	require.Contains(t, found[0].Message, "it expired at")
}

// A team is sent to no role that shows it the others.
func TestStatusSaysWithoutARoleWhatNamesOtherTeams(t *testing.T) {
	unread := []string{"ClusterException", "ClusterQuota"}
	s := statusOf(t, reads(t, unread), one("team"))
	require.Empty(t, s.Rights)
	require.Contains(t, s.Notes(), "not shown, because these name other teams: clusterexceptions, clusterquotas")
	require.NotContains(t, strings.Join(s.Notes(), "\n"), "landwaiter-")
	require.False(t, s.Unknown())
	require.True(t, statusOf(t, reads(t, []string{"Tenant"}), one("team")).Unknown(), "a Tenant may have the namespace")
	all := statusOf(t, reads(t, unread), Scope{All: true})
	require.Len(t, all.Rights, 2, "whoever sees all namespaces may know every team")
	require.True(t, all.Unknown())
}

func TestStatusListsWhatIsNotReadyNotEffectiveOrExpires(t *testing.T) {
	conditions := func(ready, effective, expires metav1.ConditionStatus) v1beta1.Status {
		return v1beta1.Status{Conditions: []metav1.Condition{{Type: "Ready", Status: ready, Reason: "R"}, {Type: "Effective", Status: effective, Reason: "E"},
			{Type: "ExpiresSoon", Status: expires, Reason: "X"}}}
	}
	store := func(namespace, name string, s v1beta1.Status) *v1beta1.TrustStore {
		return &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: v1beta1.TrustStoreStatus{Status: s}}
	}
	mandatory := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "mandatory"},
		Spec: v1beta1.VerificationPolicySpec{Scope: v1beta1.PolicyScopeMandatory}}
	mandatory.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "R"}}
	refused := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Spec: v1beta1.VerificationPolicySpec{DefaultAction: "Perhaps"}}
	refused.Spec.Scope = "Perhaps"
	fallback := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fallback"}, Spec: v1beta1.VerificationPolicySpec{DefaultAction: "Perhaps"}}
	s := statusOf(t,
		reads(t, nil, refused, fallback, store("team", "good", conditions("True", "True", "False")), store("team", "idle", conditions("True", "False", "False")),
			store("team", "ends", conditions("True", "True", "True")), store("team", "broken", conditions("False", "False", "False")),
			store("other", "theirs", conditions("False", "False", "True")), mandatory), one("team"))
	var got []string
	for _, a := range s.Namespaces[0].Resources {
		got = append(got, a.Condition+" "+a.Source.String())
	}
	require.Equal(t, []string{"Ready TrustStore team/broken", "ExpiresSoon TrustStore team/ends", "Effective TrustStore team/idle"}, got)
	require.Equal(t, []string{"mandatory", "refused"}, s.Namespaces[0].Mandatory, "a scope that is none may be any")
	require.Len(t, s.Resources, 1)
	require.True(t, s.NeedsAttention())
}

func TestStatusOfANamespaceThatDoesNotExistSaysSo(t *testing.T) {
	s := statusOf(t, reads(t, nil), one("gone"))
	require.Equal(t, []verify.Namespace{"gone"}, s.Missing)
	require.Empty(t, s.Namespaces)
}

func TestANoteOfAReviewNeedsNoAttention(t *testing.T) {
	for _, c := range []struct {
		kind   string
		reason policy.Reason
		want   bool
	}{
		{v1beta1.KindVerificationPolicy, policy.ReasonRuleTooBroad, false},
		{v1beta1.KindClusterVerificationPolicy, policy.ReasonRuleTooBroad, true},
		{v1beta1.KindVerificationPolicy, policy.ReasonRuleNeverReached, true},
		{v1beta1.KindVerifier, policy.ReasonPlaceholder, false},
		{v1beta1.KindVerifier, policy.ReasonIdentityForAnyone, true},
	} {
		a := Attention{Source: policy.ObjectRef{Kind: c.kind, Name: "x"}, Condition: v1beta1.ConditionNeedsReview, Reason: string(c.reason)}
		require.Equal(t, c.want, a.NeedsAttention(), "%s %s", c.kind, c.reason)
	}
}

func TestStatusSaysHowOldItIsWhileLandwaiterMayNotAnswer(t *testing.T) {
	report := reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf("pass", "", "good", runsAs("r/good")))
	fields := report.GetManagedFields()
	fields[0].Time = &metav1.Time{Time: today().Add(-10 * time.Minute)}
	report.SetManagedFields(fields)
	p, scope := reads(t, nil, report), one("team")
	require.NotContains(t, strings.Join(statusOf(t, p, scope).Notes(), "\n"), "up to date")
	scope.Stopped = today().Add(-5 * time.Minute)
	s := statusOf(t, p, scope)
	require.Contains(t, s.Notes(), "Landwaiter may not answer, so this may be out of date: it last renewed its Lease at 2026-11-22T11:55:00Z, and the latest "+
		"report here is of 2026-11-22T11:50:00Z, 10m0s ago; run landwaiter check")
	require.True(t, s.Unknown())

	scope.Stopped, scope.Unwatched = time.Time{}, "you cannot get leases.coordination.k8s.io in namespace landwaiter-system"
	s = statusOf(t, p, scope)
	require.Contains(t, s.Notes(), "you cannot get leases.coordination.k8s.io in namespace landwaiter-system, so nobody can tell from here whether Landwaiter "+
		"still answers and this is up to date, and the latest report here is of 2026-11-22T11:50:00Z, 10m0s ago; a cluster admin can, with landwaiter check")
	require.False(t, s.Unknown(), "most teams may not")
}

func TestAnImageThatFailsAndIsExemptSaysByWhichEntry(t *testing.T) {
	p := reads(t, nil, reportOf("team", "landwaiter-running", "running", "landwaiter", resultOf("fail", "no signature", "tool", runsAs("r/other/tool:v1")),
		resultOf("fail", "no signature", "bad", runsAs("r/bad")), resultOf("fail", "no signature", "untagged", runsAs("r/a:latest"))))
	scope := one("team")
	scope.Action = func(string, map[string]string) (string, bool, []string) {
		return "deny", false, []string{"r/a", "r/other/*", "r/b", "r/c"}
	}
	scope.LeftOut = constraint.LeftOut
	n := statusOf(t, p, scope).Namespaces[0]
	var exempt []string
	for _, r := range n.Running {
		exempt = append(exempt, r.Image+" "+r.ExemptImage)
	}
	require.ElementsMatch(t, []string{"r/bad ", "r/other/tool:v1 r/other/*", "r/a:latest r/a"}, exempt)
	require.Equal(t, 4, n.ExemptImages)
	require.Equal(t, ", but not for 4 exempt images or paths (exemptImages of the constraint: r/a, r/other/*, r/b, and 1 more)", n.ButNotFor())
}

func TestAnExceptionThatMandatoryPoliciesLimitIsListed(t *testing.T) {
	x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "move"}, Spec: v1beta1.ExceptionSpec{Until: "2100-01-01T00:00:00Z"}}
	x.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"},
		{Type: "Effective", Status: "True", Reason: string(policy.ReasonMandatoryHolds), Message: "it allows some"}}
	s := statusOf(t, reads(t, nil, x), one("team"))
	require.Equal(t,
		[]Attention{{Source: policy.ObjectRef{Kind: "Exception", Namespace: "team", Name: "move"}, Condition: "Effective", Reason: "MandatoryHolds",
			Message: "it allows some", Partly: true}}, s.Namespaces[0].Resources)
	require.True(t, s.NeedsAttention())
}
