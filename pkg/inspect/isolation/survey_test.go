package isolation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func tenants(names ...string) []*v1beta1.Tenant {
	all := make([]*v1beta1.Tenant, len(names))
	for i, name := range names {
		all[i] = &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{HomeNamespace: name}}
	}
	return all
}

// ending is tenants, of which one is being deleted.
func ending(one string, names ...string) []*v1beta1.Tenant {
	all := tenants(names...)
	for _, tenant := range all {
		if tenant.Name == one {
			tenant.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
	}
	return all
}

func TestEachTeamTriesToReachTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		tenants []*v1beta1.Tenant
		want    []string
		err     string
	}{
		"all":                   {Options{}, tenants("a", "b", "c"), []string{"a>b", "b>c", "c>a"}, ""},
		"one":                   {Options{Tenant: "b"}, tenants("a", "b", "c"), []string{"b>c"}, ""},
		"two":                   {Options{Tenant: "b", Other: "a"}, tenants("a", "b", "c"), []string{"b>a"}, ""},
		"all against one":       {Options{Other: "a"}, tenants("a", "b", "c"), []string{"b>a", "c>a"}, ""},
		"nobody else":           {Options{}, tenants("a"), []string{"a>"}, ""},
		"nobody":                {Options{}, nil, nil, ""},
		"an unknown team":       {Options{Tenant: "x"}, tenants("a"), nil, "there is no Tenant x"},
		"an unknown other team": {Options{Tenant: "a", Other: "x"}, tenants("a"), nil, "there is no Tenant x"},
		"itself":                {Options{Tenant: "a", Other: "a"}, tenants("a"), nil, "--tenant and --other must differ"},
		"one that ends":         {Options{}, ending("b", "a", "b", "c"), []string{"a>c", "c>a"}, ""},
		"one that ends, named":  {Options{Tenant: "b"}, ending("b", "a", "b", "c"), []string{"b>c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(c.tenants, c.options)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, pair := range chosen {
				got = append(got, pair[0].Name+">"+nameOf(pair[1]))
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestPeopleAreThoseOfTheTenantAndThoseWhoAreBound(t *testing.T) {
	tenant := tenants("a")[0]
	tenant.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "admins"}}
	tenant.Spec.Access.Developers = []v1beta1.TenantSubject{{Kind: v1beta1.SubjectUser, Name: "dan"},
		{Kind: v1beta1.SubjectServiceAccount, Namespace: "ci", Name: "runner"}}
	tenant.Spec.Reconciler = &v1beta1.TenantReconciler{}
	bound := func(role string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "a-web", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
			Subjects: subjects}
	}
	var got []string
	found, left := people(tenant, []rbacv1.RoleBinding{
		bound("edit", rbacv1.Subject{Kind: "User", Name: "dan"}, rbacv1.Subject{Kind: "User", Name: "eve"}, rbacv1.Subject{Kind: "Group", Name: "system:masters"}),
		bound("landwaiter-reference-reader", rbacv1.Subject{Kind: "User", Name: "nobody"}),
	})
	require.Zero(t, left)
	for _, p := range found {
		got = append(got, p.String())
	}
	require.Equal(t, []string{"admin Group admins", "developer User dan", "developer ServiceAccount ci/runner", "Git account ServiceAccount a/a",
		"bound User eve (by RoleBinding a-web/b)"}, got)
}

func TestEveryCaseHasAnIDOfItsOwnAndNamesWhatItShows(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		require.False(t, seen[c.id], c.id)
		seen[c.id] = true
		require.NotEmpty(t, c.tries, c.id)
		require.NotEmpty(t, c.shows, c.id)
		require.NotEmpty(t, c.who, c.id)
	}
	require.Greater(t, len(seen), 25)
}

func TestAHoleIsAFindingAndWhatWasNotTriedIsNotChecked(t *testing.T) {
	found, unchecked := Findings(nil)
	require.Empty(t, found)
	require.Len(t, unchecked, 1, "nothing was tried")
	fault := resource.Finding{ID: "GuardrailMissing", Message: "the guardrail does not exist"}
	found, unchecked = Findings([]Result{{Case: "a", Outcome: Held}, {Case: "b", Outcome: NotTried, Why: "it is gone", Fix: "look"},
		{Case: "c", Outcome: NotHeld, Tenant: "iris", Who: "ada", Why: "may read Secrets", Fix: "take the role away"},
		{Case: "guardrail-x", Outcome: NotHeld, faults: []resource.Finding{fault}}})
	require.Equal(t, []resource.Unchecked{{IDs: []string{"b"}, Why: "it is gone; look"}}, unchecked)
	require.Equal(t, []resource.Finding{{ID: "c", Severity: resource.Error, Tenant: "iris", Message: "ada: may read Secrets", Fix: "take the role away"}, fault},
		found)
}

func TestWhatLimitsLeaveOutIsSaid(t *testing.T) {
	tenant := tenants("a")[0]
	for i := range 30 {
		tenant.Spec.Access.Admins = append(tenant.Spec.Access.Admins, v1beta1.TenantSubject{Kind: v1beta1.SubjectUser, Name: fmt.Sprint("u", i)})
	}
	some, left := people(tenant, nil)
	require.Len(t, some, maxPeople)
	require.Equal(t, 30-maxPeople, left)
	p := pair{team: &team{tenant: tenant}}
	require.Empty(t, p.leftOut(0))
	p.team.left.people, p.team.left.objects = 6, 2
	results := p.leftOut(3)
	require.Len(t, results, 3)
	for i, says := range []string{"6 more people", "3 more namespaces", "2 more objects"} {
		require.Equal(t, NotTried, results[i].Outcome)
		require.Contains(t, results[i].Why, says)
		require.NotEmpty(t, results[i].Fix)
	}
}

func TestOnlyGuardrailsOfOursRefuseAndOnlyWhereRightsDoNot(t *testing.T) {
	try := &scene{guard: check.Guardrails{Release: types.NamespacedName{Name: "landwaiter"},
		Policies: []admissionv1.ValidatingAdmissionPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-tenant-labels"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "company-labels"}}}}}
	try.guarding = guardrailNames(try.guard)
	by := func(name string) answer { return answer{kind: refused, by: byGuardrail + name} }
	guarded := request{guardrail: "tenant-labels"}
	require.True(t, try.ours(by("landwaiter-tenant-labels"), guarded).refusedRightly(guarded))
	require.False(t, try.ours(by("company-labels"), guarded).refusedRightly(guarded), "a policy of the company")
	require.False(t, try.ours(by("landwaiter-tenant-labels"), request{}).refusedRightly(request{}), "permissions let it pass")
	require.True(t, try.ours(answer{kind: refused, by: byRights}, request{}).refusedRightly(request{}))
}
