package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/inspect/check"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

func TestABrokenResourceInAnExemptNamespaceIsANote(t *testing.T) {
	store := &v1beta1.Store{TypeMeta: metav1.TypeMeta{Kind: "Store"}, ObjectMeta: named("kube-system", "s"),
		Spec: v1beta1.StoreSpec{Registries: []string{"r.example.com"}}}
	store.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Invalid", Message: "wrong"}}
	home := &v1beta1.Tenant{TypeMeta: metav1.TypeMeta{Kind: "Tenant"}, ObjectMeta: named("", "t"), Spec: v1beta1.TenantSpec{HomeNamespace: "kube-system"}}
	for name, c := range map[string]struct {
		resources  []v1beta1.Object
		constraint string
		want       resource.Severity
	}{
		"exempt":                  {[]v1beta1.Object{store}, `{metadata: {name: c}, spec: {match: {excludedNamespaces: [kube-system]}}}`, resource.Note},
		"not exempt":              {[]v1beta1.Object{store}, `{metadata: {name: c}, spec: {}}`, resource.Error},
		"the home of a Tenant":    {[]v1beta1.Object{store, home}, `{metadata: {name: c}, spec: {match: {excludedNamespaces: [kube-system]}}}`, resource.Error},
		"another one is left out": {[]v1beta1.Object{store}, `{metadata: {name: c}, spec: {match: {excludedNamespaces: [shop]}}}`, resource.Error},
	} {
		t.Run(name, func(t *testing.T) {
			i := sound(t)
			i.Only = []string{check.ResourceNotReady}
			i.Namespaces = []corev1.Namespace{{ObjectMeta: named("", "kube-system")}}
			i.Resources, i.Constraints = c.resources, []unstructured.Unstructured{object(t, c.constraint)}
			found := check.Examine(i, schema.Embedded()).Findings
			require.Len(t, found, 1)
			require.Equal(t, c.want, found[0].Severity)
		})
	}
}
