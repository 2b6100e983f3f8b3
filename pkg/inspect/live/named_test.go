package live

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const ones = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

func exceptionIn(namespace string, images ...string) v1beta1.Object {
	return &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Spec: v1beta1.ExceptionSpec{Images: images}}
}

func clusterExceptionFor(namespaces []string, images ...string) v1beta1.Object {
	return &v1beta1.ClusterException{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1beta1.ExceptionSpec{Namespaces: namespaces, Images: images}}
}

func TestAPreviewAnswersForTheImagesThatAnExceptionNames(t *testing.T) {
	iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", Namespaces: []string{"iris-web"}}}
	runs := []Use{{Namespace: "shop", Image: "r.example.com/app:v1", Pods: 1}, {Namespace: "shop", Image: "not an image"},
		{Namespace: "iris-web", Image: "r.example.com/app@" + ones}}
	all := []verify.Namespace{"iris", "iris-web", "shop"}
	for name, row := range map[string]struct {
		exception v1beta1.Object
		scope     []verify.Namespace
		want      []string // images that are shown, with their namespace
	}{
		"one that runs":                        {exceptionIn("shop", "r.example.com/app"), all, []string{"shop r.example.com/app:v1"}},
		"one that does not run":                {exceptionIn("shop", "r.example.com/tool"), all, []string{"shop r.example.com/tool"}},
		"one that does not run, by its digest": {exceptionIn("shop", "r.example.com/app@"+ones), all, []string{"shop r.example.com/app@" + ones}},
		"a wildcard that something runs of":    {exceptionIn("shop", "r.example.com/**"), all, []string{"shop r.example.com/app:v1"}},
		"a wildcard that nothing runs of":      {exceptionIn("shop", "s.example.com/**"), all, nil},
		"what is no pattern":                   {exceptionIn("shop", "UPPER", "r.example.com/a:tag"), all, nil},
		"several": {exceptionIn("shop", "r.example.com/app", "r.example.com/tool", "s.example.com/*"), all,
			[]string{"shop r.example.com/app:v1", "shop r.example.com/tool"}},
		"a namespace that is not looked at": {exceptionIn("other", "r.example.com/tool"), all, nil},
		"the home namespace of a Tenant": {exceptionIn("iris", "r.example.com/tool"), []verify.Namespace{"iris-web"},
			[]string{"iris-web r.example.com/tool"}},
		"the home namespace, by digest": {exceptionIn("iris", "r.example.com/app@"+ones), []verify.Namespace{"iris-web"},
			[]string{"iris-web r.example.com/app@" + ones}},
		"the cluster's, for a namespace": {clusterExceptionFor([]string{"shop", "gone"}, "r.example.com/tool"), all, []string{"shop r.example.com/tool"}},
		"the cluster's, for every namespace": {clusterExceptionFor([]string{"*"}, "r.example.com/app"), all,
			[]string{"shop r.example.com/app:v1", "iris-web r.example.com/app@" + ones}},
		"for every namespace, and nothing runs it": {clusterExceptionFor([]string{"*"}, "r.example.com/tool"), all, nil},
		"for every namespace, in one": {clusterExceptionFor([]string{"*"}, "r.example.com/tool"), []verify.Namespace{"shop"},
			[]string{"shop r.example.com/tool"}},
		"a delegation": {
			&v1beta1.ClusterException{Spec: v1beta1.ExceptionSpec{Delegate: &v1beta1.ExceptionDelegation{Images: []string{"**"}}}}, all, nil},
		"no exception": {iris, all, nil},
	} {
		t.Run(name, func(t *testing.T) {
			change := Change{Objects: resource.Objects{Resources: []v1beta1.Object{row.exception}}}
			uses := change.Named(runs, State{Objects: resource.Objects{Resources: []v1beta1.Object{iris}}, Namespaces: row.scope})
			var shown []string
			for _, u := range uses {
				if same := (Row{Use: u}); same.Shows() && u.Named {
					shown = append(shown, string(u.Namespace)+" "+u.Image)
				}
			}
			require.ElementsMatch(t, row.want, shown)
			require.GreaterOrEqual(t, len(uses), len(runs))
			for _, u := range runs {
				require.False(t, u.Named, "the list that was given is not changed")
			}
		})
	}
}

// asked is a decider that says whether it was asked about an image with its evidence.
type asked struct{}

func (asked) Verify(_ context.Context, _ verify.Namespace, ref image.Reference) verify.Result {
	return verify.Result{Verdict: policy.Unverified(policy.ObjectRef{}, "verified "+ref.Name())}
}

func (asked) Unproven(_ context.Context, _ verify.Namespace, ref image.Reference) verify.Result {
	return verify.Result{Verdict: policy.Unverified(policy.ObjectRef{}, "unproven "+ref.Name())}
}

func TestNoTagIsLookedUpForAnImageThatNothingRuns(t *testing.T) {
	change := Change{
		Objects: resource.Objects{Resources: []v1beta1.Object{exceptionIn("shop", "r.example.com/app", "r.example.com/tool", "r.example.com/other@"+ones)}}}
	state := State{Namespaces: []verify.Namespace{"shop"}}
	said := map[string]string{}
	for _, row := range Preview(t.Context(), change.Named([]Use{{Namespace: "shop", Image: "r.example.com/app", Pods: 1}}, state), state.Judging(asked{}),
		state.Judging(asked{}), func() {}) {
		require.Equal(t, row.Before, row.After)
		said[row.Image] = row.After.Verdict.Reason
	}
	const allowed = "allowed without verification: "
	require.Equal(t, map[string]string{"r.example.com/app": allowed + "verified r.example.com/app", "r.example.com/tool": allowed + "unproven r.example.com/tool",
		"r.example.com/other@" + ones: allowed + "verified r.example.com/other"}, said)
}

// A developer may read neither the Tenant's home namespace nor the cluster's rules.
func TestAStatusNamesNoPolicyThatNobodyKnowsOf(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"},
		Spec: v1beta1.TenantSpec{HomeNamespace: "gone", Namespaces: []string{"team"}, Contact: "#iris"}}
	unread := func(kind, namespace string) resource.Unreadable {
		return resource.Unreadable{Source: policy.ObjectRef{Kind: kind, Namespace: namespace}, Why: "you cannot list them"}
	}
	for name, objects := range map[string]resource.Objects{
		"the home is not there": {Resources: []v1beta1.Object{tenant}},
		"own policies cannot be read": {Resources: []v1beta1.Object{tenant}, Person: true,
			Unreadable: []resource.Unreadable{unread(v1beta1.KindVerificationPolicy, "team")}},
		"the cluster's cannot be read": {Resources: []v1beta1.Object{tenant}, Person: true,
			Unreadable: []resource.Unreadable{unread(v1beta1.KindClusterVerificationPolicy, "")}},
		"the home's cannot be read": {Resources: []v1beta1.Object{tenant}, Person: true,
			Unreadable: []resource.Unreadable{unread(v1beta1.KindVerificationPolicy, "gone")}},
	} {
		objects.Namespaces = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}
		if name != "the home is not there" {
			objects.Namespaces = append(objects.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}})
		}
		s := StatusOf(objects, nil, time.Now())
		at := slices.IndexFunc(s.Namespaces, func(n NamespaceStatus) bool { return n.Namespace == "team" })
		require.GreaterOrEqual(t, at, 0, name)
		require.Equal(t, []Contact{{policy.ObjectRef{Kind: "Tenant", Name: "iris"}, "#iris"}}, s.Namespaces[at].Contacts, name)
	}
}

func TestAStatusSaysWhomToAskAndWhatToRun(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"},
		Spec: v1beta1.TenantSpec{HomeNamespace: "other", Namespaces: []string{"team"}, Contact: "#iris"}}
	own := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
	baseline := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "baseline"},
		Spec: v1beta1.VerificationPolicySpec{Scope: v1beta1.PolicyScopeMandatory, Contact: "security@example.com"}}
	unused := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "unused"},
		Spec: v1beta1.VerificationPolicySpec{Contact: "nobody@example.com"}}
	report := reportOf("team", "landwaiter-denied", v1beta1.ReportDenied, v1beta1.ReportSource, resultOf("fail", "no signature was found", "shop",
		map[string]any{v1beta1.PropertyImage: "r.example.com/a:1", v1beta1.PropertyCount: "1", v1beta1.PropertyLast: "2026-11-22T11:00:00Z",
			v1beta1.PropertyCommand: "cosign sign x", v1beta1.PropertyContact: "#iris\nsecond line"}))
	s := statusOf(t, reads(t, nil, tenant, own, baseline, unused, report), Scope{Namespaces: []verify.Namespace{"team"}})
	n := s.Namespaces[0]
	require.Equal(t,
		[]Contact{{policy.ObjectRef{Kind: "Tenant", Name: "iris"}, "#iris"}, {policy.ObjectRef{Kind: "VerificationPolicy", Namespace: "team", Name: "p"}, "#iris"},
			{policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "baseline"}, "security@example.com"}}, n.Contacts)
	require.Equal(t, "cosign sign x", n.Denied[0].Command)
	require.Equal(t, "#iris second line", n.Denied[0].Contact)
}

func TestAnImageThatSeveralExceptionsNameIsShownOnce(t *testing.T) {
	change := Change{
		Objects: resource.Objects{Resources: []v1beta1.Object{exceptionIn("shop", "r.example.com/tool", "r.example.com/tool"),
			exceptionIn("shop", "r.example.com/tool"), clusterExceptionFor([]string{"shop"}, "r.example.com/tool")}}}
	got := change.Named(nil, State{Namespaces: []verify.Namespace{"shop"}})
	require.Equal(t, []Use{{Namespace: "shop", Image: "r.example.com/tool", Named: true, Untagged: true}}, got)
}
