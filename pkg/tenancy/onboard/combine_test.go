package onboard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

func TestWhatIsAddedToATenantIsSaidAgain(t *testing.T) {
	live := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "a", Namespaces: []string{"b"}, Adopt: true,
		Reconciler: &v1beta1.TenantReconciler{CreateNamespaces: true, Path: "./x"}}}
	live.Name = "a"
	added := settings("adopt=false", "reconciler.createNamespaces=false", "namespaces=[a, c]")
	asked, err := Description{Name: "a", Settings: added}.Tenant()
	require.NoError(t, err)
	merged, err := Combine(live, asked)
	require.NoError(t, err)
	require.True(t, merged.Spec.Adopt, "nobody can tell it from what is not mentioned")
	require.NoError(t, Restate(merged, added))
	require.Equal(t, v1beta1.TenantSpec{HomeNamespace: "a", Namespaces: []string{"b", "c"}, Reconciler: &v1beta1.TenantReconciler{Path: "./x"}}, merged.Spec)

	listed := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "a", Namespaces: []string{"a"}}}
	require.NoError(t, Restate(listed, Settings{}))
	require.Equal(t, []string{"a"}, listed.Spec.Namespaces)
	require.ErrorContains(t, Restate(listed, settings("homes=b")), "--set homes: there is no such field")
}

func TestASettingBelowAnotherLeavesWhatStandsBesideIt(t *testing.T) {
	live := &v1beta1.Tenant{Spec: v1beta1.TenantSpec{HomeNamespace: "a", Reconciler: &v1beta1.TenantReconciler{
		Source: &v1beta1.TenantSource{URL: "https://git.example.com/a", SecretRef: &v1beta1.Reference{Name: "login"}}}}}
	live.Name = "a"
	asked, err := Description{Name: "a", Settings: settings("reconciler.source.branch=dev")}.Tenant()
	require.NoError(t, err)
	merged, err := Combine(live, asked)
	require.NoError(t, err)
	require.Equal(t, &v1beta1.TenantSource{URL: "https://git.example.com/a", Branch: "dev", SecretRef: &v1beta1.Reference{Name: "login"}},
		merged.Spec.Reconciler.Source)
}
