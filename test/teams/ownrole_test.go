//go:build e2e

package teams

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The operator binds roles that operator.clusterRoles lists, without their permissions, and says of another
// which value to change.
func TestTheOperatorBindsARoleOfTheTenantIfTheChartListsIt(t *testing.T) {
	w := installed(t)
	w.gone(t, "own-role")
	for _, name := range []string{"team-deployer", "team-stranger"} {
		suite.Apply(t, w.Cluster, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+
			"}, rules: [{apiGroups: [example.com], resources: [things], verbs: [create]}]}")
	}
	w.operate(t)
	w.tenant(t, "metadata: {name: own-role}\nspec: {homeNamespace: own-role, namespaces: [own-role-web], reconciler: {clusterRole: team-deployer}}")
	w.provisioned(t, "own-role", metav1.ConditionTrue, "Provisioned")
	account, err := w.NewClient(w.As("system:serviceaccount:own-role:own-role"))
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error {
		return mayCreate(ctx, account, "own-role-web", "example.com", "things")
	})

	w.patchTenant(t, "own-role", `{"spec":{"reconciler":{"clusterRole":"team-stranger"}}}`)
	said := w.provisioned(t, "own-role", metav1.ConditionFalse, "AccessDenied")
	require.Contains(t, said, "if the operator is to bind ClusterRole team-stranger, list it in operator.clusterRoles of the chart")
	w.patchTenant(t, "own-role", `{"spec":{"reconciler":{"clusterRole":"cluster-admin"}}}`)
	require.Contains(t, w.provisioned(t, "own-role", metav1.ConditionFalse, "AccessDenied"), "ClusterRole cluster-admin, list it in operator.clusterRoles")
	require.Error(t, mayCreate(suite.Within(t), account, "own-role-web", "", "secrets"), "nobody gave it that role")
}

// mayCreate returns nil if somebody may create a kind in a namespace.
func mayCreate(ctx context.Context, who client.Client, namespace, group, resource string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: group, Resource: resource}}}
	err := who.Create(ctx, review)
	if err == nil && !review.Status.Allowed {
		err = fmt.Errorf("it may not create %s in namespace %s", resource, namespace)
	}
	return err
}
