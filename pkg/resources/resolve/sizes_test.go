package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// laxPolicies are policies of some 60 KiB each in namespace shop, which allow everything.
func laxPolicies(n int) []v1beta1.Object {
	all := make([]v1beta1.Object, n)
	for i := range all {
		name := fmt.Sprintf("p%04d", i)
		p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		p.Spec.DefaultAction = v1beta1.DefaultActionAllow
		p.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{"r.example.com/" + strings.Repeat("x", 60_000)}, Action: v1beta1.RuleActionAllow}}
		all[i] = p
	}
	return all
}

// keptTogether reduces resources as a replica does, in the order in which they come.
func keptTogether(t *testing.T, objects []v1beta1.Object) {
	t.Helper()
	var room resource.Room
	for _, object := range objects {
		require.NoError(t, room.Keep(object))
	}
}

func shopAndOther(t *testing.T, more []v1beta1.Object) resource.Objects {
	t.Helper()
	o := written.Objects(t, written.Namespace("shop", "1"), written.Namespace("other", "2"),
		written.Object("ClusterVerificationPolicy", "", "lax", "defaultAction: Allow"))
	o.Resources = append(o.Resources, more...)
	return o
}

func TestANamespaceWithMoreSpecsThanAreKeptDenies(t *testing.T) {
	for name, n := range map[string]int{"as many as may be": 200, "too many, too": 1000} {
		t.Run(name, func(t *testing.T) {
			many := laxPolicies(n)
			s, _ := written.Compiled(shopAndOther(t, many))
			whole := conditions.Reports(s, "shop")
			keptTogether(t, many)
			s, _ = written.Compiled(shopAndOther(t, many))
			require.Equal(t, policy.Denied, written.Verdict(t, s, "shop", "r.example.com/app").Outcome())
			require.Equal(t, policy.Allowed, written.Verdict(t, s, "other", "r.example.com/app").Outcome())
			reports := conditions.Reports(s, "shop")
			require.Len(t, reports, n)
			require.Equal(t, whole, reports, "nobody can tell which of them were kept")
			if n <= 256 {
				report := reports[resource.RefOf(many[0])]
				require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason)
				require.Contains(t, report.Ready.Message, "of namespace shop take 11")
				require.Contains(t, report.Ready.Message, "KiB, the limit is 4096 KiB: delete some")
			}
			next, _ := s.Next(resolve.Group(shopAndOther(t, laxPolicies(1))).Only("shop"), nil)
			require.NotContains(t, written.Verdict(t, next, "shop", "r.example.com/app").Reason, "4096 KiB")
		})
	}
}

// Which specs are withheld depends on the order in which they came, and replicas get them in different
// orders: an alert compares their sums.
func TestSumsAreEqualWhicheverSpecsAreWithheld(t *testing.T) {
	first, second := laxPolicies(100), laxPolicies(100)
	keptTogether(t, first)
	slices.Reverse(second)
	keptTogether(t, second)
	require.NotEqual(t, resource.Missing(first[0]) == nil, resource.Missing(second[99]) == nil)
	require.Equal(t, sumOf(shopAndOther(t, first)), sumOf(shopAndOther(t, second)))
	require.NotEqual(t, sumOf(shopAndOther(t, first)), sumOf(shopAndOther(t, first[1:])))
}

// A spec that came while there was no room denies like one that cannot be read, until it was
// read again: the cluster's rules do not take its place.
func TestAPolicyWhoseSpecIsWithheldDenies(t *testing.T) {
	many := laxPolicies(100)
	keptTogether(t, many)
	last := many[99:]
	require.Error(t, resource.Missing(last[0]))
	s, problems := written.Compiled(shopAndOther(t, last))
	require.Len(t, problems, 1)
	require.Equal(t, policy.ReasonUnreadable, problems[0].Reason)
	require.Contains(t, problems[0].Message, "the spec is being read again")
	require.Equal(t, policy.Denied, written.Verdict(t, s, "shop", "r.example.com/app").Outcome())
	require.Equal(t, policy.Allowed, written.Verdict(t, s, "other", "r.example.com/app").Outcome())
}

func TestMoreExceptionsThanAreKeptAllowNothingAndDenyNothing(t *testing.T) {
	exceptions := func(n int) resource.Objects {
		o := written.Objects(t, written.Namespace("shop", "1"), written.Object("ClusterException", "", "d", terms(time.Hour, delegates)),
			written.Object("ClusterVerificationPolicy", "", "p", "defaultAction: Allow\nrules: [{images: ['r.example.com/app'], action: Deny}]"))
		for i := range n {
			x := &v1beta1.Exception{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("x%04d", i)}}
			x.Spec.Until, x.Spec.Reason = born.Add(time.Hour).Format(time.RFC3339), "OPS-1"
			x.Spec.Images = append([]string{"r.example.com/app"}, make([]string, 20)...)
			for j := range 20 {
				x.Spec.Images[j+1] = fmt.Sprintf("r.example.com/%s/%d", strings.Repeat("x", 200), j)
			}
			o.Resources = append(o.Resources, x)
		}
		return aged(o)
	}
	s, _ := written.Compiled(exceptions(10))
	require.Equal(t, "Exception shop/x0000", by(t, s, "shop", "r.example.com/app", soon))
	s, _ = written.Compiled(exceptions(1000))
	require.Empty(t, by(t, s, "shop", "r.example.com/app", soon))
	require.Equal(t, policy.Allowed, written.Verdict(t, s, "shop", "r.example.com/tool").Outcome())
	reports := conditions.Reports(s, "shop")
	require.Len(t, reports, 1000)
	for source, report := range reports {
		require.Equal(t, policy.ReasonLimitExceeded, report.Ready.Reason, source)
		require.Contains(t, report.Ready.Message, "the specs of the Exceptions of namespace shop take 4", source)
		require.Contains(t, report.Ready.Message, "the limit is 2048 KiB: delete some")
	}
}
