//go:build nightly

package gitops

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// Flux has applied the team of flux2-multi-tenancy, and then sees the repository as docs/howto/gitops-take-over.md
// takes it over. The steps before tenants, with Kyverno first and Gatekeeper then, are not there.
func TestATakenOverTeamKeepsWhatRunsAndLosesClusterAdmin(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	name := fresh("apps")
	repository := r.repository(t, name+"-team", map[string]string{"staging/app.yaml": configMap("apps", "app")})
	fleet, err := r.git.Create(suite.Within(t), name+"-fleet")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(fleet.Dir, os.DirFS("testdata/flux2-multi-tenancy")))
	replace(t, fleet, "tenants/base/dev-team/sync.yaml", "url: https://github.com/example/flux2-multi-tenancy\n",
		"url: "+repository.URL()+"\n  secretRef: {name: git}\n")
	replace(t, fleet, "tenants/base/dev-team/sync.yaml", "branch: dev-team", "branch: "+flux.Branch)
	_, err = fleet.Push(suite.Within(t), "as it is")
	require.NoError(t, err)
	tenants := playedTenants(t, fleet, "staging", name)
	r.apply(t, fleet.Secret(flux.Namespace, name+"-login"), fleetSource(name, fleet), tenants)
	r.applied(t, flux.Namespace, tenants.GetName(), "")
	r.apply(t, repository.Secret("apps", "git"))
	_, err = flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), "apps", "dev-team", "", metav1.ConditionTrue)
	require.NoError(t, err)
	before := r.get(t, "v1", "ConfigMap", "apps", "app")
	require.NotNil(t, before)
	role := func() string {
		name, _, err := unstructured.NestedString(r.get(t, "rbac.authorization.k8s.io/v1", "RoleBinding", "apps", "dev-team-reconciler").Object, "roleRef", "name")
		require.NoError(t, err)
		return name
	}
	require.Equal(t, "cluster-admin", role())

	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Dir: fleet.Dir}
	landwaiter.Must(t, "platform", "init", ".", "--force", "--set", "constraints=images")
	landwaiter.Must(t, "platform", "scaffold", ".", "dev-team", "--force", "--set", "homeNamespace=apps", "--set", "reconciler.source.url="+repository.URL(),
		"--set", "reconciler.source.secretRef.name=git")
	for _, environment := range []string{"staging", "production"} {
		replace(t, fleet, "tenants/"+environment+"/kustomization.yaml", "namespace: apps\n", "")
	}
	for _, dead := range []string{"infrastructure/kyverno", "infrastructure/kyverno-policies", "tenants/base/dev-team/rbac.yaml"} {
		require.NoError(t, os.RemoveAll(filepath.Join(fleet.Dir, dead)))
	}
	require.Contains(t, landwaiter.Must(t, "platform", "check", "."), " 0 findings")
	commit, err := fleet.Push(suite.Within(t), "taken over")
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), flux.Namespace, name+"-fleet"))
	_, err = flux.Await(suite.Within(t), r.Cluster, flux.Kustomization(), flux.Namespace, tenants.GetName(), commit, metav1.ConditionTrue)
	require.NoError(t, err)
	require.Equal(t, "landwaiter-reconciler", role(), "the API server refuses the change, so Flux replaces the binding")
	require.NotNil(t, r.get(t, "landwaiter.dev/v1beta1", "Tenant", "", "dev-team"))
	require.Equal(t, "dev-team", r.get(t, "v1", "Namespace", "", "apps").GetLabels()["landwaiter.dev/tenant"])

	// The team's repository is applied as before, with the smaller permissions.
	next, err := repository.Commit(suite.Within(t), "next",
		map[string]string{"staging/app.yaml": configMap("apps", "app"), "staging/more.yaml": configMap("apps", "more")})
	require.NoError(t, err)
	require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), "apps", "dev-team"))
	r.applied(t, "apps", "dev-team", next)
	suite.Eventually(t, func(ctx context.Context) error {
		return r.Client.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "more"}, &corev1.ConfigMap{})
	})
	require.Equal(t, before.GetUID(), r.get(t, "v1", "ConfigMap", "apps", "app").GetUID(), "what ran was not made again")
}

// replace changes a file of the platform's working copy.
func replace(t *testing.T, fleet *flux.Repository, name, old, with string) {
	t.Helper()
	file := filepath.Join(fleet.Dir, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, with)), 0o600))
}
