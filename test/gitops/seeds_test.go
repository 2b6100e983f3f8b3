//go:build nightly

package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/flux"
	"github.com/landwaiter/landwaiter/test/kit/page"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// The scenario of flux-multitenant-demo with the lockdown: the source is in the tenant's
// namespace, the account is named, and the last section ends in a refusal.
func TestTheDemoIsTheSeeds(t *testing.T) {
	ofTeams.enter(t)
	r := controllers(t)
	foo, tenant := fresh("foo"), fresh("sometenant")
	shared := r.repository(t, foo+"-demo", demo())
	r.program.Must(t, "tenant", "add", "--tenant-namespace", foo, "--tenant-name", tenant, "--set", "reconciler.source.url="+shared.URL(), "--set",
		"reconciler.source.branch="+flux.Branch, "--set", "reconciler.source.secretRef.name=git")
	r.apply(t, shared.Secret(foo, "git"),
		suite.Object(
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: wrong-namespace}, spec: {interval: 5m, retryInterval: 1s, prune: true,
	  serviceAccountName: %[1]s, path: ./kustomizations/wrong-namespace, sourceRef: {kind: GitRepository, name: default}}}`, foo))
	require.NoError(t, flux.Reconcile(suite.Within(t), r.Cluster, flux.GitRepository(), foo, "default"))
	r.applied(t, foo, "dummy", "")
	r.requireSeeds(t, foo, tenant)

	r.refused(t, flux.Kustomization(), foo, "wrong-namespace",
		fmt.Sprintf(`User "system:serviceaccount:%s:%[1]s" cannot patch resource "configmaps" in API group "" in the namespace "default"`, foo))
	require.Nil(t, r.get(t, "v1", "ConfigMap", "default", "wrong-namespace"))
}

// The commands of the page make the repository that all tenants share, and a tenant that Flux
// applies it for. Flux, locked down, is in the cluster: TestTheDemosRepositoryIsTakenOverAndRuns
// has the commands that install it.
func TestTheLayoutDemoIsAppliedToTheEnd(t *testing.T) {
	ofPlatforms.enter(t)
	r := controllers(t)
	demo := follow(t, r.Kubeconfig(), page.Substitution{Page: "https://github.com/example/", Test: r.git.URL(), Why: "the repository is on the test's Git server"})
	of := func(marks ...page.Mark) func(page.Block) bool {
		return func(b page.Block) bool { return layout(b, "demo") && slices.Contains(marks, b.Mark) }
	}
	demo.run(t, of(page.Run, page.Output))
	published, err := r.git.Publish(suite.Within(t), "demo", filepath.Join(demo.Dir, "demo"))
	require.NoError(t, err)
	r.apply(t,
		suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: default}, spec: {interval: 1m, url: "+
			"%q, ref: {branch: %s}}}", published.URL(), flux.Branch))
	by := func(b page.Block) bool { return of(page.By)(b) && b.Name == t.Name() }
	ends := func(b page.Block) bool { return strings.HasPrefix(b.Text, "landwaiter tenant delete") }
	demo.run(t, func(b page.Block) bool { return by(b) && !ends(b) })
	r.applied(t, "foo", "dummy", "")
	made := r.get(t, "apps/v1", "Deployment", "foo", "dummy")
	require.NotNil(t, made)
	require.Contains(t, fmt.Sprint(made.Object["spec"]), `This tenant name is "sometenant"`)

	demo.run(t, func(b page.Block) bool { return by(b) && ends(b) })
	r.gone(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "foo", "dummy")
}

// A tenant of the demo's own script has no account, a source in another namespace, and a binding that
// gives the namespace's account default everything.
func TestTheDemosTenantsAreTakenOver(t *testing.T) {
	ofPlatforms.enter(t)
	r := controllers(t)
	foo, tenant := fresh("foo"), fresh("sometenant")
	dir := t.TempDir()
	for name, text := range demo() {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	published, err := r.git.Publish(suite.Within(t), foo+"-demo", dir)
	require.NoError(t, err)
	r.apply(t,
		suite.Object("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: default}, spec: {interval: 1m, url: "+
			"%q, ref: {branch: %s}}}", published.URL(), flux.Branch),
		suite.Namespace(foo),
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s, name: %[1]s-reconciler}, roleRef: {apiGroup: "+
			"rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, namespace: %[1]s, name: default}]}", foo),
		suite.Object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: tenant-vars}, data: {PER_TENANT_SUBST: 'This tenant name is \"%s\"'}}",
			foo, tenant),
		suite.Object("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: %s, name: dummy}, spec: {force: false, interval: 5m, "+
			"path: ./kustomizations/per-tenant, prune: true, targetNamespace: %[1]s, "+
			"sourceRef: {kind: GitRepository, name: default, namespace: flux-system}, postBuild: {substitute: {SUBST_LITERAL: %s}, substituteFrom: [{kind: ConfigMap, "+
			"name: tenant-vars, optional: false}]}}}", foo, tenant))

	runner := follow(t, r.Kubeconfig(),
		page.Substitution{Page: "--tenant-namespace foo --tenant-name sometenant", Test: "--tenant-namespace " + foo + " --tenant-name " + tenant,
			Why: "the cluster has other tenants of these names"})
	runner.run(t, func(b page.Block) bool { return b.Mark == page.By && b.Name == t.Name() })
	r.applied(t, foo, "dummy", "")
	r.requireSeeds(t, foo, tenant)
	binding := r.get(t, "rbac.authorization.k8s.io/v1", "RoleBinding", foo, foo+"-reconciler")
	require.Equal(t, "landwaiter-reconciler", binding.Object["roleRef"].(map[string]any)["name"])
	require.NotContains(t, fmt.Sprint(binding.Object["subjects"]), "name:default")
	spec := r.get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", foo, "dummy").Object["spec"].(map[string]any)
	require.Equal(t, foo, spec["serviceAccountName"])
	require.Equal(t, map[string]any{"kind": "GitRepository", "name": "default"}, spec["sourceRef"])
}
