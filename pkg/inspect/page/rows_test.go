package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// ran is a namespace of Tenant iris with one container for each result.
func ran(name string, results ...string) live.NamespaceStatus {
	n := live.NamespaceStatus{Namespace: verify.Namespace(name), Tenant: "iris", Reported: len(results) > 0}
	for i, result := range results {
		n.All = append(n.All, live.Running{Workload: "Deployment/web", Image: fmt.Sprintf("r.example.com/app-%d:1", i), Result: result})
	}
	return n
}

func TestAnImageThatNobodyVerifiedIsNotCountedAsVerified(t *testing.T) {
	for name, row := range map[string]struct {
		n    live.NamespaceStatus
		want counts
	}{
		"verified":                         {ran("a", "pass", "pass"), counts{Running: 2, Verified: 2}},
		"allowed by a rule without a look": {ran("a", "pass", "skip"), counts{Running: 2, Verified: 1, Unverified: 1}},
		"every result": {ran("a", "pass", "skip", "warn", "error", "fail", "?"),
			counts{Running: 6, Verified: 1, Unverified: 1, Warned: 1, Undecided: 1, Fails: 2}},
		"results that are not listed": {live.NamespaceStatus{Reported: true, LeftOut: 7}, counts{LeftOut: 7}},
		"no report":                   {ran("a"), counts{Missing: "no report", Unknown: 1}},
		"reports that cannot be read": {live.NamespaceStatus{Unread: true}, counts{Missing: "reports are not readable", Unknown: 1}},
	} {
		require.Equal(t, row.want, counted(row.n), name)
	}
}

func TestNamespacesWithoutAReportDoNotLookLikeGoodOnes(t *testing.T) {
	source := shop("")
	source.status = live.Status{Namespaces: []live.NamespaceStatus{ran("good", "pass"), ran("silent"), ran("unsigned", "skip"), ran("worse", "fail"), ran("zero")}}
	source.status.Namespaces[2].Denied = []live.Denial{{Image: "r.example.com/app-0:1", Allowed: "2026-11-27T00:00:00Z"}}
	m := clusterOf(source.status, Checked{}, "", 1, now())
	var order []string
	for _, row := range m.Namespaces {
		order = append(order, row.Name)
	}
	require.Equal(t, []string{"worse", "silent", "zero", "good", "unsigned"}, order, "the unknown ones come after trouble, before what is fine")
	require.Equal(t, counts{Running: 3, Verified: 1, Unverified: 1, Fails: 1, Unknown: 2}, m.Teams[0].counts)

	s := siteOf(t, source)
	text := shown(t, s, "/")
	require.Contains(t, text, `<td class="n">5, 2 without a report</td>`, "the sum says what it lacks")
	require.Contains(t, text, `silent</a></th><td>iris</td><td colspan="8" class="unknown">no report: what runs is not known</td>`)
	require.Contains(t, text, `<td class="n">1</td><td class="n">0</td><td class="n unverified">1</td>`)
	require.Contains(t, shown(t, s, "/namespaces/silent"), "This namespace has no report, so what runs here and what failed verification is not known.")
	require.Contains(t, shown(t, s, "/namespaces/unsigned"), `<span class="badge unverified">allowed (not verified)</span> by now`,
		"nor does a denial of the past say more")
}

func TestExemptNamespacesAreAStageOfTheirOwn(t *testing.T) {
	exempt := ran("kube-system", "skip")
	exempt.Exempt = true
	m := clusterOf(live.Status{Namespaces: []live.NamespaceStatus{exempt, ran("a", "pass")}},
		Checked{Actions: map[verify.Namespace]string{"kube-system": "not asked", "a": "not asked"}}, "", 1, time.Time{})
	require.Equal(t, []stageCount{{stageExempt, 1}, {stageNone, 1}}, m.Teams[0].Stages)
}

func TestAPageSaysThatSomeImagesAreNeverVerified(t *testing.T) {
	n := ran("a", "pass")
	n.ExemptImages = 2
	m := namespaceOf(live.Status{Namespaces: []live.NamespaceStatus{n}}, "a", map[verify.Namespace]string{"a": "deny"}, 1, time.Time{})
	require.Equal(t, ", but not for 2 exempt images or paths (exemptImages of the constraint)", m.Never)
}
