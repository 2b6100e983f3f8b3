package onboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// asks returns which path Gatekeeper asks for the tags of a namespace, "" if it asks
// none; two Assigns for one place would be a fault.
func asks(t *testing.T, objects []*unstructured.Unstructured, namespace string) string {
	t.Helper()
	paths := map[string]string{}
	for _, object := range objects {
		if object.GetKind() == "Provider" {
			url, _, err := unstructured.NestedString(object.Object, "spec", "url")
			require.NoError(t, err)
			paths[object.GetName()] = strings.TrimPrefix(url, "https://landwaiter.landwaiter-system.svc:443")
		}
	}
	var found []string
	for _, object := range objects {
		if object.GetKind() != "Assign" || !strings.HasSuffix(object.GetName(), "-pods-containers") {
			continue
		}
		only, has, err := unstructured.NestedStringSlice(object.Object, "spec", "match", "namespaces")
		require.NoError(t, err)
		excluded, _, err := unstructured.NestedStringSlice(object.Object, "spec", "match", "excludedNamespaces")
		require.NoError(t, err)
		if has && !slices.Contains(only, namespace) || slices.Contains(excluded, namespace) {
			continue
		}
		provider, _, err := unstructured.NestedString(object.Object, "spec", "parameters", "assign", "externalData", "provider")
		require.NoError(t, err)
		require.Contains(t, paths, provider)
		found = append(found, paths[provider])
	}
	require.LessOrEqual(t, len(found), 1, "%s is asked for twice", namespace)
	return strings.Join(found, "")
}

func TestEachNamespaceIsPinnedWithTheStoresThatCount(t *testing.T) {
	const base, home, own = "/v1/mutate", "/v1/namespaces/home/mutate", "/v1/namespaces/web/mutate"
	for name, c := range map[string]struct {
		policyLevel        v1beta1.PolicyLevel
		homeStores, stores bool // of the home namespace, and of the member web
		pin, byDefault     bool
		web, unknown       string
	}{
		"pinned, no Stores":                                         {pin: true, web: base},
		"pinned, Stores in the home namespace":                      {pin: true, homeStores: true, web: home},
		"pinned, Stores in the home namespace and of its own":       {pin: true, homeStores: true, stores: true, web: own},
		"pinned, Stores of its own alone":                           {pin: true, stores: true, web: own},
		"the Tenant decides: its own Stores do not count":           {policyLevel: v1beta1.PolicyLevelTenant, pin: true, homeStores: true, stores: true, web: home},
		"the Tenant policyLevel, and has none":                      {policyLevel: v1beta1.PolicyLevelTenant, pin: true, stores: true, web: base},
		"the cluster decides: no Stores of the team count":          {policyLevel: v1beta1.PolicyLevelCluster, pin: true, homeStores: true, stores: true, web: base},
		"left, whatever Stores there are":                           {homeStores: true, stores: true},
		"left, where the cluster pins by default":                   {byDefault: true, unknown: base},
		"pinned as by default, Stores in the home namespace":        {byDefault: true, pin: true, homeStores: true, web: home, unknown: base},
		"pinned as by default":                                      {byDefault: true, pin: true, web: base, unknown: base},
		"pinned, and the cluster leaves what is not known as it is": {pin: true, web: base},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "t"},
				Spec: v1beta1.TenantSpec{HomeNamespace: "home", Verification: v1beta1.TenantVerification{PolicyLevel: c.policyLevel}}}
			plan := Mutation{}.Plan([]Pinning{
				{Namespace: "home", Tenant: tenant, Pin: c.pin, Stores: c.homeStores},
				{Namespace: "web", Tenant: tenant, Pin: c.pin, Stores: c.stores},
				{Namespace: "alone", Stores: true, Pin: true},
				{Namespace: "kube-system", Pin: true},
			}, c.byDefault, []string{"kube-system"}, 10)
			require.Equal(t, c.web, asks(t, plan.Objects, "web"))
			require.Equal(t, c.unknown, asks(t, plan.Objects, "not-known-yet"))
			require.Empty(t, asks(t, plan.Objects, "kube-system"))
			require.Equal(t, base, asks(t, plan.Objects, "alone"), "a namespace without a Tenant")
			require.Empty(t, plan.Refused)
		})
	}
}

func TestPastTheLimitTheClustersStoresPinAndThePlanSaysSo(t *testing.T) {
	var namespaces []Pinning
	for i, name := range []string{"young", "old", "older"} {
		tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-i), 0))},
			Spec: v1beta1.TenantSpec{HomeNamespace: name}}
		namespaces = append(namespaces, Pinning{Namespace: name, Tenant: tenant, Pin: true, Stores: true})
	}
	for _, byDefault := range []bool{false, true} {
		plan := Mutation{}.Plan(namespaces, byDefault, nil, 2)
		require.Equal(t, []string{"young"}, plan.Refused)
		require.Equal(t, "/v1/namespaces/older/mutate", asks(t, plan.Objects, "older"))
		require.Equal(t, "/v1/namespaces/old/mutate", asks(t, plan.Objects, "old"))
		require.Equal(t, "/v1/mutate", asks(t, plan.Objects, "young"))
	}
}

func TestProvidersAreAppliedBeforeWhatNamesThemAndTheBaseLast(t *testing.T) {
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1beta1.TenantSpec{HomeNamespace: "home"}}
	objects := Mutation{}.Plan([]Pinning{{Namespace: "home", Tenant: tenant, Pin: true, Stores: true}, {Namespace: "x", Pin: true}}, false, nil, 1).Objects
	require.Equal(t, []string{"Provider/landwaiter-tenant-t", "Provider/landwaiter-mutate",
		"Assign/landwaiter-tenant-t-pods-containers", "Assign/landwaiter-tenant-t-pods-initcontainers", "Assign/landwaiter-tenant-t-pods-ephemeralcontainers",
		"Assign/landwaiter-pods-containers", "Assign/landwaiter-pods-initcontainers", "Assign/landwaiter-pods-ephemeralcontainers"}, ids(objects))
}

func TestAPlanDoesNotDependOnTheOrderOfItsNamespaces(t *testing.T) {
	var namespaces []Pinning
	for _, name := range []string{"c", "a", "b"} {
		tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.TenantSpec{HomeNamespace: name}}
		namespaces = append(namespaces, Pinning{Namespace: name, Tenant: tenant, Pin: true, Stores: true},
			Pinning{Namespace: name + "-web", Tenant: tenant, Pin: true})
	}
	first := Mutation{}.Plan(namespaces, true, []string{"kube-system"}, 2)
	slices.Reverse(namespaces)
	require.Equal(t, first, Mutation{}.Plan(namespaces, true, []string{"kube-system"}, 2))
}

func TestATeamWithManyStoresLeavesOthersTheirPlaces(t *testing.T) {
	var namespaces []Pinning
	team := func(year int, name string, members ...string) {
		tenant := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: name}}
		tenant.Name, tenant.CreationTimestamp = name, metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, namespace := range append(members, name) {
			namespaces = append(namespaces, Pinning{Namespace: namespace, Tenant: tenant, Pin: true, Stores: true})
		}
	}
	team(1, "many", "a1", "a2", "a3", "a4")
	team(2, "young")
	plan := Mutation{}.Plan(namespaces, false, nil, 3)
	require.Equal(t, []string{"many"}, plan.Refused)
	require.Equal(t, "/v1/namespaces/young/mutate", asks(t, plan.Objects, "young"))
	require.Equal(t, "/v1/namespaces/many/mutate", asks(t, plan.Objects, "many"), "the home namespace comes first")
	require.Equal(t, "/v1/namespaces/a1/mutate", asks(t, plan.Objects, "a1"))
	require.Equal(t, "/v1/mutate", asks(t, plan.Objects, "a2"))
}
