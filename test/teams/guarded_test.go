//go:build e2e

package teams

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	"github.com/landwaiter/landwaiter/pkg/onboard"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// blue is a Tenant with everything that a Tenant can stand for.
func blue(t *testing.T) (*v1alpha1.Tenant, []*unstructured.Unstructured) {
	t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iris-blue"}, Spec: v1alpha1.TenantSpec{
		Home: "iris-blue", Namespaces: []string{"iris-blue-web"},
		People: v1alpha1.TenantPeople{
			Admins:     []v1alpha1.TenantSubject{{Kind: v1alpha1.SubjectGroup, Name: "blue-admins"}},
			Developers: []v1alpha1.TenantSubject{{Kind: v1alpha1.SubjectUser, Name: "bea"}, {Kind: v1alpha1.SubjectServiceAccount, Namespace: "ci", Name: "runner"}},
			Viewers:    []v1alpha1.TenantSubject{{Kind: v1alpha1.SubjectGroup, Name: "blue-viewers"}},
		},
		Reconciler: &v1alpha1.TenantReconciler{ServiceAccount: "flux", Variables: map[string]v1alpha1.Variable{"REGION": "eu"},
			Source: &v1alpha1.TenantSource{URL: "https://example.com/blue"}},
		Isolation: v1alpha1.TenantIsolation{Registries: []string{"registry.example.com/blue/", "docker.io/library/"}},
	}}
	objects, err := onboard.Objects(tenant, onboard.Options{Constraints: true})
	require.NoError(t, err)
	require.Greater(t, len(objects), 15)
	return tenant, objects
}

// The fence is wide enough for everything that a Tenant stands for, and what the platform
// owns of it is closed to the team.
func TestTheOperatorMakesWhatATenantStandsForAndTheTeamCannotChangeIt(t *testing.T) {
	w := attacked(t)
	w.allRefuse(t)
	tenant, objects := blue(t)
	require.NoError(t, w.Client.Create(suite.Within(t), tenant))
	t.Cleanup(func() { require.NoError(t, w.Client.Delete(suite.Within(t), tenant)) })
	as := w.as(t, operator())
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			object.SetAnnotations(map[string]string{v1alpha1.AnnotationMade: tenant.Name})
		}
		suite.Eventually(t, func(ctx context.Context) error { // the Tenant may not be known yet
			return as.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("landwaiter-tenant"))
		})
	}
	pinning, err := cluster.DecodeFile(suite.Root + "/pkg/onboard/testdata/mutation.yaml")
	require.NoError(t, err)
	for _, object := range pinning {
		require.NoError(t, as.Create(suite.Within(t), object, client.DryRunAll), "%s %s", object.GetKind(), object.GetName())
	}
	// An admin of the namespace may do everything but what is guarded.
	require.NoError(t, w.Apply(suite.Within(t), binding("iris-blue", "everything", "cluster-admin", user("boss")), binding("iris-blue-web", "everything", "cluster-admin", user("boss"))))
	boss, err := w.NewClient(w.As("boss"))
	require.NoError(t, err)
	guarded := 0
	for _, object := range objects {
		if object.GetKind() == onboard.KindRegistries {
			continue // no right in a namespace reaches it
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"landwaiter.dev/owner":null,"landwaiter.dev/tenant":null}}}`))
		rule := "platform-objects"
		if object.GetKind() == "Namespace" {
			rule = "tenant-labels"
		}
		for name, try := range map[string]error{
			"change": boss.Patch(suite.Within(t), object.DeepCopy(), patch, client.DryRunAll), "delete": boss.Delete(suite.Within(t), object.DeepCopy(), client.DryRunAll),
		} {
			guarded++
			require.True(t, refusedBy(try, rule) || refusedBy(try, "namespace-deletion"), "%s %s %s/%s: %v", name, object.GetKind(), object.GetNamespace(), object.GetName(), try)
		}
	}
	t.Logf("%d objects, %d requests of a namespace's cluster-admin refused", len(objects), guarded)
	// In the order of a deletion, which the Tenant's own list of registries must not outlive.
	require.NoError(t, w.Client.Patch(suite.Within(t), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"isolation":{"registries":null}}}`))))
	suite.Eventually(t, func(ctx context.Context) error {
		return as.Delete(ctx, named(onboard.KindRegistries, "", tenant.Name), client.DryRunAll)
	})
	for _, object := range slices.Backward(objects) {
		require.NoError(t, as.Delete(suite.Within(t), object.DeepCopy()), "%s %s", object.GetKind(), object.GetName())
	}
}

// Kinds that the renderer will have one day must be guarded, too.
func TestEveryKindThatThePlatformOwnsIsGuarded(t *testing.T) {
	w := attacked(t)
	var policy admissionv1.ValidatingAdmissionPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(w.find("ValidatingAdmissionPolicy", "landwaiter-platform-objects").Object, &policy))
	_, objects := blue(t)
	for _, object := range objects {
		if object.GetLabels()[v1alpha1.LabelOwner] != v1alpha1.OwnerPlatform || object.GetNamespace() == "" {
			continue
		}
		mapping, err := w.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind())
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, mapping.Resource.Group) && (slices.Contains(r.Resources, mapping.Resource.Resource) || slices.Contains(r.Resources, "*"))
		}), object.GetKind())
	}
}
