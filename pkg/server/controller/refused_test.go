package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
)

// crowded has more rules than the CRD lets through, and compiles.
func crowded(namespace string) *v1beta1.VerificationPolicy {
	p := lax(namespace, "crowded")
	p.UID = "crowded"
	for range 65 {
		p.Spec.Rules = append(p.Spec.Rules, v1beta1.PolicyRule{Images: []string{"r.example.com/**"}, Action: v1beta1.RuleActionAllow})
	}
	return p
}

func TestAStoredResourceThatOnlyThisVersionsSchemaRefusesDenies(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("team-a"), crowded("team-a"), team("team-b"), lax("team-b", "p"))
	b.reconcile(t, verify.Cluster)
	for range 2 {
		require.Contains(t, b.set.Snapshot().For("team-a").Tiers[0].Judge.Why(), "this version's CRD refuses it: spec.rules: must have at most 64 items; shorten it")
		require.Empty(t, b.set.Snapshot().For("team-b").Tiers[0].Judge.Why())
		report := conditions.Reports(b.set.Snapshot(), "team-a")[policy.ObjectRef{Kind: v1beta1.KindVerificationPolicy, Namespace: "team-a", Name: "crowded"}]
		require.Equal(t, policy.ReasonInvalid, report.Ready.Reason)
		require.EqualValues(t, 3, report.Generation)
		b.reconcile(t, "team-a") // with what is remembered
	}
	mended := crowded("team-a")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(mended), mended))
	mended.Spec.Rules, mended.Generation = mended.Spec.Rules[:64], 4
	require.NoError(t, b.api.Update(t.Context(), mended))
	b.reconcile(t, "team-a")
	require.Empty(t, b.set.Snapshot().For("team-a").Tiers[0].Judge.Why())
}

// A Tenant says whom it denies as long as its namespaces can be read.
func TestATenantThatTheSchemaRefusesDeniesItsNamespacesAlone(t *testing.T) {
	everywhere := lax("", "everywhere")
	for _, level := range []v1beta1.PolicyLevel{"", v1beta1.PolicyLevelCluster} {
		iris := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris", UID: types.UID("iris" + level)},
			Spec: v1beta1.TenantSpec{HomeNamespace: "iris", NamespacePrefix: "iris-"}}
		iris.Spec.Verification.PolicyLevel = level
		iris.Spec.Access.Admins = []v1beta1.TenantSubject{{Kind: "Robot", Name: "r2"}}
		b := newBench(t, interceptor.Funcs{}, iris, team("iris"), team("iris-a"), team("quiet"),
			&v1beta1.ClusterVerificationPolicy{ObjectMeta: everywhere.ObjectMeta, Spec: everywhere.Spec})
		b.reconcile(t, verify.Cluster)
		for _, namespace := range []verify.Namespace{"iris", "iris-a"} {
			require.Contains(t, b.set.Snapshot().For(namespace).Tiers[0].Judge.Why(), "this version's CRD refuses it: spec.access.admins[0].kind", level)
		}
		require.Empty(t, b.set.Snapshot().For("quiet").Tiers[0].Judge.Why())
	}
}
