package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// declared returns objects with namespaces of these names and nothing else.
func declared(names ...string) resource.Objects {
	var o resource.Objects
	for _, name := range names {
		o.Namespaces = append(o.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return o
}

// Gatekeeper's keys and paths name any namespace: anyone who may ask chooses it.
func TestMadeUpNamespacesTakeNoPlaceInMetrics(t *testing.T) {
	s, _ := registered(t)
	require.Equal(t, "other", s.NamespaceLabel("team-a"), "nothing exists before the first snapshot")
	s.Apply(t.Context(), declared("team-a", "team-b"))
	for i := range 10 * maxNamespaceLabels {
		require.Equal(t, "other", s.NamespaceLabel(verify.Namespace(fmt.Sprintf("made-up-%d", i))))
	}
	require.Equal(t, "team-a", s.NamespaceLabel("team-a"))
	require.Equal(t, "-", s.NamespaceLabel(verify.Cluster))
	require.Equal(t, []verify.Namespace{verify.Cluster, "team-a"}, s.namespaces.values())
}

func TestNamespacesPastTheLimitWaitForAPlace(t *testing.T) {
	s, _ := registered(t)
	var names []string
	for i := range maxNamespaceLabels + 1 {
		names = append(names, fmt.Sprintf("team-%d", i))
	}
	s.Apply(t.Context(), declared(names...))
	for _, name := range names[:maxNamespaceLabels] {
		require.Equal(t, name, s.NamespaceLabel(verify.Namespace(name)))
	}
	last := names[maxNamespaceLabels]
	require.Equal(t, "other", s.NamespaceLabel(verify.Namespace(last)))
	s.Forget("team-0")
	require.Equal(t, last, s.NamespaceLabel(verify.Namespace(last)), "a deleted namespace gives its place to another")
	s.Apply(t.Context(), declared("team-1", last))
	gone := 0
	s.Prune(func(verify.Namespace) { gone++ })
	require.Equal(t, maxNamespaceLabels-2, gone)
	require.Len(t, s.namespaces.values(), 2)
	require.Equal(t, "other", s.NamespaceLabel("team-2"), "it is gone")
}

func TestANamespaceHasTheClusterQuotaOfItsQuotaOwner(t *testing.T) {
	s, _ := registered(t)
	require.Empty(t, s.Quota("shop"), "nothing is known before the first snapshot")
	o := declared("shop", "shop-web", "shop-batch", "alone")
	o.Resources = append(o.Resources,
		&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1beta1.TenantSpec{HomeNamespace: "shop", Namespaces: []string{"shop-web", "shop-batch"}}})
	for name, spec := range map[string]v1beta1.ClusterQuotaSpec{
		"gold":  {Tenants: []string{"shop"}, MaxInFlight: 64},
		"night": {Namespaces: []string{"shop-batch"}, MaxInFlight: 32},
	} {
		o.Resources = append(o.Resources, &v1beta1.ClusterQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	o.Broken = append(o.Broken, resource.Broken{Source: policy.ObjectRef{Kind: "ClusterQuota", Name: "broken"}, Err: errors.New("why")})
	s.Apply(t.Context(), o)
	for namespace, want := range map[verify.Namespace]string{"shop": "gold", "shop-web": "gold", "shop-batch": "night", "alone": "", "made-up": "",
		verify.Cluster: ""} {
		require.Equal(t, want, s.Quota(namespace), namespace)
	}
}

func TestRequestsToRegistriesAreCountedByNamespace(t *testing.T) {
	s, _ := registered(t)
	s.Apply(t.Context(), declared("team-a"))
	for namespace, outcome := range map[verify.Namespace]registry.Outcome{"team-a": registry.OutcomeForbidden, "made-up": registry.OutcomeOK,
		verify.Cluster: registry.OutcomeOK} {
		s.requests.observe(registry.Exchange{Namespace: namespace, Stage: registry.StageList, Outcome: outcome})
	}
	const head = "# HELP landwaiter_registry_namespace_requests_total Requests to registries by the namespace that they were made for, and outcome.\n# TYPE " +
		"landwaiter_registry_namespace_requests_total counter\n"
	require.NoError(t,
		testutil.CollectAndCompare(s.requests.byNamespace, strings.NewReader(head+`landwaiter_registry_namespace_requests_total{namespace="-",outcome="ok"} 1
landwaiter_registry_namespace_requests_total{namespace="other",outcome="ok"} 1
landwaiter_registry_namespace_requests_total{namespace="team-a",outcome="forbidden"} 1
`)))
	s.Forget("team-a")
	require.Equal(t, 2, testutil.CollectAndCount(s.requests.byNamespace))
}

func TestSeriesOfNamespacesCanBeJoinedWithTheirTenants(t *testing.T) {
	s, metrics := registered(t)
	o := declared("iris", "iris-web", "iris-api", "team-a")
	o.Resources = append(o.Resources,
		&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}})
	s.Apply(t.Context(), o)
	for _, namespace := range []verify.Namespace{"iris-web", "team-a", "iris-api", "iris-made-up"} {
		s.NamespaceLabel(namespace)
	}
	const name = "landwaiter_tenant_namespace"
	const help = "# HELP landwaiter_tenant_namespace Is 1 for each namespace of a Tenant that has series of its own. It is for joins: multiply by it, " +
		"on(namespace) group_left(tenant).\n# TYPE landwaiter_tenant_namespace gauge\n"
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(help+
		"landwaiter_tenant_namespace{namespace=\"iris-api\",tenant=\"iris\"} 1\nlandwaiter_tenant_namespace{namespace=\"iris-web\",tenant=\"iris\"} 1\n"), name))
	s.Forget("iris-api")
	count, err := testutil.GatherAndCount(metrics, name)
	require.NoError(t, err)
	require.Equal(t, 1, count, "a namespace that is gone has no series")
}
