//go:build e2e

package teams

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// An admin of a team makes a policy with the platform's name while the network is open.
func TestADefaultDenyThatAllowsEverythingIsNotThePlatforms(t *testing.T) {
	w := installed(t)
	w.gone(t, "preplaced")
	w.add(t, "preplaced", "--set", "isolation.network=Open")
	there := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "preplaced", Name: "default-deny",
		Labels: map[string]string{v1beta1.LabelTenant: "preplaced"}}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}},
	}}
	require.NoError(t, w.Client.Create(suite.Within(t), there))
	refused := w.program.Run(t, "", "tenant", "add", "preplaced", "--set", "isolation.network=Deny")
	require.Equal(t, 1, refused.Code)
	require.Contains(t, refused.Stderr, "NetworkPolicy preplaced/default-deny exists and is somebody else's")
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(there), there))
	require.NotContains(t, there.Labels, v1beta1.LabelOwner)

	w.program.Must(t, "tenant", "add", "preplaced", "--set", "adopt=true")
	taken := &networkingv1.NetworkPolicy{}
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(there), taken))
	require.Equal(t, v1beta1.OwnerPlatform, taken.Labels[v1beta1.LabelOwner])
	require.Empty(t, taken.Spec.Ingress, "it denies")
	require.Empty(t, taken.Spec.Egress)
	again := w.add(t, "preplaced")
	require.Zero(t, again.Changed+again.Created)
}

// makesNamespaces binds a Tenant's account, which has its name, to the role that makes namespaces.
func makesNamespaces(tenant string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: tenant + "-namespace-maker"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "landwaiter-namespace-maker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: tenant, Name: tenant}}}
}

// ended waits until a Tenant that is being deleted is gone.
func (w *installation) ended(t *testing.T, tenant *v1beta1.Tenant) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(tenant), &v1beta1.Tenant{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the Tenant is still there"))
	})
}

// The binding that lets an account make namespaces outlives no Tenant, though the operator
// may neither make nor remove it.
func TestTheRightToMakeNamespacesOutlivesNoTenant(t *testing.T) {
	w := installed(t)
	w.gone(t, "maker")
	w.operate(t)
	made := w.tenant(t, "metadata: {name: maker}\nspec: {homeNamespace: maker, namespacePrefix: maker-, reconciler: {createNamespaces: true}}")
	require.Contains(t, w.provisioned(t, "maker", metav1.ConditionFalse, "AccessDenied"), "kubectl create clusterrolebinding maker-namespace-maker")
	binding := makesNamespaces("maker")
	require.NoError(t, w.Client.Create(suite.Within(t), binding))
	require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(made), made))
	w.patch(t, made, `{"spec":{"namespaceReclaimPolicy":"DeleteCreated"}}`)
	w.provisioned(t, "maker", metav1.ConditionTrue, "Provisioned")

	w.patch(t, made, `{"spec":{"reconciler":{"serviceAccount":"other"}}}`)
	require.Contains(t, w.provisioned(t, "maker", metav1.ConditionFalse, "AccessDenied"), "lets ServiceAccount maker/maker, which is not the account")
	w.patch(t, made, `{"spec":{"reconciler":null}}`)
	require.Contains(t, w.provisioned(t, "maker", metav1.ConditionFalse, "AccessDenied"), "kubectl delete clusterrolebinding maker-namespace-maker")
	w.patch(t, made, `{"spec":{"reconciler":{"createNamespaces":true}}}`)
	w.provisioned(t, "maker", metav1.ConditionTrue, "Provisioned")

	require.NoError(t, w.Client.Delete(suite.Within(t), made))
	require.Contains(t, w.provisioned(t, "maker", metav1.ConditionFalse, "AccessDenied"), "kubectl delete clusterrolebinding maker-namespace-maker")
	require.True(t, w.exists(t, "maker"))
	require.NoError(t, w.Client.Delete(suite.Within(t), binding))
	w.patch(t, made, `{"spec":{"adopt":true}}`) // a change is looked at without a pause
	w.ended(t, made)
}
