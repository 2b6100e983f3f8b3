//go:build e2e

package teams

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// blue is a Tenant with everything that a Tenant can stand for.
func blue(t *testing.T) (*v1beta1.Tenant, []*unstructured.Unstructured) {
	t.Helper()
	tenant := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris-blue"}, Spec: v1beta1.TenantSpec{
		HomeNamespace: "iris-blue", Namespaces: []string{"iris-blue-web"},
		Access: v1beta1.TenantAccess{
			Admins:     []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "blue-admins"}},
			Developers: []v1beta1.TenantSubject{{Kind: v1beta1.SubjectUser, Name: "bea"}, {Kind: v1beta1.SubjectServiceAccount, Namespace: "ci", Name: "runner"}},
			Viewers:    []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "blue-viewers"}},
		},
		Reconciler: &v1beta1.TenantReconciler{ServiceAccount: "flux", Variables: map[string]v1beta1.Variable{"REGION": "eu"},
			Source: &v1beta1.TenantSource{URL: "https://example.com/blue"}},
		Isolation: v1beta1.TenantIsolation{Quota: corev1.ResourceList{"pods": resource.MustParse("50"), "requests.memory": resource.MustParse("2048Mi")},
			Registries: []string{"registry.example.com/blue/", "docker.io/library/"}},
	}}
	objects, err := onboard.Objects(tenant, onboard.Options{Constraints: true})
	require.NoError(t, err)
	require.Greater(t, len(objects), 15)
	return tenant, objects
}

// The operator guardrails let through everything that a Tenant stands for, and what the platform
// owns of it is closed to the team.
func TestTheOperatorMakesWhatATenantStandsForAndTheTeamCannotChangeIt(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	tenant, objects := blue(t)
	require.NoError(t, w.Client.Create(suite.Within(t), tenant))
	t.Cleanup(func() {
		_ = w.Client.Patch(suite.Within(t), tenant, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		require.NoError(t, client.IgnoreNotFound(w.Client.Delete(suite.Within(t), tenant)))
	})
	as := w.as(t, operator())
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			object.SetAnnotations(map[string]string{v1beta1.AnnotationCreated: tenant.Name})
		}
		suite.Eventually(t, func(ctx context.Context) error { // the Tenant may not be known yet
			return as.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("landwaiter-tenant"))
		})
	}
	// And for what pins tags, whatever has to be shortened.
	owner := &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris-green"}, Spec: v1beta1.TenantSpec{HomeNamespace: "iris-green"}}
	m := onboard.Mutation{CABundle: []byte("x"), Labels: map[string]string{"app.kubernetes.io/managed-by": "landwaiter-operator"}}
	pinning := slices.Concat(m.Everywhere([]string{"kube-system"}), m.Only([]string{"payments"}),
		m.Stores(owner, owner.Spec.HomeNamespace, []string{"iris-green", "iris-green-web"}))
	for _, namespace := range []string{"iris-green-web", "iris-green-" + strings.Repeat("x", 30),
		"iris-green-" + strings.Repeat("x", 40) + "--" + strings.Repeat("x", 10)} {
		pinning = append(pinning, m.Stores(owner, namespace, []string{namespace})...)
	}
	for _, object := range pinning {
		require.NoError(t, as.Create(suite.Within(t), object, client.DryRunAll), "%s %s", object.GetKind(), object.GetName())
	}
	// An admin of the namespace may do everything but what is guarded.
	require.NoError(t,
		w.Apply(suite.Within(t), binding("iris-blue", "everything", "cluster-admin", user("boss")),
			binding("iris-blue-web", "everything", "cluster-admin", user("boss"))))
	boss, err := w.NewClient(w.As("boss"))
	require.NoError(t, err)
	guarded := 0
	for _, object := range objects {
		if object.GetKind() == onboard.KindRegistries {
			continue // no permission in a namespace reaches it
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"landwaiter.dev/owner":null,"landwaiter.dev/tenant":null}}}`))
		rule := "platform-objects"
		if object.GetKind() == "Namespace" {
			rule = "tenant-labels"
		}
		for name, try := range map[string]error{
			"change": boss.Patch(suite.Within(t), object.DeepCopy(), patch, client.DryRunAll),
			"delete": boss.Delete(suite.Within(t), object.DeepCopy(), client.DryRunAll),
		} {
			guarded++
			require.True(t, refusedBy(try, rule) || refusedBy(try, "namespace-deletion"), "%s %s %s/%s: %v", name, object.GetKind(), object.GetNamespace(),
				object.GetName(), try)
		}
	}
	t.Logf("%d objects, %d requests of a namespace's cluster-admin refused", len(objects), guarded)
	// What restricts goes no sooner than the Tenant: in the order of a deletion.
	require.True(t, refusedBy(as.Delete(suite.Within(t), named("NetworkPolicy", "iris-blue-web", "default-deny"), client.DryRunAll), "operator-tenants"))
	require.NoError(t,
		w.Client.Patch(suite.Within(t), tenant,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["landwaiter.dev/operator"]},"spec":{"namespaceReclaimPolicy":"DeleteCreated"}}`)),
			managerOf("Tenant")))
	require.NoError(t, w.Client.Delete(suite.Within(t), tenant))
	suite.Eventually(t, func(ctx context.Context) error {
		return as.Delete(ctx, named(onboard.KindRegistries, "", tenant.Name), client.DryRunAll)
	})
	orphan := change("Kustomization", "iris-blue", "iris-blue", `{"spec":{"suspend":true,"deletionPolicy":"Orphan"}}`)
	require.NoError(t, orphan(suite.Within(t), as))
	for _, object := range slices.Backward(objects) {
		require.NoError(t, as.Delete(suite.Within(t), object.DeepCopy()), "%s %s", object.GetKind(), object.GetName())
	}
	// The Tenant itself goes no sooner than Landwaiter has listed that it ends.
	letGo := func(ctx context.Context) error {
		return as.Patch(ctx, tenant, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)), managerOf("Tenant"))
	}
	require.ErrorContains(t, letGo(suite.Within(t)), "does not list Tenant iris-blue as one that ends")
	w.planted(t,
		suite.Object("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: iris-blue-ends}, rules: [{apiGroups: [landwaiter.dev], "+
			"resources: [tenants], resourceNames: [iris-blue], verbs: [end]}]}"),
		binding("", "iris-blue-ends", "iris-blue-ends", serviceAccount(suite.System, "landwaiter-operator")))
	suite.Eventually(t, letGo)
}

// Kinds that the renderer will have one day must be guarded, too.
func TestEveryKindThatThePlatformOwnsIsGuarded(t *testing.T) {
	w := attacked(t)
	var policy admissionv1.ValidatingAdmissionPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ValidatingAdmissionPolicy", "landwaiter-platform-objects").Object, &policy))
	_, objects := blue(t)
	for _, object := range objects {
		if object.GetLabels()[v1beta1.LabelOwner] != v1beta1.OwnerPlatform || object.GetNamespace() == "" {
			continue
		}
		mapping, err := w.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind())
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, mapping.Resource.Group) && (slices.Contains(r.Resources, mapping.Resource.Resource) || slices.Contains(r.Resources, "*"))
		}), object.GetKind())
	}
}
