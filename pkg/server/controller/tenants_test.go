package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

func tenantOf(name, home string, others ...string) *v1beta1.Tenant {
	return &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: v1beta1.TenantSpec{HomeNamespace: home, Namespaces: others}}
}

// allows reports whether a namespace's policy lets everything through.
func (b *bench) allows(namespace verify.Namespace) bool {
	tiers := b.set.Snapshot().For(namespace).Tiers
	return len(tiers) > 0 && tiers[0].Judge.Usable() && tiers[0].Judge.Default() == verify.DefaultAllow
}

func TestAChangeOfATenantIsInForceInItsOldAndNewMembers(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("home"), team("one"), team("two"), team("other"), lax("home", "p"), tenantOf("iris", "home", "one"))
	b.reconcile(t, verify.Cluster)
	require.True(t, b.allows("one"))
	require.False(t, b.allows("two"))
	other := b.set.Snapshot().For("other").Generation

	changed := tenantOf("iris", "home")
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
	changed.Spec.Namespaces = []string{"two"}
	require.NoError(t, b.api.Update(t.Context(), changed))
	b.reconcile(t, verify.Cluster)
	require.False(t, b.allows("one"), "a namespace that was released has its Tenant's rules no longer")
	require.True(t, b.allows("two"))
	require.Equal(t, other, b.set.Snapshot().For("other").Generation)
}

func TestAHomeThatIsEndingDeniesInEveryMember(t *testing.T) {
	home := team("home")
	home.Finalizers = []string{"example.com/hold"}
	b := newBench(t, interceptor.Funcs{}, home, team("one"), lax("home", "p"), tenantOf("iris", "home", "one"), &v1beta1.ClusterVerificationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultActionAllow}})
	b.reconcile(t, verify.Cluster)
	require.True(t, b.allows("one"))
	require.NoError(t, b.api.Delete(t.Context(), team("home")))
	b.reconcile(t, "home")
	require.False(t, b.allows("one"), "the cluster's policy, which allows everything, does not take over")
	require.False(t, b.allows("home"))
	require.Contains(t, b.set.Snapshot().For("one").Tiers[0].Judge.Why(), "the home namespace home of Tenant iris is being deleted")
}

func TestATenantsStatusListsItsNamespaces(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, team("home"), team("one"), lax("home", "p"), tenantOf("iris", "home", "one", "later"))
	b.reconcile(t, verify.Cluster)
	w := newStatusWriter(b.Controller)
	read := func() v1beta1.TenantStatus {
		b.writeAll(t, w, verify.Cluster)
		iris := tenantOf("iris", "home")
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(iris), iris))
		return iris.Status
	}
	status := read()
	require.Equal(t, []v1beta1.TenantNamespace{{Name: "home", State: v1beta1.NamespaceHome}, {Name: "later", State: v1beta1.NamespaceMissing},
		{Name: "one", State: v1beta1.NamespaceActive}}, status.Namespaces)
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionReady))
	require.Equal(t, "rules of the home namespace home are in force in 2 namespaces",
		meta.FindStatusCondition(status.Conditions, v1beta1.ConditionEffective).Message)

	require.NoError(t, b.api.Create(t.Context(), team("later")))
	b.reconcile(t, "later")
	status = read()
	require.Equal(t, v1beta1.TenantNamespace{Name: "later", State: v1beta1.NamespaceActive}, status.Namespaces[1])
	require.NoError(t, b.api.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "home"}}))
	b.reconcile(t, "home")
	status = read()
	require.Equal(t, v1beta1.NamespaceMissing, status.Namespaces[0].State)
	require.Equal(t, "NotFound", meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady).Reason)
}

func TestStatusesOfATenantFollowChangesInItsOtherNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, interceptor.Funcs{}, team("home"), team("one"), team("other"), lax("home", "p"), tenantOf("iris", "home", "one"))
		b.reconcile(t, verify.Cluster)
		ended := make(chan error, 1)
		go func() { ended <- b.writeStatuses(t.Context()) }()
		synctest.Wait()
		effective := func() string {
			synctest.Wait()
			p := lax("home", "p")
			require.NoError(t, b.api.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			return meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionEffective).Message
		}
		before := effective()
		require.NoError(t, b.api.Create(t.Context(), lax("one", "p")))
		b.reconcile(t, "one")
		time.Sleep(clusterPause)
		require.NotEqual(t, before, effective(), "the namespace has a policy of its own now")
	})
}
