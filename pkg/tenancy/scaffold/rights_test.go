package scaffold

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// withPeople is a small tree whose teams have people: those of iris-red in groups, those of iris-blue by name.
func withPeople(t *testing.T) string {
	t.Helper()
	people := func(kind v1beta1.SubjectKind, name string) []v1beta1.TenantSubject {
		return []v1beta1.TenantSubject{{Kind: kind, Name: name}}
	}
	red := team("iris-red", func(s *v1beta1.TenantSpec) {
		s.Access = v1beta1.TenantAccess{Admins: people(v1beta1.SubjectGroup, "red-leads"), Developers: people(v1beta1.SubjectGroup, "red-devs"),
			Viewers: people(v1beta1.SubjectGroup, "everybody-else")}
	})
	blue := team("iris-blue", func(s *v1beta1.TenantSpec) { s.Access.Admins = people(v1beta1.SubjectUser, "ann@example.com") })
	return light(t,
		example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}}, teams: []Team{{Tenant: red}, {Tenant: blue}}}.write(t))
}

// bound is a binding of the given kind, name and namespace to a ClusterRole.
func bound(kind, metadata, role, subject string) string {
	return "kind: " + kind + "\nmetadata: {" + metadata + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role +
		"}\nsubjects: [{" + subject + "}]"
}

func TestCheckFindsRightsForEveryoneAndForPeopleOfTeams(t *testing.T) {
	const rights, cluster = "infrastructure/policies/own/rights.yaml", "name: x"
	group := func(name string) string {
		return "kind: Group, apiGroup: rbac.authorization.k8s.io, name: '" + name + "'"
	}
	const everything = "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: everything}\nrules: [{apiGroups: ['*'], resources: " +
		"['*'], verbs: ['*']}]"
	pods := strings.NewReplacer("name: everything", "name: pods", "resources: ['*']", "resources: [pods]", "verbs: ['*']", "verbs: [create]").Replace(everything)
	for name, c := range map[string]struct{ binding, says string }{
		"whoever has logged in": {bound("ClusterRoleBinding", cluster, "cluster-admin", group("system:authenticated")),
			"ClusterRoleBinding x gives everyone who has logged in, people and accounts of all teams among them, ClusterRole cluster-admin in the whole cluster: " +
				"remove the binding"},
		"whoever has logged in may read": {bound("ClusterRoleBinding", cluster, "view", group("system:authenticated")), "ClusterRole view in the whole cluster"},
		"whoever has not logged in": {bound("ClusterRoleBinding", cluster, "cluster-admin", group("system:unauthenticated")),
			"gives everyone who has not logged in ClusterRole cluster-admin"},
		"the user who has not logged in": {bound("ClusterRoleBinding", cluster, "edit", "kind: User, name: 'system:anonymous'"),
			"gives everyone who has not logged in ClusterRole edit"},
		"all accounts": {bound("ClusterRoleBinding", cluster, "edit", group("system:serviceaccounts")),
			"gives all accounts of all namespaces ClusterRole edit"},
		"everyone, in one namespace": {bound("RoleBinding", "name: x, namespace: iris-red-web", "edit", group("system:authenticated")),
			"ClusterRole edit in namespace iris-red-web"},
		"everyone, by a role of the tree": {bound("ClusterRoleBinding", cluster, "secrets", group("system:authenticated")) +
			"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: secrets}\nrules: [{apiGroups: [''], resources: [secrets], " +
			"verbs: [get]}]", "ClusterRole secrets in the whole cluster"},
		"accounts of a team's namespace": {bound("ClusterRoleBinding", cluster, "everything", group("system:serviceaccounts:iris-red-web")) +
			everything, "gives all accounts of namespace iris-red-web, which is a team's, ClusterRole everything in the whole cluster"},
		"an account of a team's namespace": {bound("ClusterRoleBinding", cluster, "edit", "kind: ServiceAccount, name: ci, namespace: iris-red-web"),
			"gives ci of namespace iris-red-web, which is a team's, ClusterRole edit"},
		"admins of a Tenant": {bound("ClusterRoleBinding", cluster, "cluster-admin", group("red-leads")),
			"gives Group red-leads, access.admins of Tenant iris-red, ClusterRole cluster-admin in the whole cluster: remove the binding, or the entry of the Tenant " +
				"if these people run the platform"},
		"developers of a Tenant": {bound("ClusterRoleBinding", cluster, "landwaiter-cluster-admin", group("red-devs")),
			"Group red-devs, access.developers of Tenant iris-red"},
		"viewers of a Tenant": {bound("ClusterRoleBinding", cluster, "admin", group("everybody-else")),
			"Group everybody-else, access.viewers of Tenant iris-red"},
		"a person of a Tenant": {bound("ClusterRoleBinding", cluster, "edit", "kind: User, name: ann@example.com"),
			"User ann@example.com, access.admins of Tenant iris-blue"},
		"by a role of the tree": {bound("ClusterRoleBinding", cluster, "everything", group("red-leads")) + everything,
			"ClusterRole everything in the whole cluster"},
		"more than admin, in their own team": {bound("RoleBinding", "name: x, namespace: iris-red-web", "cluster-admin", group("red-leads")),
			"ClusterRole cluster-admin in namespace iris-red-web"},
		"people of a team in Flux's namespace": {bound("RoleBinding", "name: x, namespace: flux-system", "edit", group("red-devs")),
			"gives Group red-devs, access.developers of Tenant iris-red, ClusterRole edit in namespace flux-system: remove the binding"},
		"people of a team in the control plane's": {bound("RoleBinding", "name: x, namespace: kube-system", "admin", "kind: User, name: ann@example.com"),
			"gives User ann@example.com, access.admins of Tenant iris-blue, ClusterRole admin in namespace kube-system"},
		"an account of a team in " +
			"Gatekeeper's": {bound("RoleBinding", "name: x, namespace: gatekeeper-system", "edit", "kind: ServiceAccount, name: web, namespace: iris-red-web"),
			"gives web of namespace iris-red-web, which is a team's, ClusterRole edit in namespace gatekeeper-system"},
		"an account of a team, by a role " +
			"of the tree": {bound("RoleBinding", "name: x, namespace: landwaiter-system", "pods", "kind: ServiceAccount, name: default, namespace: iris-red-web") + pods,
			"ClusterRole pods in namespace landwaiter-system"},
		"an account of a team " +
			"in another's": {bound("RoleBinding", "name: x, namespace: iris-blue-web", "edit", "kind: ServiceAccount, name: web, namespace: iris-red-web"),
			"gives web of namespace iris-red-web, which is a team's, ClusterRole edit in namespace iris-blue-web"},
		"default in its own namespace": {bound("RoleBinding", "name: x, namespace: iris-red-web", "edit", "kind: ServiceAccount, name: default"),
			"gives default of namespace iris-red-web, which is a team's, ClusterRole edit in namespace iris-red-web: bind another account"},
		"all accounts of a namespace " +
			"in their own": {bound("RoleBinding", "name: x, namespace: iris-red-web", "admin", group("system:serviceaccounts:iris-red-web")),
			"gives all accounts of namespace iris-red-web"},
		"all accounts of the " +
			"home namespace": {bound("RoleBinding", "name: x, namespace: iris-red-web", "landwaiter-reconciler", group("system:serviceaccounts:iris-red")),
			"gives the account of Tenant iris-red ClusterRole landwaiter-reconciler"},
		"developers in the home namespace": {bound("RoleBinding", "name: x, namespace: iris-red", "edit", group("red-devs")),
			"ClusterRole edit in namespace iris-red: remove the binding; only admins of a Tenant have permissions in its home namespace"},
		"the account, what its " +
			"role may have": {bound("RoleBinding", "name: x, namespace: iris-red-web", "view", "kind: ServiceAccount, name: iris-red, namespace: iris-red"),
			"nothing else: remove the binding, or name a role with these permissions"},
		"everyone who may edit, by an " +
			"aggregated role": {bound("ClusterRoleBinding", cluster, "view", group("nobody")) +
			strings.Replace(everything, "{name: everything}", "{name: everything, labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}}", 1),
			"ClusterRole everything is a part of the role edit"},
		"people of a team in another's": {bound("RoleBinding", "name: x, namespace: iris-blue-web", "edit", group("red-leads")),
			"ClusterRole edit in namespace iris-blue-web"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong{func(t *testing.T, dir string) { grants(t, dir, c.binding) }, rights, c.says}.isFound(t, withPeople(t))
		})
	}
}

func TestRightsThatReachNobodyElseAreSound(t *testing.T) {
	dir := withPeople(t)
	const next = "\n---\napiVersion: rbac.authorization.k8s.io/v1\n"
	grants(t, dir, bound("ClusterRoleBinding", "name: a", "system:basic-user", "kind: Group, name: 'system:authenticated'")+next+
		bound("ClusterRoleBinding", "name: b", "cluster-admin", "kind: Group, name: platform")+next+
		bound("ClusterRoleBinding", "name: c", "view", "kind: Group, name: red-leads")+next+
		bound("RoleBinding", "name: d, namespace: iris-red-web", "edit", "kind: Group, name: red-leads")+next+
		bound("RoleBinding", "name: e, namespace: monitoring", "edit", "kind: Group, name: red-leads")+next+
		bound("RoleBinding", "name: g, namespace: iris-red", "edit", "kind: Group, name: red-leads")+next+
		bound("RoleBinding", "name: h, namespace: iris-red-web", "edit", "kind: ServiceAccount, name: ci")+next+
		bound("RoleBinding", "name: i, namespace: flux-system", "view", "kind: Group, name: red-devs")+next+
		bound("RoleBinding", "name: j, namespace: kube-system", "extension-apiserver-authentication-reader",
			"kind: ServiceAccount, name: web, namespace: iris-red-web")+next+
		bound("ClusterRoleBinding", "name: f", "classes", "kind: Group, name: 'system:authenticated'")+next+
		"kind: ClusterRole\nmetadata: {name: classes}\nrules: [{apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch]}]")
	report, err := Check(t.Context(), dir, CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, rightsOf(report.Findings))
}

func TestATenantWhoseAccountMayDoEverythingIsFound(t *testing.T) {
	for role, far := range map[string]bool{"cluster-admin": true, "everything": true, "edit": false, "of-another-tree": false} {
		t.Run(role, func(t *testing.T) {
			red := team("iris-red", func(s *v1beta1.TenantSpec) { s.Reconciler.ClusterRole = role })
			dir := light(t, example{platform: &Platform{Constraints: []string{imagesSet}, Environments: []string{"staging"}}, teams: []Team{{Tenant: red}}}.write(t))
			grants(t, dir, "kind: ClusterRole\nmetadata: {name: everything}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]")
			report, err := Check(t.Context(), dir, CheckOptions{})
			require.NoError(t, err)
			found := rightsOf(report.Findings)
			require.Equal(t, far, len(found) == 1, "%v", found)
			if far {
				require.Contains(t, found[0].Message, "Tenant iris-red: spec.reconciler.clusterRole is "+role)
				require.NotContains(t, found[0].Message, "with these permissions")
				require.Equal(t, "tenants/base/iris-red/tenant.yaml", found[0].File)
			}
			require.Equal(t, role == "cluster-admin", strings.Contains(strings.Join(Team{Tenant: red}.hints(Platform{}), ""), "clusterRole is cluster-admin"))
		})
	}
}

// rightsOf leaves only findings about rights.
func rightsOf(found []resource.Finding) (rights []resource.Finding) {
	for _, f := range found {
		if f.ID == "ReachTooFar" {
			rights = append(rights, f)
		}
	}
	return rights
}
