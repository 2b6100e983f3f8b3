package resource

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// made is a Tenant that was created in a year.
func made(year int, name, home, prefix string, namespaces ...string) *v1beta1.Tenant {
	t := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: home, NamespacePrefix: prefix, Namespaces: namespaces}}
	t.Name, t.CreationTimestamp = name, metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	return t
}

func TestOneTenantHoldsANamespace(t *testing.T) {
	for name, c := range map[string]struct {
		tenants []*v1beta1.Tenant
		holders map[string]string // "" for nobody
	}{
		"home, listed and prefix": {[]*v1beta1.Tenant{made(1, "iris", "iris", "iris-dev-", "shop")},
			map[string]string{"iris": "iris", "shop": "iris", "iris-dev-a": "iris", "iris-dev-a-b": "iris", "iris-dev-": "", "iris-dev": "", "iris-development": "",
				"other": "", "": ""}},
		"the older one keeps what two list": {[]*v1beta1.Tenant{made(2, "a", "a", "", "shop"), made(1, "b", "b", "", "shop")},
			map[string]string{"shop": "b", "a": "a", "b": "b"}},
		"of one age, the first by name": {[]*v1beta1.Tenant{made(1, "b", "b", "", "shop"), made(1, "a", "a", "", "shop")}, map[string]string{"shop": "a"}},
		"listed beats a prefix, no matter who is older": {[]*v1beta1.Tenant{made(1, "a", "a", "team-"), made(2, "b", "b", "", "team-x")},
			map[string]string{"team-x": "b", "team-y": "a"}},
		"a home namespace beats a prefix": {[]*v1beta1.Tenant{made(1, "a", "a", "team-"), made(2, "b", "team-b", "")},
			map[string]string{"team-b": "b"}},
		"prefixes that overlap: the older one's counts": {[]*v1beta1.Tenant{made(1, "a", "a", "iris-green-"), made(2, "b", "b", "iris-")},
			map[string]string{"iris-green-x": "a", "iris-x": "", "b": "b"}},
		"prefixes that overlap, the other way round": {[]*v1beta1.Tenant{made(2, "a", "a", "iris-green-"), made(1, "b", "b", "iris-")},
			map[string]string{"iris-green-x": "b", "iris-x": "b"}},
		"prefixes that only look alike": {[]*v1beta1.Tenant{made(1, "a", "a", "iris-"), made(2, "b", "b", "iri-")},
			map[string]string{"iris-x": "a", "iri-x": "b"}},
		"a name that no namespace can have": {[]*v1beta1.Tenant{made(1, "a", "a", "iris-")}, map[string]string{"ïris-x": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			all := NewTenants(c.tenants)
			for namespace, want := range c.holders {
				got := ""
				if holder := all.Holder(namespace); holder != nil {
					got = holder.Name
				}
				require.Equal(t, want, got, "namespace %q", namespace)
			}
		})
	}
}

func TestOfSeveralTenantsWithOverlappingPrefixesTheOldestIsNamed(t *testing.T) {
	younger := made(9, "z", "z", "iris-")
	tenants := []*v1beta1.Tenant{younger}
	for year, name := range []string{"green", "red", "blue", "white", "black"} {
		tenants = append(tenants, made(year, name, name, "iris-"+name+"-"))
	}
	for range 20 {
		require.Contains(t, NewTenants(tenants).Conflict(younger), "of Tenant green,", "replicas must agree, or they write the status in turns")
	}
}

func TestATenantSaysWhatAnotherHas(t *testing.T) {
	older, younger := made(1, "a", "a", "iris-green-", "shop"), made(2, "b", "b", "iris-", "shop", "own")
	all := NewTenants([]*v1beta1.Tenant{younger, older})
	require.Empty(t, all.Conflict(older))
	require.Equal(t, "spec.namespacePrefix: iris- overlaps with iris-green- of Tenant a, so it only counts for namespaces whose label names this Tenant: "+
		"neither may begin with the other; namespace shop belongs to Tenant a, which is older", all.Conflict(younger))
	require.Same(t, older, all.Named("a"))
	require.Nil(t, all.Named("c"))
	existing := []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, {ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "iris-x"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "own", DeletionTimestamp: &metav1.Time{}}}}
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "b", State: v1beta1.NamespaceHome}, {Name: "own", State: v1beta1.NamespaceTerminating},
		{Name: "shop", State: v1beta1.NamespaceConflict}},
		all.Namespaces(younger, existing))
	require.Equal(t, []string{"b"}, all.ActiveNamespaces(younger, existing))
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "a", State: v1beta1.NamespaceMissing}, {Name: "shop", State: v1beta1.NamespaceActive}},
		all.Namespaces(older, existing))
}
