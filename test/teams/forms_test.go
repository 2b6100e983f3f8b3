//go:build e2e

package teams

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// forms are Tenants that differ in what is rendered for them.
func forms() map[string]*v1beta1.Tenant {
	source := func(url string) *v1beta1.TenantSource {
		return &v1beta1.TenantSource{URL: url, SecretRef: &v1beta1.Reference{Name: "login"}, Exclude: "ctrl.py\nREADME.md"}
	}
	group := []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "people"}}
	variables, secrets := map[string]v1beta1.Variable{"REGION": "eu"},
		[]v1beta1.VariablesSource{{SecretRef: v1beta1.Reference{Name: "app"}}, {SecretRef: v1beta1.Reference{Name: "more.of-it"}, Optional: true}}
	made := map[string]*v1beta1.Tenant{
		"alone": {Spec: v1beta1.TenantSpec{Access: v1beta1.TenantAccess{Admins: group},
			Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "flux", Variables: variables, VariablesFrom: secrets[:1], Source: source("oci://example.com/x")},
			Isolation: v1beta1.TenantIsolation{PodSecurity: v1beta1.PodSecurityBaseline,
				Quota: corev1.ResourceList{"pods": resource.MustParse("5"), "limits.cpu": resource.MustParse("1500m")}}}},
		"prefixed": {Spec: v1beta1.TenantSpec{NamespacePrefix: "form-prefixed-", Namespaces: []string{"form-prefixed-a", "form-other"},
			Access:     v1beta1.TenantAccess{Admins: group, Developers: group, Viewers: group},
			Reconciler: &v1beta1.TenantReconciler{CreateNamespaces: true, Path: "./apps", VariablesFrom: secrets, Source: source("ssh://git@example.com/x")},
			Isolation:  v1beta1.TenantIsolation{Quota: corev1.ResourceList{"requests.memory": resource.MustParse("2048Mi")}}}},
		"open": {Spec: v1beta1.TenantSpec{Namespaces: []string{"form-open-a"}, Access: v1beta1.TenantAccess{Viewers: group},
			Isolation: v1beta1.TenantIsolation{PodSecurity: v1beta1.PodSecurityPrivileged, Network: v1beta1.NetworkIsolationOpen}}},
		"demo": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationForm: onboard.FormDemo}},
			Spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{Variables: variables, Source: source("https://example.com/x")}}},
		"shared": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationForm: onboard.FormDemoShared}},
			Spec: v1beta1.TenantSpec{Reconciler: &v1beta1.TenantReconciler{Path: onboard.DemoPath}}},
	}
	for name, tenant := range made {
		tenant.Name, tenant.Spec.HomeNamespace = "form-"+name, "form-"+name
		if source := tenant.Spec.Reconciler; source != nil && source.Source != nil {
			source.Source.Interval = "1m30s"
		}
	}
	return made
}

// The operator guardrails render Tenants a second time: they would refuse a field that they do not
// know.
func TestTheOperatorGuardrailsLetEveryFormOfATenantPass(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	as := w.as(t, operator())
	w.planted(t,
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: forms}, rules: [{apiGroups: [landwaiter.dev], resources: "+
			"[tenants], verbs: [operate]}]}"),
		binding("", "forms", "forms", serviceAccount(suite.System, "landwaiter-operator")))
	for about, tenant := range forms() {
		t.Run(about, func(t *testing.T) {
			objects, err := onboard.Objects(tenant, onboard.Options{Constraints: true})
			require.NoError(t, err)
			require.NoError(t, w.Client.Create(suite.Within(t), tenant))
			t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), tenant)) })
			suite.Eventually(t, func(ctx context.Context) error { // the guardrail knows the Tenant
				free := suite.Object("{apiVersion: v1, kind: Namespace, metadata: {name: free, labels: {landwaiter.dev/tenant: %s}, annotations: "+
					"{landwaiter.dev/created: %s}}}", tenant.Name, tenant.Name)
				if err := as.Create(ctx, free, client.DryRunAll); !refusedBy(err, "operator-tenants") {
					return fmt.Errorf("not refused: %w", err)
				}
				return nil
			})
			for range 2 {
				for _, object := range objects {
					applied := object.DeepCopy()
					if object.GetKind() == "Namespace" {
						applied.SetAnnotations(map[string]string{v1beta1.AnnotationCreated: tenant.Name})
					}
					require.NoError(t, as.Apply(suite.Within(t), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("landwaiter-tenant")), "%s %s",
						object.GetKind(), object.GetName())
				}
			}
			for _, object := range objects {
				if object.GetNamespace() == "" {
					require.NoError(t, w.Client.Delete(suite.Within(t), object.DeepCopy()))
				}
			}
		})
	}
}
