package operator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// A team may write any label but the platform's, and any field manager.
func TestWhatATeamLabelsWithAnotherTenantIsNothingToThatTenant(t *testing.T) {
	forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "forged", Labels: map[string]string{v1alpha1.LabelTenant: "green"}, Finalizers: []string{"example.com/stay"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}}}
	c := fakeClient(t, interceptor.Funcs{}, namespaceOf("green", "green"), namespaceOf("blue", "blue"), forged)
	e := New(c, Options{})
	deletion, err := e.Delete(t.Context(), team("green"))
	require.NoError(t, err)
	require.Empty(t, deletion.Pending)
	require.Empty(t, deletion.Problems)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(forged), forged))
	require.Nil(t, forged.DeletionTimestamp)
}
