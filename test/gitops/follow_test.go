//go:build flux

package gitops

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/flux"
)

// A team's own repository makes a namespace; the operator equips it and binds the team's
// account there; then what the repository has for that namespace is applied.
func TestRightsFollow(t *testing.T) {
	operate(t)
	r := controllers(t)
	plum := r.team(t, "plum", "--prefix", "plum-", "--create-namespaces", "--quota", "pods=5")
	r.team(t, "peach", "--prefix", "peach-", "--create-namespaces")

	commit := plum.commit(t, map[string]string{
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: plum-dev}\n",
		"app.yaml":       configMap("plum-dev", "app"),
	})
	for kind, apiVersion := range map[string]string{"RoleBinding/plum-reconciler": "rbac.authorization.k8s.io/v1", "ResourceQuota/tenant": "v1", "NetworkPolicy/default-deny": "networking.k8s.io/v1"} {
		await(t, kind+" in plum-dev", func() bool {
			kind, name := cut(kind)
			return get(t, apiVersion, kind, "plum-dev", name) != nil
		})
	}
	require.NoError(t, flux.Reconcile(within(t), w.Cluster, flux.Kustomization(), "plum", "plum"))
	_, err := flux.Await(within(t), w.Cluster, flux.Kustomization(), "plum", "plum", commit, metav1.ConditionTrue)
	require.NoError(t, err)
	require.NotNil(t, get(t, "v1", "ConfigMap", "plum-dev", "app"))

	// Whatever team the file names, the namespace is the repository's.
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: plum-dev}\n"
	plum.push(t, metav1.ConditionTrue, map[string]string{"dev.yaml": namespace,
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: plum-own, labels: {landwaiter.dev/tenant: peach, toolkit.fluxcd.io/tenant: peach}}\n"})
	made := get(t, "v1", "Namespace", "", "plum-own")
	require.Equal(t, "plum", made.GetLabels()["landwaiter.dev/tenant"])
	require.Equal(t, "plum", made.GetLabels()["toolkit.fluxcd.io/tenant"])

	// A name of another team is refused.
	said := plum.push(t, metav1.ConditionFalse, map[string]string{"dev.yaml": namespace,
		"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: peach-dev}\n"})
	require.Contains(t, said, "ValidatingAdmissionPolicy 'landwaiter-namespace-names'")
	require.Nil(t, get(t, "v1", "Namespace", "", "peach-dev"))
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	require.NoError(t, cluster.Until(within(t), func(context.Context) error {
		if !so() {
			return errors.New(what + ": not yet")
		}
		return nil
	}))
}
