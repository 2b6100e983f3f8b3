//go:build nightly

package gitops

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// A team's own repository makes a namespace; the operator provisions it and binds the team's
// account there; then what the repository has for that namespace is applied.
func TestRightsFollow(t *testing.T) {
	ofTeams.alone(t)
	r := controllers(t)
	suite.Operate(t, r.Cluster, r.rendered)
	name, other := fresh("plum"), fresh("peach")
	plum := r.team(t, name, "--set", "namespacePrefix="+name+"-", "--set", "reconciler.createNamespaces=true", "--set", "isolation.quota.pods=5")
	r.team(t, other, "--set", "namespacePrefix="+other+"-", "--set", "reconciler.createNamespaces=true")

	commit := plum.commit(t, map[string]string{"namespace.yaml": namespace(name+"-dev", ""), "app.yaml": configMap(name+"-dev", "app")})
	for _, made := range [][3]string{{"rbac.authorization.k8s.io/v1", "RoleBinding", name + "-reconciler"}, {"v1", "ResourceQuota", "tenant"},
		{"networking.k8s.io/v1", "NetworkPolicy", "default-deny"}} {
		suite.Eventually(t, func(context.Context) error {
			if r.get(t, made[0], made[1], name+"-dev", made[2]) == nil {
				return fmt.Errorf("there is no %s %s", made[1], made[2])
			}
			return nil
		})
	}
	require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.Kustomization(), name, name))
	r.applied(t, name, name, commit)
	require.NotNil(t, r.get(t, "v1", "ConfigMap", name+"-dev", "app"))

	// Whatever team the file names, the namespace is the repository's.
	plum.push(t, metav1.ConditionTrue, map[string]string{"dev.yaml": namespace(name+"-dev", ""),
		"namespace.yaml": namespace(name+"-own", "landwaiter.dev/tenant: "+other+", toolkit.fluxcd.io/tenant: "+other)})
	made := r.get(t, "v1", "Namespace", "", name+"-own")
	require.Equal(t, name, made.GetLabels()["landwaiter.dev/tenant"])
	require.Equal(t, name, made.GetLabels()["toolkit.fluxcd.io/tenant"])

	// A name of another team is refused.
	said := plum.push(t, metav1.ConditionFalse, map[string]string{"dev.yaml": namespace(name+"-dev", ""), "namespace.yaml": namespace(other+"-dev", "")})
	require.Contains(t, said, "ValidatingAdmissionPolicy 'landwaiter-namespace-names'")
	require.Nil(t, r.get(t, "v1", "Namespace", "", other+"-dev"))
}
