package operator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// crowded is metadata with what others may fill.
func crowded(name string, labels, annotations map[string]string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: "7", Finalizers: []string{"example.com/f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}, {Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply}},
		Labels:          map[string]string{"example.com/a": "b"}, Annotations: map[string]string{"example.com/a": "b"}}
	for key, value := range labels {
		m.Labels[key] = value
	}
	for key, value := range annotations {
		m.Annotations[key] = value
	}
	return m
}

func TestTheOperatorKeepsWhatThePlatformSaysAlone(t *testing.T) {
	labels := map[string]string{v1beta1.LabelTenant: "iris", v1beta1.LabelHomeNamespace: "iris", onboard.LabelDemo: "iris", v1beta1.LabelFluxTenant: "iris",
		onboard.LabelPodSecurity + "enforce": "restricted"}
	annotations := map[string]string{v1beta1.AnnotationCreated: "iris", v1beta1.AnnotationAdopted: "iris"}
	reduced, err := reduce(&corev1.Namespace{ObjectMeta: crowded("iris", labels, annotations)})
	require.NoError(t, err)
	require.Equal(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "iris", UID: "1", ResourceVersion: "7", Labels: labels, Annotations: annotations,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)}}}}, reduced)

	member := map[string]string{v1beta1.LabelTenant: "iris"}
	reduced, err = reduce(&metav1.PartialObjectMetadata{ObjectMeta: crowded("iris-admins", member, nil)})
	require.NoError(t, err)
	require.Equal(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "iris-admins", UID: "1", ResourceVersion: "7", Labels: member}}, reduced)
}

// A team's account may write any label but a few, and name any field manager.
func TestWhatTheOperatorKeepsOfANamespaceIsBounded(t *testing.T) {
	namespace := func() *corev1.Namespace {
		tenant := team("green")
		objects, err := onboard.Objects(tenant, onboard.Options{Namespaces: []string{"green", "web"}})
		require.NoError(t, err)
		made := &corev1.Namespace{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, made))
		require.Equal(t, "green", made.Name)
		made.Labels[v1beta1.LabelHomeNamespace], made.Labels[onboard.LabelDemo] = "green", "green"
		made.Annotations = map[string]string{v1beta1.AnnotationCreated: "green", v1beta1.AnnotationAdopted: "green"}
		return made
	}
	want, large := namespace(), namespace()
	fields := map[string]map[string]struct{}{"f:labels": {}, "f:annotations": {}}
	for name := range want.Labels {
		fields["f:labels"]["f:"+name] = struct{}{}
	}
	for name := range want.Annotations {
		fields["f:annotations"]["f:"+name] = struct{}{}
	}
	for i := range 7_800 {
		for _, prefix := range []string{v1beta1.Group + "/", onboard.LabelPodSecurity} {
			name := fmt.Sprintf("%sx%062d", prefix, i)
			large.Labels[name] = ""
			fields["f:labels"]["f:"+name] = struct{}{}
		}
	}
	large.Annotations[v1beta1.AnnotationAdopted] = "green" + strings.Repeat("x", 200<<10)
	text, err := json.Marshal(map[string]any{"f:metadata": fields, "f:status": map[string]any{}})
	require.NoError(t, err)
	for i := range 100 {
		large.ManagedFields = append(large.ManagedFields,
			metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
				Subresource: fmt.Sprint(i), FieldsV1: metav1.NewFieldsV1(string(text))})
	}
	large.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerName(strings.Repeat("x", 100<<10))}
	large.Status.Conditions = []corev1.NamespaceCondition{{Type: "x", Message: strings.Repeat("x", 100<<10)}}

	_, err = reduce(large)
	require.NoError(t, err)
	require.Less(t, large.Size(), 4<<10)
	require.Equal(t, want.Labels, large.Labels, "all that the platform sets")
	require.Equal(t, "green", large.Annotations[v1beta1.AnnotationCreated])
	require.NotEqual(t, "green", large.Annotations[v1beta1.AnnotationAdopted], "what is cut is nobody's name")
	require.True(t, owns(large, "f:labels", onboard.LabelPodSecurity+"enforce"))
	require.True(t, owns(large, "f:annotations", v1beta1.AnnotationCreated))
	again := large.DeepCopy()
	_, err = reduce(again)
	require.NoError(t, err)
	require.Equal(t, large, again, "what was reduced stays as it is")
}

// What pins tags is read of policies, and of Stores whether there are any.
func TestOfTheResourcesOfTeamsTheOperatorKeepsWhatItReads(t *testing.T) {
	identity := metav1.ObjectMeta{Namespace: "iris", Name: "x", UID: "1", ResourceVersion: "7", Generation: 3}
	rules := []v1beta1.PolicyRule{{Images: []string{"**"}, Action: v1beta1.RuleActionDeny}}
	said := v1beta1.VerificationPolicySpec{EnforcementAction: v1beta1.EnforcementActionWarn, DefaultAction: v1beta1.DefaultActionInherit,
		Tags: v1beta1.TagActionPin}
	whole := said
	whole.Rules = rules
	mandatory := func(spec v1beta1.VerificationPolicySpec) v1beta1.VerificationPolicySpec {
		spec.Scope = v1beta1.PolicyScopeMandatory
		return spec
	}
	status := v1beta1.Status{Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady}}}
	for name, c := range map[string]struct{ object, want v1beta1.Object }{
		"Store": {&v1beta1.Store{ObjectMeta: identity, Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}}, Status: status},
			&v1beta1.Store{ObjectMeta: identity}},
		"policy": {&v1beta1.VerificationPolicy{ObjectMeta: identity, Spec: whole, Status: status}, &v1beta1.VerificationPolicy{ObjectMeta: identity, Spec: said}},
		"the cluster's policy": {
			&v1beta1.ClusterVerificationPolicy{ObjectMeta: identity, Spec: mandatory(whole), Status: status},
			&v1beta1.ClusterVerificationPolicy{ObjectMeta: identity, Spec: mandatory(said)}},
	} {
		reduced, err := reduce(c.object)
		require.NoError(t, err)
		require.Equal(t, c.want, reduced, name)
	}
}

func TestAPodThatUsesAQuotaIsNoChangeOfIt(t *testing.T) {
	quota := func(hard, used string, tenant string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: crowded("tenant", map[string]string{v1beta1.LabelTenant: tenant}, nil)}
		q.ResourceVersion = hard + used
		q.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(hard)}
		if used != "" {
			q.Status.Hard, q.Status.Used = q.Spec.Hard.DeepCopy(), corev1.ResourceList{corev1.ResourcePods: resource.MustParse(used)}
		}
		reduced, err := reduce(q)
		require.NoError(t, err)
		require.Empty(t, q.Status.Used)
		require.Same(t, q, reduced)
		return q
	}
	was, passes := quota("50", "1", "iris"), limitsChanged()
	for name, c := range map[string]struct {
		is     *corev1.ResourceQuota
		change bool
	}{
		"a pod more":         {quota("50", "2", "iris"), false},
		"another limit":      {quota("500", "1", "iris"), true},
		"another's quota":    {quota("50", "1", "rose"), true},
		"not counted yet":    {quota("50", "", "iris"), true},
		"the same, resynced": {quota("50", "1", "iris"), false},
	} {
		require.Equal(t, c.change, passes.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: c.is}), name)
	}
	require.True(t, passes.Delete(event.DeleteEvent{Object: was}), "a quota that somebody deleted comes back")
	require.False(t, passes.Create(event.CreateEvent{Object: was}), "whoever made it knows")
}
