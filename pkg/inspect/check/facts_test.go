package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestARegistryWithoutReferrersIsANote(t *testing.T) {
	for bad, want := range map[bool]int{true: 1, false: 0} {
		v := &view{Inventory: &Inventory{Options: Options{Namespace: "landwaiter-system"}, Now: time.Now(),
			Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}}},
			Facts: &resource.Facts{
				List: []resource.Fact{{ID: ReferrersMissing, Bad: bad, Message: "registry a.example.com lacks the referrers API", About: "a.example.com"}}}}}
		var found []resource.Finding
		badFacts(v, func(f resource.Finding) { found = append(found, f) })
		require.Len(t, found, want)
		for _, f := range found {
			require.Equal(t, ReferrersMissing, f.ID)
			require.Equal(t, resource.Note, f.Severity)
			require.Contains(t, f.Message, "a.example.com")
			require.NotEmpty(t, f.Keep)
			require.Empty(t, f.Command, "nothing in the cluster mends it")
		}
	}
}

func TestWhatLandwaiterHasNotPublishedSaysWhyAndWhatToDo(t *testing.T) {
	v := &view{Inventory: &Inventory{Options: Options{Namespace: "landwaiter-system"}, Now: time.Now(),
		Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}}},
		Facts: &resource.Facts{List: []resource.Fact{{ID: ClockSkew}, {ID: RegistryUnreachable}}}}}
	require.Equal(t, []resource.Unchecked{
		{IDs: []string{RedisUnreachable, RedisPermissions, RedisEviction}, Unpublished: true,
			Why: "Landwaiter checks this only if it uses Redis (--redis-url), and Redis answers and permits INFO; if so, run check again in a minute"},
		{IDs: []string{ReferrersMissing}, Unpublished: true,
			Why: "Landwaiter knows this only of registries that a ClusterStore lists by name, once it has looked for signatures there"},
	}, unknownFacts(v))
	why := func(list ...resource.Fact) string {
		v.Facts.List = append([]resource.Fact{{ID: ClockSkew}, {ID: RegistryUnreachable}, {ID: ReferrersMissing}}, list...)
		require.Len(t, unknownFacts(v), 1)
		return unknownFacts(v)[0].Why
	}
	require.Contains(t, why(resource.Fact{ID: RedisUnreachable}, resource.Fact{ID: RedisPermissions}), "permit INFO (ACL SETUSER")
	require.Contains(t, why(resource.Fact{ID: RedisUnreachable, Bad: true}), "Redis does not answer Landwaiter")
	v.Facts.List = nil
	require.Len(t, unknownFacts(v), 4)
}
