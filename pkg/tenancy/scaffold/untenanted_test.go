package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fluxTenant is what flux create tenant writes for a team and a namespace.
func fluxTenant(team, namespace string) string {
	labels := "labels: {toolkit.fluxcd.io/tenant: " + team + "}"
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + ", " + labels + "}\n---\n" +
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + team + ", namespace: " + namespace + ", " + labels + "}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + team + "-reconciler, namespace: " + namespace + ", " + labels + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: 'gotk:" + namespace + ":reconciler'}, {kind: ServiceAccount, name: " + team +
		", namespace: " + namespace + "}]\n"
}

// fluxSync is how Flux applies a team's own repository.
func fluxSync(team, namespace string) string {
	return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: " + team + ", namespace: " + namespace +
		"}\nspec: {interval: 1m, url: 'https://git.example.com/" + team + "'}\n---\n" +
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + team + ", namespace: " + namespace + "}\n" +
		"spec: {interval: 1m, prune: false, path: ./staging, serviceAccountName: " + team + ", sourceRef: {kind: GitRepository, name: " + team + "}}\n"
}

// addFluxTeam adds a team as Flux's own documents say.
func addFluxTeam(t *testing.T, dir, rbac, sync string) {
	t.Helper()
	put1(t, dir, "tenants/base/qa-team/kustomization.yaml", kustomize("resources: [rbac.yaml, sync.yaml]\n"))
	put1(t, dir, "tenants/base/qa-team/rbac.yaml", rbac)
	put1(t, dir, "tenants/base/qa-team/sync.yaml", sync)
	rewrite(t, dir, "tenants/staging/kustomization.yaml", "resources:\n", "resources:\n- ../base/qa-team\n")
}

func TestATeamWithoutATenantIsFound(t *testing.T) {
	const rbacFile, syncOfTeam = "tenants/base/qa-team/rbac.yaml", "tenants/base/qa-team/sync.yaml"
	const admin = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: qa-admin}\nroleRef: {apiGroup: " +
		"rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"
	written := func(more string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			addFluxTeam(t, dir, fluxTenant("qa-team", "qa")+more, fluxSync("qa-team", "qa"))
		}
	}
	for name, c := range map[string]wrong{
		"no Tenant has its namespace": {written(""), rbacFile, "namespace qa is a team's, as Namespace qa says, and no Tenant has it, so no guardrail, quota or " +
			"policy of teams applies there: run landwaiter platform scaffold DIR qa-team --set homeNamespace=qa"},
		"it has no label": {func(t *testing.T, dir string) {
			addFluxTeam(t, dir, strings.ReplaceAll(fluxTenant("qa-team", "qa"), "labels: {toolkit.fluxcd.io/tenant: qa-team}", "labels: {}"), fluxSync("qa-team", "qa"))
		}, syncOfTeam, "namespace qa is a team's, as Kustomization qa/qa-team says"},
		"its account is an admin of " +
			"its namespace": {written(""), rbacFile, "RoleBinding qa/qa-team-reconciler gives qa-team of namespace qa, which is a team's, ClusterRole cluster-admin " +
			"in namespace qa"},
		"its account is an admin of the cluster": {written(admin + "subjects: [{kind: ServiceAccount, name: qa-team, namespace: qa}]\n"), rbacFile,
			"ClusterRoleBinding qa-admin gives qa-team of namespace qa, which is a team's, ClusterRole cluster-admin in the whole cluster"},
		"its account is an admin as a user": {written(admin + "subjects: [{kind: User, name: 'system:serviceaccount:qa:qa-team'}]\n"), rbacFile,
			"ClusterRoleBinding qa-admin gives qa-team of namespace qa"},
		"all accounts of it are admins": {written(admin + "subjects: [{kind: Group, name: 'system:serviceaccounts:qa'}]\n"), rbacFile,
			"ClusterRoleBinding qa-admin gives all accounts of namespace qa"},
		"all accounts of all namespaces are admins": {func(t *testing.T, dir string) {
			written(admin+"subjects: [{kind: Group, name: 'system:serviceaccounts'}]\n")(t, dir)
			put1(t, dir, "tenants/staging/kustomization.yaml", kustomize("resources: [../base/qa-team]\n"))
		}, rbacFile, "ClusterRoleBinding qa-admin gives all accounts of all namespaces"},
		"another account of a Tenant's namespace is an admin": {func(t *testing.T, dir string) {
			put1(t, dir, "tenants/base/iris-red/more.yaml", strings.TrimPrefix(admin, "---\n")+"subjects: [{kind: ServiceAccount, name: ci, namespace: iris-red}]\n")
			rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "resources:\n", "resources:\n- more.yaml\n")
		}, "tenants/base/iris-red/more.yaml", "ClusterRoleBinding qa-admin gives ci of namespace iris-red, which is a team's, ClusterRole cluster-admin in the " +
			"whole cluster"},
		"nothing that restricts it is awaited": {func(t *testing.T, dir string) {
			written("")(t, dir)
			teamRestricted(t, dir)
			put1(t, dir, "tenants/staging/kustomization.yaml", kustomize("resources: [../base/qa-team]\n"))
			rewrite(t, dir, tenantsStepFile, "  dependsOn:\n  - name: policies\n  - name: guardrails\n", "")
		}, tenantsStepFile, "Kustomization flux-system/tenants applies teams and does not wait for Kustomization flux-system/guardrails"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
	t.Run("a namespace of the platform", func(t *testing.T) {
		dir := small(t)
		addFluxTeam(t, dir, "apiVersion: v1\nkind: Namespace\nmetadata: {name: qa}\n", fluxSync("qa-team", "qa"))
		rewrite(t, dir, SettingsFile, "infrastructureNamespaces:\n", "infrastructureNamespaces:\n- qa\n")
		require.Empty(t, found(t, dir))
	})
	t.Run("a repository that Landwaiter does not manage", func(t *testing.T) {
		dir := small(t)
		written("")(t, dir)
		require.NoError(t, os.Remove(filepath.Join(dir, SettingsFile)))
		for _, f := range found(t, dir) {
			require.NotEqual(t, "TenantMissing", f.ID)
		}
	})
}
