package onboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// The expected documents are what flux 2.9.4 prints for the flags in the names.
func TestExportEqualsFlux(t *testing.T) {
	namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    toolkit.fluxcd.io/tenant: dev-team\n  name: NS\n"
	rest := func(account, role string) string {
		return "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  labels:\n    toolkit.fluxcd.io/tenant: dev-team\n  name: " + account + "\n  namespace: NS\n" +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  labels:\n    toolkit.fluxcd.io/tenant: dev-team\n  name: " +
			"dev-team-reconciler\n  namespace: NS\n" +
			"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: " + role + "\nsubjects:\n" +
			"- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: gotk:NS:reconciler\n- kind: ServiceAccount\n  name: " + account + "\n  namespace: NS\n"
	}
	for name, c := range map[string]struct {
		reconciler *v1beta1.TenantReconciler
		namespaces []string
		o          FluxOptions
		want       string // with NS for the namespace
	}{
		"--with-namespace=apps": {want: namespace + rest("dev-team", "cluster-admin")},
		"--with-namespace=apps --cluster-role=custom-role": {reconciler: &v1beta1.TenantReconciler{ClusterRole: "custom-role"},
			want: namespace + rest("dev-team", "custom-role")},
		"--with-namespace=apps --with-service-account=flux-tenant": {reconciler: &v1beta1.TenantReconciler{ServiceAccount: "flux-tenant"},
			want: namespace + rest("flux-tenant", "cluster-admin")},
		"--with-namespace=apps --skip-namespace": {o: FluxOptions{SkipNamespace: true}, want: rest("dev-team", "cluster-admin")},
		"--with-namespace=apps --with-namespace=web " +
			"--with-namespace=data": {namespaces: []string{"web", "data"}, want: namespace + rest("dev-team", "cluster-admin")},
		"--with-namespace=apps --label=environment=dev " +
			"--label=toolkit.fluxcd.io/tenant=other": {o: FluxOptions{Labels: map[string]string{"environment": "dev", "toolkit.fluxcd.io/tenant": "other"}},
			want: strings.ReplaceAll(namespace+rest("dev-team", "cluster-admin"), "  labels:\n", "  labels:\n    environment: dev\n")},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "dev-team"},
				Spec: v1beta1.TenantSpec{HomeNamespace: "apps", Namespaces: c.namespaces, Reconciler: c.reconciler}}
			want := ""
			for _, namespace := range append([]string{"apps"}, c.namespaces...) {
				want += strings.ReplaceAll(c.want, "NS", namespace)
			}
			got, err := Flux(tenant, c.o)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		})
	}
}

func TestFluxRefusesWhatItsNamesWouldBreak(t *testing.T) {
	_, err := Flux(&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "dev-team"}, Spec: v1beta1.TenantSpec{HomeNamespace: "kube-system"}}, FluxOptions{})
	require.ErrorContains(t, err, "spec.homeNamespace: kube-system is a namespace of the system")
	_, err = Flux(&v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "dev-team"}, Spec: v1beta1.TenantSpec{HomeNamespace: "apps"}},
		FluxOptions{Labels: map[string]string{"a b": "c"}})
	require.ErrorContains(t, err, "a b=c is not a label")
}
