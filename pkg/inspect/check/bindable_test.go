package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The chart writes the names of operator.clusterRoles into a guardrail, so that one of an installation
// with some differs from that of this version.
func TestAGuardrailWithTheRolesThatTheOperatorMayBindIsNotChanged(t *testing.T) {
	usual := []string{"admin", "edit", "view", "landwaiter-reconciler", "landwaiter-reference-reader"}
	faults := func(named, bindable []string) []string {
		policies, err := ShippedGuardrails(ShippedNamespace)
		require.NoError(t, err)
		at := slices.IndexFunc(policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "landwaiter-operator-guardrail" })
		changes := 0
		for i := range policies[at].Spec.Validations {
			v := &policies[at].Spec.Validations[i]
			replaced := strings.ReplaceAll(v.Expression, "'landwaiter-reference-reader']", "'landwaiter-reference-reader', '"+strings.Join(named, "', '")+"']")
			if len(named) > 0 && replaced != v.Expression {
				v.Expression = replaced
				last := len(named) - 1
				v.MessageExpression = strings.ReplaceAll(v.MessageExpression, " and landwaiter-reference-reader",
					strings.Join(append([]string{", landwaiter-reference-reader"}, named[:last]...), ", ")+" and "+named[last])
				changes++
			}
		}
		require.Equal(t, min(1, len(named)), changes)
		role := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "landwaiter-operator"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"x"}, Resources: []string{"x"}, Verbs: []string{"get"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"},
				ResourceNames: append(slices.Clone(usual), bindable...)}}}
		g := Guardrails{Policies: policies, Release: types.NamespacedName{Namespace: ShippedNamespace, Name: ShippedRelease}, ClusterResources: ShippedNamespace,
			Operated: true,
			Bindings: []admissionv1.ValidatingAdmissionPolicyBinding{
				{Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "landwaiter-operator-guardrail",
					ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}},
			Bindable: Bindable([]rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, role}, ShippedRelease)}
		var found []string
		for _, f := range g.Faults("operator-guardrail") {
			found = append(found, f.ID)
		}
		return found
	}
	require.Empty(t, faults(nil, nil))
	require.Empty(t, faults([]string{"team-reconciler"}, []string{"team-reconciler"}))
	require.Empty(t, faults([]string{"a", "b.c"}, []string{"a", "b.c"}))
	require.Equal(t, []string{GuardrailChanged}, faults([]string{"a"}, nil), "the role of the operator has no such name")
	require.Equal(t, []string{GuardrailChanged}, faults(nil, []string{"a"}), "an older guardrail")
	require.Equal(t, []string{GuardrailChanged}, faults([]string{"cluster-admin"}, []string{"cluster-admin"}), "no setting of the chart can name it")
	require.Equal(t, []string{GuardrailChanged}, faults([]string{"system:node"}, []string{"system:node"}))
	require.Nil(t, Bindable(nil, ShippedRelease))
}
