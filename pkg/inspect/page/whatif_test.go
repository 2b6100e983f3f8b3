package page

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
	"github.com/landwaiter/landwaiter/test/kit/judged"
)

func TestAWhatIfWithoutANamespaceCoversAll(t *testing.T) {
	source := shop("")
	var asked []verify.Namespace
	source.preview = func(namespace verify.Namespace, _ string) (Preview, error) {
		asked = append(asked, namespace)
		return Preview{}, nil
	}
	s := siteOf(t, source)
	require.Equal(t, http.StatusOK, previewed(s, "", "x").Code)
	require.Equal(t, http.StatusOK, previewed(s, " shop ", "x").Code)
	require.Equal(t, []verify.Namespace{verify.Cluster, "shop"}, asked)
	require.Contains(t, previewed(s, "", "x").Body.String(), "No image runs in any namespace")

	source.preview = func(verify.Namespace, string) (Preview, error) {
		return Preview{}, fmt.Errorf("read: %w", live.MissingError{Right: live.Right{Verb: "list"}})
	}
	w := previewed(s, "", "x")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "enter one namespace, because you cannot list all")
}

func TestAWhatIfOfManyNamespacesShowsWhatBreaksFirst(t *testing.T) {
	row := func(namespace string, then policy.Outcome) live.Row {
		result := func(o policy.Outcome) verify.Result { return verify.Result{Verdict: judged.As(o, policy.Verdict{})} }
		return live.Row{Use: live.Use{Namespace: verify.Namespace(namespace), Image: "r.example.com/a:1"}, Before: result(policy.Allowed), After: result(then)}
	}
	rows := []live.Row{}
	for i := range 2 * rowsOfPage {
		rows = append(rows, row(fmt.Sprintf("a-%03d", i), policy.Undecided))
	}
	rows = append(rows, row("z", policy.Denied))
	rows[0].Lost = []live.Loss{{Rule: 2}}
	m := whatIfModel{}
	m.answer(Preview{Rows: rows, Totals: live.Totals(rows)})
	require.Len(t, m.Losses, 1)
	require.Equal(t, "z", m.Rows[0].Namespace)
	require.Equal(t, "z", m.Totals[0].Namespace)
	require.Len(t, m.Rows, rowsOfPage)
	require.Len(t, m.Totals, rowsOfPage)
	require.Equal(t, []int{1, 2 * rowsOfPage, rowsOfPage + 1, rowsOfPage + 1, 2*rowsOfPage + 1}, []int{m.Breaks, m.Unknown, m.More, m.Others, m.Images})
}

func TestAPolicyThatWarnsFillsTheFormAsItWouldDeny(t *testing.T) {
	source := shop("")
	warns := &v1beta1.ClusterVerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warns", UID: "7",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	warns.Spec.EnforcementAction, warns.Spec.DefaultAction = v1beta1.EnforcementActionWarn, "Deny"
	levels := source.status.Namespaces[0].Levels
	levels[1].Resources = append(levels[1].Resources,
		live.Placed{Ref: policy.ObjectRef{Kind: "ClusterVerificationPolicy", Name: "warns"}, Kind: "VerificationPolicy", Applies: true, Warns: true, Policy: warns})
	s := siteOf(t, source)
	link := regexp.MustCompile(`<a href="([^"]+)">What if it denied\?`).FindStringSubmatch(shown(t, s, "/namespaces/shop"))
	require.NotNil(t, link)
	text := html.UnescapeString(shown(t, s, html.UnescapeString(link[1])))
	require.Contains(t, text, "apiVersion: landwaiter.dev/v1beta1\nkind: ClusterVerificationPolicy\nmetadata:\n  name: warns\nspec:\n  defaultAction: Deny\n  "+
		"enforcementAction: Deny\n</textarea>")
	require.Equal(t, v1beta1.EnforcementActionWarn, warns.Spec.EnforcementAction, "the facts stay as they were read")

	for _, address := range []string{"/whatif?namespace=shop&deny=VerificationPolicy+shop%2Fown", "/whatif?namespace=other&deny=ClusterVerificationPolicy+warns",
		"/whatif?deny=ClusterVerificationPolicy+warns"} {
		text := shown(t, s, address)
		require.Contains(t, text, `role="alert"`, address)
		require.False(t, strings.Contains(text, "apiVersion"), address)
	}
}
