package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

const redObjects, redTenant = "tenants/base/iris-red/objects.yaml", "tenants/base/iris-red/tenant.yaml"

// grants adds a binding to the platform's own policies.
func grants(t *testing.T, dir, binding string) {
	t.Helper()
	put1(t, dir, "infrastructure/policies/own/rights.yaml", "apiVersion: rbac.authorization.k8s.io/v1\n"+binding+"\n")
	rewrite(t, dir, "infrastructure/policies/own/kustomization.yaml", "resources: []", "resources: [rights.yaml]")
}

const redAccount = "subjects: [{kind: ServiceAccount, name: iris-red, namespace: iris-red}]"

func TestCheckFindsRightsOfATeamsAccountBeyondItsRole(t *testing.T) {
	const rights = "infrastructure/policies/own/rights.yaml"
	for name, c := range map[string]wrong{
		"its own binding to another role": {func(t *testing.T, dir string) {
			rewrite(t, dir, redObjects, "name: landwaiter-reconciler", "name: cluster-admin")
		}, redObjects, "RoleBinding iris-red/iris-red-reconciler gives the account of Tenant iris-red ClusterRole cluster-admin in namespace iris-red; it has " +
			"landwaiter-reconciler in the team's namespaces"},
		"in the whole cluster": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"+redAccount)
		}, rights, "ClusterRoleBinding x gives the account of Tenant iris-red ClusterRole view in the whole cluster"},
		"its role in the whole cluster": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+
				"landwaiter-reconciler}\n"+redAccount)
		}, rights, "in the whole cluster"},
		"its role in a namespace of others": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: RoleBinding\nmetadata: {name: x, namespace: flux-system}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+
				"landwaiter-reconciler}\n"+redAccount)
		}, rights, "RoleBinding flux-system/x gives"},
		"a Role of a namespace": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: RoleBinding\nmetadata: {name: x, namespace: iris-red-web}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, "+
				"name: more}\n"+redAccount)
		}, rights, "Role more"},
		"by its name as a user": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: "+
				"[{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:iris-red:iris-red'}]")
		}, rights, "ClusterRole view"},
		"by the accounts of its home namespace": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: "+
				"[{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccounts:iris-red'}]")
		}, rights, "ClusterRole view"},
		"by all accounts": {func(t *testing.T, dir string) {
			grants(t, dir, "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: "+
				"[{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccounts'}]")
		}, rights, "ClusterRole view"},
		"a permission to make namespaces that the Tenant does not give": {func(t *testing.T, dir string) {
			rewrite(t, dir, redTenant, "    createNamespaces: true\n", "")
		}, redObjects, "ClusterRoleBinding iris-red-namespace-maker gives the account of Tenant iris-red ClusterRole landwaiter-namespace-maker"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
}

func TestCheckFindsPiecesThatGiveEveryAccountTooMuch(t *testing.T) {
	const rights, piece = "infrastructure/policies/own/rights.yaml", "kind: ClusterRole\nmetadata: {name: x, labels: {landwaiter.dev/aggregate-to-reconciler: " +
		"'true'}}\nrules: [{apiGroups: [%s], resources: [things], verbs: [get]}]"
	wrong{func(t *testing.T, dir string) { grants(t, dir, fmt.Sprintf(piece, "landwaiter.dev")) }, rights,
		"ClusterRole x is a piece of the role of every Git account and has landwaiter.dev: take it out"}.isFound(t, small(t))
	dir := small(t)
	grants(t, dir, fmt.Sprintf(piece, "example.com"))
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings, "kinds of others are what pieces are for")
}

// What the Tenant says, and what is about others, is no finding.
func TestRightsThatATenantGivesAreSound(t *testing.T) {
	tenant := team("iris-red", func(s *v1beta1.TenantSpec) { s.Reconciler.ClusterRole = "admin" })
	dir := light(t,
		example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}},
			teams: []Team{{Tenant: tenant}, {Tenant: team("iris-blue", nil)}}}.write(t))
	grants(t, dir, "kind: RoleBinding\nmetadata: {name: x, namespace: iris-red-dev}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, "+
		"name: admin}\n"+redAccount+
		"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: y}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: "+
		"ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: other, namespace: iris-red}]")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}

func TestCheckFindsNamespacesOfATenantWithoutObjects(t *testing.T) {
	for name, c := range map[string]wrong{
		"a namespace that somebody added": {func(t *testing.T, dir string) {
			rewrite(t, dir, redTenant, "  - iris-red-web\n", "  - iris-red-api\n  - iris-red-web\n")
		}, redTenant, "Tenant iris-red: in clusters/staging, namespace iris-red-api has no objects in the tree: run landwaiter platform scaffold DIR iris-red again"},
		"all of them": {func(t *testing.T, dir string) {
			rewrite(t, dir, "tenants/base/iris-red/kustomization.yaml", "- objects.yaml\n", "")
			require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(redObjects))))
		}, redTenant, "Tenant iris-red: in clusters/staging, namespace iris-red-web has no objects in the tree"},
		"one object": {func(t *testing.T, dir string) {
			rewrite(t, dir, redObjects, "  name: default-deny\n  namespace: iris-red-web\n", "  name: default-allow\n  namespace: iris-red-web\n")
		}, redTenant, "Tenant iris-red: in clusters/staging, namespace iris-red-web lacks NetworkPolicy iris-red-web/default-deny"},
	} {
		t.Run(name, func(t *testing.T) { c.isFound(t, small(t)) })
	}
}

// The operator makes the objects, so the tree has none.
func TestAnOperatorsTreeNeedsNoObjects(t *testing.T) {
	dir := light(t, example{platform: &Platform{Constraints: []string{imagesSet}, Operator: true, Environments: []string{"staging"}},
		teams: []Team{{Tenant: team("iris-red", nil)}}}.write(t))
	rewrite(t, dir, redTenant, "  - iris-red-web\n", "  - iris-red-api\n  - iris-red-web\n")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}
