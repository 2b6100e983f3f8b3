package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

func TestANamespaceKeepsItsIdentityAndBreakGlassAlone(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	glass := map[string]string{v1beta1.AnnotationBreakGlassFrom: "a", v1beta1.AnnotationBreakGlassUntil: strings.Repeat("u", maxAnnotation),
		v1beta1.AnnotationBreakGlassReason: strings.Repeat("r", maxAnnotation+1)}
	identity := metav1.ObjectMeta{Name: "team-a", UID: "1", ResourceVersion: "7", CreationTimestamp: now, DeletionTimestamp: &now}
	large := identity
	large.Annotations = map[string]string{"example.com/a": strings.Repeat("x", 200<<10)}
	for key, value := range glass {
		large.Annotations[key] = value
	}
	large.Labels, large.Finalizers = map[string]string{"a": "b", v1beta1.LabelTenant: "iris"}, []string{"example.com/f"}
	large.OwnerReferences, large.ManagedFields = []metav1.OwnerReference{{Name: "o"}}, []metav1.ManagedFieldsEntry{{Manager: "m"}}

	reduced, err := reduce(&resource.Room{})(&corev1.Namespace{ObjectMeta: large, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/f"}},
		Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{{Message: strings.Repeat("x", 1<<10)}}}})
	require.NoError(t, err)
	glass[v1beta1.AnnotationBreakGlassReason] = "" // without a reason break-glass is not in force
	identity.Annotations, identity.Labels = glass, map[string]string{v1beta1.LabelTenant: "iris"}
	require.Equal(t, &corev1.Namespace{ObjectMeta: identity}, reduced)
}

// A watch that was interrupted lists again, and finds an object that was deleted and made
// again meanwhile as another state of the one that it knew.
func TestAResourceThatWasMadeAgainIsAChange(t *testing.T) {
	policy := func(uid, version string, generation int64) *v1beta1.VerificationPolicy {
		return &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID(uid), ResourceVersion: version, Generation: generation}}
	}
	was, passes := policy("a", "1", 1), specChanged()
	require.True(t, passes.Create(event.CreateEvent{Object: was}))
	require.True(t, passes.Delete(event.DeleteEvent{Object: was}))
	for name, c := range map[string]struct {
		is     *v1beta1.VerificationPolicy
		change bool
	}{
		"another spec": {policy("a", "2", 2), true},
		"a status":     {policy("a", "2", 1), false},
		"made again":   {policy("b", "2", 1), true},
	} {
		require.Equal(t, c.change, passes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: c.is}), name)
	}
}
