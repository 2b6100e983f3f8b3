//go:build e2e

package teams

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func storeIn(namespace string, n int) *unstructured.Unstructured {
	return suite.Object("{apiVersion: landwaiter.dev/v1beta1, kind: Store, metadata: {namespace: %s, name: s%d}, spec: {registries: [registry.example.com]}}",
		namespace, n)
}

// counted waits until the quota of a namespace says how many Stores there are. Kubernetes counts
// them again from time to time, and may not have seen the youngest when it does.
func (w *installation) counted(t *testing.T, namespace string, n int64) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		var quota corev1.ResourceQuota
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "tenant"}, &quota)
		if used := quota.Status.Used["count/stores.landwaiter.dev"]; err == nil && used.Value() != n {
			err = fmt.Errorf("it has counted %s", used.String())
		}
		return err
	})
}

// Everything that a team writes is kept by every replica.
func TestANamespaceOfATeamHas64ResourcesOfAKind(t *testing.T) {
	w := installed(t)
	w.gone(t, "many")
	w.add(t, typical("many")...)
	for _, namespace := range []string{"many", "many-web"} {
		for n := range 64 {
			require.NoError(t, w.Client.Create(suite.Within(t), storeIn(namespace, n)), "number %d is accepted as soon as the team is there", n)
		}
		w.counted(t, namespace, 64)
		err := w.Client.Create(suite.Within(t), storeIn(namespace, 64))
		require.ErrorContains(t, err, "exceeded quota: tenant, requested: count/stores.landwaiter.dev=1, used: count/stores.landwaiter.dev=64, limited: "+
			"count/stores.landwaiter.dev=64")
	}

	// A cluster admin may give a team more.
	w.add(t, "many", "--set", "isolation.quota.count/stores.landwaiter.dev=65")
	require.NoError(t, w.Client.Create(suite.Within(t), storeIn("many-web", 64)))
	w.counted(t, "many-web", 65)
	require.ErrorContains(t, w.Client.Create(suite.Within(t), storeIn("many-web", 65)), "exceeded quota: tenant")
}

func TestTheFirstResourceOfATeamIsAcceptedOnceItIsProvisioned(t *testing.T) {
	w := installed(t)
	w.operate(t)
	for i := range 3 {
		name := fmt.Sprintf("first-%d", i)
		w.gone(t, name)
		w.tenant(t, fmt.Sprintf("metadata: {name: %s}\nspec: {homeNamespace: %s, namespaces: [%s-web]}", name, name, name))
		w.provisioned(t, name, metav1.ConditionTrue, "Provisioned")
		for _, namespace := range []string{name, name + "-web"} {
			require.NoError(t, w.Client.Create(suite.Within(t), storeIn(namespace, 0)))
			require.Contains(t, w.objectsOf(t, name), "ResourceQuota "+namespace+"/tenant")
		}
	}
}
