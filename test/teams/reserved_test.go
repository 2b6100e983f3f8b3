//go:build e2e

package teams

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// A Tenant that ends does not take the cluster's keys with it, and leaves no label that lets
// its account back in.
func TestANamespaceThatBecomesReservedOutlivesItsTenant(t *testing.T) {
	w := installed(t)
	w.gone(t, "heir")
	w.vacant(t, "heir-keys")
	process, _ := w.operate(t)
	made := w.tenant(t, "metadata: {name: heir}\nspec: {homeNamespace: heir, namespaces: [heir-keys, heir-app], namespaceReclaimPolicy: DeleteCreated, access: "+
		"{admins: [{kind: Group, name: a}]}}")
	w.provisioned(t, "heir", metav1.ConditionTrue, "Provisioned")
	process.Terminate(suite.Patience)
	w.patch(t, suite.Namespace(clusterKeys), `{"metadata":{"labels":{"landwaiter.dev/tenant":"heir"}}}`)

	w.operate(t, "--reserved-namespace=heir-keys")
	w.provisioned(t, "heir", metav1.ConditionFalse, "Reserved")
	require.NoError(t, w.Client.Delete(suite.Within(t), made))
	w.ended(t, made)
	for _, name := range []string{"heir-keys", clusterKeys} {
		namespace := &corev1.Namespace{}
		require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: name}, namespace))
		require.Nil(t, namespace.DeletionTimestamp, name)
		require.NotContains(t, namespace.Labels, v1beta1.LabelTenant, name)
	}
}

func TestAnAccountThatMakesNamespacesDeletesNoReservedOne(t *testing.T) {
	w := installed(t)
	w.gone(t, "clusterer")
	w.tenant(t, "metadata: {name: clusterer}\nspec: {homeNamespace: clusterer, namespacePrefix: cluster-, reconciler: {createNamespaces: true}}")
	binding := makesNamespaces("clusterer")
	require.NoError(t, w.Client.Create(suite.Within(t), binding))
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), binding))) })
	w.patch(t, suite.Namespace(clusterKeys), `{"metadata":{"labels":{"landwaiter.dev/tenant":"clusterer"}}}`)
	t.Cleanup(func() {
		w.patch(t, suite.Namespace(clusterKeys), `{"metadata":{"labels":{"landwaiter.dev/tenant":null}}}`)
	})

	account, err := client.New(w.As("system:serviceaccount:clusterer:clusterer", "system:serviceaccounts"), client.Options{Scheme: w.Client.Scheme()})
	require.NoError(t, err)
	suite.Eventually(t, func(ctx context.Context) error {
		err := account.Delete(ctx, suite.Namespace(clusterKeys), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "only the platform may delete it") {
			return fmt.Errorf("it is not refused yet: %w", err)
		}
		return nil
	})
}
