package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// A team may write any label but the platform's, and any field manager.
func TestWhatATeamLabelsWithAnotherTenantIsNothingToThatTenant(t *testing.T) {
	forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "forged", Labels: map[string]string{v1beta1.LabelTenant: "green"},
		Finalizers: []string{"example.com/stay"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1("{}")}}}}
	c := fakeClient(t, interceptor.Funcs{}, namespaceOf("green", "green"), namespaceOf("blue", "blue"), forged)
	e := New(c, Options{})
	deletion, err := e.Delete(t.Context(), team("green"))
	require.NoError(t, err)
	require.Empty(t, deletion.Pending)
	require.Empty(t, deletion.Problems)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(forged), forged))
	require.Nil(t, forged.DeletionTimestamp)
}

func TestOnlyWhatThePlatformSaysOnANamespaceMakesWork(t *testing.T) {
	for about, c := range map[string]struct {
		change func(*corev1.Namespace)
		passes bool
	}{
		"a label of the team":      {func(n *corev1.Namespace) { n.Labels["istio-injection"] = "enabled" }, false},
		"an annotation of it":      {func(n *corev1.Namespace) { n.Annotations = map[string]string{"x": "y"} }, false},
		"the Tenant":               {func(n *corev1.Namespace) { n.Labels[v1beta1.LabelTenant] = "blue" }, true},
		"the Tenant is taken off":  {func(n *corev1.Namespace) { delete(n.Labels, v1beta1.LabelTenant) }, true},
		"what Flux's tools set":    {func(n *corev1.Namespace) { n.Labels[v1beta1.LabelFluxTenant] = "blue" }, true},
		"pod security":             {func(n *corev1.Namespace) { n.Labels["pod-security.kubernetes.io/enforce"] = "privileged" }, true},
		"how it came to be":        {func(n *corev1.Namespace) { n.Annotations = map[string]string{v1beta1.AnnotationCreated: "green"} }, true},
		"its end":                  {func(n *corev1.Namespace) { n.DeletionTimestamp = &metav1.Time{} }, true},
		"another one of that name": {func(n *corev1.Namespace) { n.UID = "2" }, true},
	} {
		t.Run(about, func(t *testing.T) {
			before, after := namespaceOf("green", "green"), namespaceOf("green", "green")
			c.change(after)
			require.Equal(t, c.passes, ofTenants().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
	require.True(t, ofTenants().Create(event.CreateEvent{Object: namespaceOf("", "new")}))
	require.True(t, ofTenants().Delete(event.DeleteEvent{Object: namespaceOf("", "old")}))
}
