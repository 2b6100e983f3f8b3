package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

func accepts() interceptor.Funcs {
	return interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return nil
	}}
}

func makerBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// making returns a Tenant whose account makes namespaces.
func making(name string) *v1beta1.Tenant {
	tenant := team(name)
	tenant.Spec.NamespacePrefix, tenant.Spec.Reconciler = name+"-", &v1beta1.TenantReconciler{CreateNamespaces: true}
	return tenant
}

func TestFindsWhoMayMakeNamespacesAndIsNoTenantsAccount(t *testing.T) {
	plain := team("red")
	plain.Spec.Reconciler = &v1beta1.TenantReconciler{}
	person := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "maker"}
	e := New(fakeClient(t, accepts(), making("green"), plain, namespaceOf("green", "green"), namespaceOf("red", "red"),
		makerBinding("green-namespace-maker", onboard.RoleNamespaceMaker, account("green", "green"), person),
		makerBinding("red-namespace-maker", onboard.RoleNamespaceMaker, account("red", "red")),
		makerBinding("gone-namespace-maker", onboard.RoleNamespaceMaker, account("gone", "gone")),
		makerBinding("admins", "cluster-admin", person)), Options{})
	found := func(name string) map[string]string {
		findings, _, err := e.Check(t.Context(), name)
		require.NoError(t, err)
		where := map[string]string{}
		for _, f := range findings {
			if f.Object.Kind == kindClusterRoleBinding {
				require.Equal(t, findingLeftoverBinding, f.ID, "a binding is one finding")
				where[f.Object.String()] += f.Message + ": " + f.Command
			}
		}
		return where
	}
	const says = ", which is not the account of a Tenant with spec.reconciler.createNamespaces, make namespaces: kubectl delete clusterrolebinding "
	require.Equal(t, map[string]string{
		"ClusterRoleBinding green-namespace-maker": "lets User maker" + says + "green-namespace-maker",
		"ClusterRoleBinding red-namespace-maker":   "lets ServiceAccount red/red" + says + "red-namespace-maker",
		"ClusterRoleBinding gone-namespace-maker":  "lets ServiceAccount gone/gone" + says + "gone-namespace-maker",
	}, found(""))
	require.Len(t, found("red"), 1)
	require.Contains(t, found("red"), "ClusterRoleBinding red-namespace-maker")
}

func TestFindsWhoMayMakeNamespacesByWhatRolesAllow(t *testing.T) {
	red := team("red")
	red.Spec.Reconciler = &v1beta1.TenantReconciler{}
	role := func(name string, rule rbacv1.PolicyRule) *rbacv1.ClusterRole {
		rule.APIGroups = []string{v1beta1.GroupVersion.Group}
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	}
	labels := []string{"tenantlabels"}
	who := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	e := New(fakeClient(t, accepts(), making("green"), red, namespaceOf("green", "green"), namespaceOf("red", "red"),
		role("copy", rbacv1.PolicyRule{Resources: labels, Verbs: []string{"create"}}),
		role("all", rbacv1.PolicyRule{Resources: []string{"*"}, Verbs: []string{"*"}}),
		role("reads", rbacv1.PolicyRule{Resources: []string{"*"}, Verbs: []string{"get", "list"}}),
		role("one", rbacv1.PolicyRule{Resources: labels, ResourceNames: []string{"x"}, Verbs: []string{"create"}}),
		makerBinding("copied", "copy", account("red", "red"), account("green", "green")),
		makerBinding("copied-to-somebody", "copy", who(rbacv1.UserKind, "maker")),
		makerBinding("all-of-red", "all", account("red", "any")),
		makerBinding("all-of-green", "all", account("green", "green")),
		makerBinding("platform", "all", who(rbacv1.GroupKind, "platform")),
		makerBinding("reads", "reads", account("red", "red")),
		makerBinding("one", "one", account("red", "red")),
		makerBinding("extra", onboard.RoleNamespaceMaker, account("red", "red")),
		makerBinding("as-group", onboard.RoleNamespaceMaker, who(rbacv1.GroupKind, "system:serviceaccounts:red")),
		makerBinding("as-user", onboard.RoleNamespaceMaker, who(rbacv1.UserKind, "system:serviceaccount:red:red"))), Options{})
	found := func(name string) (bindings []string) {
		findings, _, err := e.Check(t.Context(), name)
		require.NoError(t, err)
		for _, f := range findings {
			if f.Object.Kind == kindClusterRoleBinding {
				require.Equal(t, "kubectl delete clusterrolebinding "+f.Object.Name, f.Command)
				bindings = append(bindings, f.Tenant+": "+f.Object.Name)
			}
		}
		return bindings
	}
	ofRed := []string{"red: all-of-red", "red: as-group", "red: as-user", "red: copied", "red: extra"}
	require.Equal(t, append([]string{": copied-to-somebody", "green: all-of-green"}, ofRed...), found(""))
	require.Equal(t, ofRed, found("red"))
	require.Equal(t, []string{"green: all-of-green"}, found("green"))
}

func TestTheBindingThatMakesNamespacesIsForTheTenantsAccountAlone(t *testing.T) {
	without := making("green")
	without.Spec.Reconciler = nil
	moved := making("green")
	moved.Spec.Reconciler.ServiceAccount = "other"
	for about, c := range map[string]struct {
		tenant   *v1beta1.Tenant
		subjects []rbacv1.Subject
		says     string
	}{
		"as it should be": {making("green"), []rbacv1.Subject{account("green", "green")}, ""},
		"none":            {making("green"), nil, "kubectl create clusterrolebinding green-namespace-maker"},
		"somebody besides": {making("green"), []rbacv1.Subject{account("green", "green"), account("web", "x")},
			"lets ServiceAccount web/x, which is not the account"},
		"another account":            {moved, []rbacv1.Subject{account("green", "green")}, "lets ServiceAccount green/green, which is not the account"},
		"no account any more":        {without, []rbacv1.Subject{account("green", "green")}, "kubectl delete clusterrolebinding green-namespace-maker"},
		"no account, no permissions": {without, nil, ""},
	} {
		t.Run(about, func(t *testing.T) {
			objects := []client.Object{c.tenant, namespaceOf("green", "green")}
			if c.subjects != nil {
				objects = append(objects, makerBinding("green-namespace-maker", onboard.RoleNamespaceMaker, c.subjects...))
			}
			e := New(fakeClient(t, accepts(), objects...), Options{Onboard: onboard.Options{ClusterRights: true}})
			report, err := e.Apply(t.Context(), c.tenant)
			require.NoError(t, err)
			var said []string
			for _, p := range report.Problems {
				if p.Object.Kind == kindClusterRoleBinding {
					require.Equal(t, policy.ReasonAccessDenied, p.Reason)
					said = append(said, p.Message)
				}
			}
			if c.says == "" {
				require.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			require.Contains(t, said[0], c.says)
		})
	}
}
